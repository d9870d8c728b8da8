"""Pop receipts: which message, and which of its deliveries (A3, R13).

A receipt is signed with the queue's own secret, so that a forged one is told apart from a stale one without a read,
and names the queue's incarnation, so that another queue's is told apart from a forged one.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from functools import lru_cache
from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

from angelhair.engine.making import maker
from angelhair.errors import InvalidReceipt

_FORMAT = struct.Struct(">B8sIqI")
_CONTENT_BYTES = _FORMAT.size
SIGNATURE_BYTES = 11
_VERSION = 1
LENGTH = (_CONTENT_BYTES + SIGNATURE_BYTES) * 4 // 3
"""Both parts together are a multiple of three bytes: no padding."""
_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_QUEUES = 1024
"""Whose names and keys are kept ready: of a put's or an ack's time a receipt takes a good part."""


class Receipt(NamedTuple):
    lane: int
    number: int
    delivery: int


_receipt = maker(Receipt)


def encode(incarnation: str, secret: bytes, lane: int, number: int, delivery: int) -> str:
    content = _FORMAT.pack(_VERSION, _owner(incarnation), lane, number, delivery)
    return b2a_base64(content + _signature(secret, content), newline=False).translate(_TO_URL).decode("ascii")


def decode(incarnation: str, secret: bytes, text: str) -> Receipt:
    raw = _unsealed(text)
    content = raw[:_CONTENT_BYTES]
    _, owner, lane, number, delivery = _FORMAT.unpack(content)
    if owner != _owner(incarnation):
        raise InvalidReceipt("belongs to another queue, or to an earlier queue of this name")
    if not compare_digest(raw[_CONTENT_BYTES:], _signature(secret, content)):
        raise InvalidReceipt("was not issued by this queue")
    return _receipt((lane, number, delivery))


def is_well_formed(text: str) -> bool:
    """Whether some queue may have issued it."""
    try:
        _unsealed(text)
    except InvalidReceipt:
        return False
    return True


def _unsealed(text: str) -> bytes:
    """Content and signature, which is not looked at."""
    if not isinstance(text, str) or len(text) != LENGTH:
        raise InvalidReceipt("is not a receipt of this service")
    try:
        raw = a2b_base64(text.encode("ascii").translate(_FROM_URL))
    except ValueError:
        raise InvalidReceipt("is damaged") from None
    if len(raw) != _CONTENT_BYTES + SIGNATURE_BYTES:
        raise InvalidReceipt("is damaged")
    if raw[0] != _VERSION:
        raise InvalidReceipt("was made by another version of this service")
    return raw


def _signature(secret: bytes, content: bytes) -> bytes:
    signing = _keyed(secret).copy()
    signing.update(content)
    return signing.digest()


@lru_cache(_QUEUES)
def _keyed(secret: bytes) -> blake2b:
    return blake2b(key=secret, digest_size=SIGNATURE_BYTES)


@lru_cache(_QUEUES)
def _owner(incarnation: str) -> bytes:
    return bytes.fromhex(incarnation[:16])
