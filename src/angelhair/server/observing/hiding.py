"""Takes out of a log line what must not be in it: receipts, and what a request brought.

Nothing in the tree writes a body or a receipt into a log on purpose. But an error that nobody foresaw may quote what it
choked on, and its text goes into the log with its stack. This is the second fence.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

import msgspec

from angelhair import limits
from angelhair.engine import receipts
from angelhair.engine.timeline import receipts as timeline_receipts
from angelhair.server.http.messages import Request

_ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
_EXAMPLES = (
    receipts.encode("0" * 32, b"", 0, 0, 0),
    timeline_receipts.encode("0" * 32, b"", timeline_receipts.Receipt(0, 0, 0, 0)),
)


def _form(example: str) -> str:
    """As long as a receipt is, in its alphabet, beginning with its version, which takes one character and a third."""
    second = _ALPHABET.index(example[1])
    return rf"{example[0]}[{_ALPHABET[second : second + 16]}][\w-]{{{len(example) - 2}}}"


RECEIPT = re.compile(rf"(?<![\w-])(?:{'|'.join(map(_form, _EXAMPLES))})(?![\w-])", re.ASCII)

_ERROR_TEXT = re.compile(r"^([A-Za-z_][\w.]*): (?:.|\n(?! *File |Traceback|During|The above|\n))*", re.MULTILINE)
"""The last line of a stack, and those that the error's text adds to it."""

SHORTEST_SECRET = 4
"""Shorter pieces of a body are everywhere: blotting out each `a` would make the log unreadable and hide nothing."""


def without_receipts(text: str) -> str:
    return RECEIPT.sub("[receipt]", text)


def without_body(text: str, request: Request) -> str:
    """For the rare line about an error that nobody foresaw: it looks through the whole body."""
    if len(request.body) > limits.LOG_HIDE_BYTES:
        return _ERROR_TEXT.sub(r"\1: [text left out]", text)
    secrets = {secret for whole in _pieces(request.body) for secret in _spellings(whole)} | {repr(request.body)[2:-1]}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "[body]")
    return text


def _pieces(body: bytes) -> Iterator[str]:
    yield body.decode("utf-8", "backslashreplace")
    yield body.decode("latin-1")
    try:
        yield from _strings(msgspec.json.decode(body))
    except (ValueError, RecursionError):
        return


def _strings(value: object) -> Iterator[str]:
    """Texts in a JSON document, the names of its members aside: those are ours."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


def _spellings(text: str) -> Iterator[str]:
    """As it is, and as `repr` and JSON would write it."""
    yield text
    yield repr(text)[1:-1]
    yield repr(text.encode("utf-8", "backslashreplace"))[2:-1]
    yield msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()[1:-1]
