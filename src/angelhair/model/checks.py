"""What a single value may be, whoever sends it."""

from __future__ import annotations

import re

from angelhair import limits
from angelhair.errors import InvalidRequest

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def validate_name(field: str, name: object, longest: int = limits.NAME_LENGTH) -> str:
    if type(name) is not str:
        raise InvalidRequest(field, f"must be text, not {type(name).__name__}")
    if not 1 <= len(name) <= longest:
        raise InvalidRequest(field, f"must have 1 to {longest} characters, not {len(name)}")
    if not _NAME.fullmatch(name):
        letters = "may hold letters a to z and A to Z, digits, '_', '-' and '.'"
        raise InvalidRequest(field, f"{letters}, and begins with none of '-' and '.'")
    return name


def validate_topic_name(name: object) -> str:
    return validate_name("topic", name, limits.TOPIC_NAME_LENGTH)


HIDDEN = "~"
"""What the accounts begin with in which queues lie that no door shows. No account of a user's begins like this."""


def validate_account(account: object) -> None:
    """As the engine takes it: a user's account, or the hidden one beside it. Doors let nobody name the latter."""
    hidden = type(account) is str and account.startswith(HIDDEN)
    validate_name("account", str(account).removeprefix(HIDDEN) if hidden else account)


def short_text(field: str, value: str, most: int) -> None:
    text_bytes(field, value)
    if not 1 <= len(value) <= most:
        raise InvalidRequest(field, f"must have 1 to {most} characters")


def text_bytes(field: str, value: object) -> int:
    """How long a text is as UTF-8, which is what every store keeps."""
    if type(value) is not str:
        raise InvalidRequest(field, f"must be text, not {type(value).__name__}")
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        raise InvalidRequest(field, "holds half of a surrogate pair, which is no character") from None


def validate_whole(field: str, value: object, least: int, most: int) -> None:
    if type(value) is not int:
        raise InvalidRequest(field, f"must be a whole number, not {value!r}")
    if not least <= value <= most:
        raise InvalidRequest(field, f"must be between {least} and {most}, not {value}")


def validate_duration(field: str, value_ms: object, least_ms: int, most_ms: int = limits.DURATION_MAXIMUM_MS) -> None:
    if type(value_ms) is not int:
        raise InvalidRequest(field, f"must be a whole number of milliseconds, not {value_ms!r}")
    if not least_ms <= value_ms <= most_ms:
        raise InvalidRequest(field, f"must be between {least_ms / 1000:g} and {most_ms // 1000} seconds")
