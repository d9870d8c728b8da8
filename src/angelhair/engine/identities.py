"""Where tokens that must never repeat come from. The engine has no randomness of its own; it is handed a source."""

from typing import Protocol


class Identities(Protocol):
    def fresh(self) -> str:
        """A text of 32 hexadecimal digits that nobody was given before. It may be easy to guess."""
        ...

    def secret(self) -> bytes:
        """Sixteen bytes that nobody can guess."""
        ...
