"""Receipt handles: the engine's receipt, and when the message was received.

SQS allows twelve hours from there on, however often the time is extended; the engine remembers no such date.
"""

from __future__ import annotations

from typing import NamedTuple

from angelhair.engine import receipts
from angelhair.engine.timeline import receipts as timeline_receipts
from angelhair.server.sqs.errors import ReceiptHandleIsInvalid

_DIGITS_MOST = 12
_HEXADECIMAL = 16


class Handle(NamedTuple):
    receipt: str
    received_at_seconds: int | None
    """None for a receipt that another door gave out."""


def encode(receipt: str, received_at_ms: int) -> str:
    return f"{receipt}{_between(receipt)}{received_at_ms // 1000:x}"


def _between(receipt: str) -> str:
    """The ids of databags are shorter than all receipts, and not all of one length."""
    return "." if len(receipt) < receipts.LENGTH else ""


def decode(text: str) -> Handle:
    if "." in text:
        receipt, _, digits = text.partition(".")
        return _decoded(text, receipt, digits)
    # Those of timelines are longer than all others with their digits.
    length = timeline_receipts.LENGTH if len(text) >= timeline_receipts.LENGTH else receipts.LENGTH
    return _decoded(text, text[:length], text[length:])


def _decoded(text: str, receipt: str, digits: str) -> Handle:
    if not digits:
        return Handle(receipt, None)
    if len(digits) > _DIGITS_MOST or not (digits.isascii() and digits.isalnum()):
        raise ReceiptHandleIsInvalid(text)
    try:
        return Handle(receipt, int(digits, _HEXADECIMAL))
    except ValueError:
        raise ReceiptHandleIsInvalid(text) from None
