"""Tokens that never repeat, for production: this process's random beginning and a counter."""

import itertools
import secrets


class RandomIdentities:
    """Implements `engine.identities.Identities`."""

    def __init__(self) -> None:
        self._beginning = secrets.token_hex(8)
        self._numbers = itertools.count(int.from_bytes(secrets.token_bytes(6), "big"))

    def fresh(self) -> str:
        return f"{next(self._numbers):016x}{self._beginning}"

    def secret(self) -> bytes:
        return secrets.token_bytes(16)
