"""What a message carries: its body as text or base64, its content type among its attributes, where it came from."""

from __future__ import annotations

import json
from functools import lru_cache

import msgspec
from msgspec import UNSET, UnsetType

from angelhair import limits
from angelhair.clock import Clock
from angelhair.errors import InvalidRequest
from angelhair.model import Delivery, Peeked
from angelhair.server.http.messages import Request
from angelhair.server.rest.errors import Refusal, invalid
from angelhair.server.rest.shapes import Origin

ORIGIN_PARTS = 3
"""Account, queue and id."""


class _Attributes(msgspec.Struct):
    """Of a message's attributes, what this door knows. The other doors keep theirs beside it."""

    content_type: str | None = None
    group: str | None = None


_attributes_decoder = msgspec.json.Decoder(_Attributes)


def check_size(body: bytes, field: str = "body", most: int = limits.BODY_BYTES) -> bytes:
    if len(body) > most:
        raise Refusal("body_too_large", f"{field}: has {len(body)} bytes; the limit is {most}", field)
    return body


def content_type_of(request: Request) -> str | None:
    """The attributes of a message that came with this Content-Type header."""
    given = request.headers.get("content-type")
    return attributes_with(given) if given else None


@lru_cache(maxsize=256)
def attributes_with(content_type: str | None, group: str | None = None) -> str | None:
    if content_type is None and group is None:
        return None
    if content_type is None:
        return json.dumps({"group": group})
    if len(content_type) > limits.CONTENT_TYPE_LENGTH or not (content_type.isascii() and content_type.isprintable()):
        raise InvalidRequest(
            "content_type", f"may have up to {limits.CONTENT_TYPE_LENGTH} printable characters of ASCII"
        )
    return json.dumps({"content_type": content_type} | ({} if group is None else {"group": group}))


@lru_cache(maxsize=256)
def _known_in(attributes: str) -> _Attributes:
    try:
        return _attributes_decoder.decode(attributes)
    except msgspec.DecodeError:
        # Whoever put this did not come through a door; the message is worth more than its attributes.
        return _Attributes()


def content_type_in(attributes: str | None) -> str | None:
    return None if attributes is None else _known_in(attributes).content_type


def group_of(message: Delivery | Peeked) -> str | None:
    """A fifo queue knows it; elsewhere it is one of the message's attributes."""
    if message.group is not None or message.attributes is None:
        return message.group
    return _known_in(message.attributes).group


def text_or_bytes(body: bytes) -> tuple[str | UnsetType, bytes | UnsetType]:
    """The body as text if it is UTF-8, else as it is; one of the two is unset."""
    try:
        return body.decode(), UNSET
    except UnicodeDecodeError:
        return UNSET, body


def one_body(text: str | UnsetType, raw: bytes | UnsetType, where: str = "") -> bytes | None:
    """The body that was given, as one or the other; None when there is none."""
    if text is not UNSET and raw is not UNSET:
        raise invalid(f"{where}body", "and body_base64 cannot both be given")
    if isinstance(text, str):
        return check_size(text.encode(), f"{where}body")
    return check_size(raw, f"{where}body_base64") if isinstance(raw, bytes) else None


def delay_until_ms(due_ms: int, clock: Clock) -> int:
    """What has been due for a while is due now."""
    return max(0, due_ms - clock.now().wall_ms)


def origin_of(text: str | None) -> Origin | None:
    parts = text.split("/") if text else []
    return Origin(parts[1], parts[2]) if len(parts) == ORIGIN_PARTS else None
