"""Pop receipts of timelines: which message, which of its deliveries, and under which lock it was given.

Signed as those of the other kinds are, with the queue's own secret.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

from angelhair.errors import InvalidReceipt

_FORMAT = struct.Struct(">B8sI16sIq")
_SIGNATURE_BYTES = 13
_VERSION = 2
LENGTH = (_FORMAT.size + _SIGNATURE_BYTES) * 4 // 3
"""Both parts together are a multiple of three bytes: no padding."""


class Receipt(NamedTuple):
    lane: int
    number: int
    """The time UUID of the message's row."""
    delivery: int
    fence: int


def encode(incarnation: str, secret: bytes, receipt: Receipt) -> str:
    number = receipt.number.to_bytes(16)
    content = _FORMAT.pack(_VERSION, _owner(incarnation), receipt.lane, number, receipt.delivery, receipt.fence)
    return urlsafe_b64encode(content + _signature(secret, content)).decode("ascii")


def decode(incarnation: str, secret: bytes, text: str) -> Receipt:
    raw = _unsealed(text)
    content = raw[: _FORMAT.size]
    _, owner, lane, number, delivery, fence = _FORMAT.unpack(content)
    if owner != _owner(incarnation):
        raise InvalidReceipt("belongs to another queue, or to an earlier queue of this name")
    if not compare_digest(raw[_FORMAT.size :], _signature(secret, content)):
        raise InvalidReceipt("was not issued by this queue")
    return Receipt(lane, int.from_bytes(number), delivery, fence)


def is_well_formed(text: str) -> bool:
    """Whether some timeline may have issued it."""
    try:
        _unsealed(text)
    except InvalidReceipt:
        return False
    return True


def _unsealed(text: str) -> bytes:
    if not isinstance(text, str) or len(text) != LENGTH:
        raise InvalidReceipt("is not a receipt of a timeline")
    try:
        raw = urlsafe_b64decode(text.encode("ascii"))
    except ValueError:
        raise InvalidReceipt("is damaged") from None
    if len(raw) != _FORMAT.size + _SIGNATURE_BYTES:
        raise InvalidReceipt("is damaged")
    if raw[0] != _VERSION:
        raise InvalidReceipt("was made by another version of this service")
    return raw


def _signature(secret: bytes, content: bytes) -> bytes:
    return blake2b(content, key=secret, digest_size=_SIGNATURE_BYTES).digest()


def _owner(incarnation: str) -> bytes:
    return bytes.fromhex(incarnation[:16])
