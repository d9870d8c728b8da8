"""Bodies on their way to the server: text as it is, anything else in base64 where it must go through JSON."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from angelhair.errors import InvalidRequest


def body_bytes(body: bytes | str) -> bytes:
    if isinstance(body, str):
        return check_text("body", body)
    if not isinstance(body, bytes | bytearray | memoryview):
        raise InvalidRequest("body", f"must be bytes or text, not {type(body).__name__}")
    return bytes(body)


def check_text(field: str, text: str) -> bytes:
    """As UTF-8."""
    if not isinstance(text, str):
        raise InvalidRequest(field, f"must be text, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(field, "holds half of a surrogate pair, which is no character") from None


def body_fields(body: bytes) -> dict[str, Any]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": b64encode(body).decode("ascii")}
