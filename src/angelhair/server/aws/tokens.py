"""Tokens of pages: a name, as clients hand it back."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode


def token_of(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode()


def value_of(token: str) -> str | None:
    """None when it is none of ours."""
    try:
        return b64decode(token, altchars=b"-_", validate=True).decode()
    except ValueError:
        return None
