"""Time UUIDs as row keys, and the parts of time that they lie in.

A row's key is a UUID of version 7 as text: 48 bits of milliseconds, then what makes it unlike all others. So keys sort
by time, and any text compares with them: `bound` of a time lies behind all keys of that time and before all later ones.
"""

from __future__ import annotations

from hashlib import blake2b

from angelhair.model import uuid_text

_REST_BITS = 80
_REST_MASK = (1 << 74) - 1
_LOW_BITS = 62
_LOW_MASK = (1 << _LOW_BITS) - 1


def key_of(time_ms: int, token: str) -> str:
    """A key of this time; of two tokens never the same."""
    rest = int.from_bytes(blake2b(token.encode(), digest_size=10).digest()) & _REST_MASK
    low = rest & _LOW_MASK | 0b10 << _LOW_BITS
    return uuid_text(time_ms << _REST_BITS | (0x7000 | rest >> _LOW_BITS) << 64 | low)


def number_of(key: str) -> int:
    return int(key.replace("-", ""), 16)


def time_of(key: str) -> int:
    """Of a key or a bound."""
    return int(key[:8] + key[9:13], 16)


def bound(time_ms: int) -> str:
    """Behind every key of this time."""
    digits = f"{time_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}~"


def after(key: str) -> str:
    """Where a span begins that leaves out this key, or all up to this bound: keys are all of one length."""
    return key + "~"
