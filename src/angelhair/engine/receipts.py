"""Pop receipts: which message, and which of its deliveries (A3, R13).

A receipt is signed with the queue's own secret, so that a forged one is told apart from a stale one without a read,
and names the queue's incarnation, so that another queue's is told apart from a forged one.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from angelhair.errors import InvalidReceipt

_FORMAT = struct.Struct(">B8sIqI")
SIGNATURE_BYTES = 11
_VERSION = 1
_LENGTH = (_FORMAT.size + SIGNATURE_BYTES) * 4 // 3
"""Both parts together are a multiple of three bytes: no padding."""


class Receipt(NamedTuple):
    lane: int
    number: int
    delivery: int


def encode(incarnation: str, secret: bytes, lane: int, number: int, delivery: int) -> str:
    content = _FORMAT.pack(_VERSION, bytes.fromhex(incarnation[:16]), lane, number, delivery)
    return urlsafe_b64encode(content + _signature(secret, content)).decode("ascii")


def decode(incarnation: str, secret: bytes, text: str) -> Receipt:
    content, signature = _parts(text)
    _, owner, lane, number, delivery = _FORMAT.unpack(content)
    if owner != bytes.fromhex(incarnation[:16]):
        raise InvalidReceipt("belongs to another queue, or to an earlier queue of this name")
    if not hmac.compare_digest(signature, _signature(secret, content)):
        raise InvalidReceipt("was not issued by this queue")
    return Receipt(lane, number, delivery)


def is_well_formed(text: str) -> bool:
    """Whether some queue may have issued it."""
    try:
        _parts(text)
    except InvalidReceipt:
        return False
    return True


def _parts(text: str) -> tuple[bytes, bytes]:
    """Content and signature."""
    if not isinstance(text, str) or len(text) != _LENGTH:
        raise InvalidReceipt("is not a receipt of this service")
    try:
        raw = urlsafe_b64decode(text)
    except ValueError:
        raise InvalidReceipt("is damaged") from None
    if len(raw) != _FORMAT.size + SIGNATURE_BYTES:
        raise InvalidReceipt("is damaged")
    if raw[0] != _VERSION:
        raise InvalidReceipt("was made by another version of this service")
    return raw[: _FORMAT.size], raw[_FORMAT.size :]


def _signature(secret: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, key=secret, digest_size=SIGNATURE_BYTES).digest()
