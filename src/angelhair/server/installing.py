"""What to do about a library that is not there."""

from __future__ import annotations

from angelhair.server.release import checkout


def to_install(extra: str = "") -> str:
    """One line's end: how to get what `angelhair[extra]` brings along; without one, what `angelhair` itself does."""
    if checkout() is not None:
        return "run `make setup` and use .venv/bin/angelhair"
    return f"pip install 'angelhair[{extra}]'" if extra else "pip install angelhair"
