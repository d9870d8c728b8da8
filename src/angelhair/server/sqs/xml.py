"""Answers in the Query protocol: XML, written along the plan of the action's output."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from angelhair.server.sqs.errors import Protocol, SqsError, UnknownOperation
from angelhair.server.sqs.members import Kind, Member, members
from angelhair.server.sqs.shape import Shape

NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
CONTENT_TYPE = "text/xml"

_DECLARATION = '<?xml version="1.0"?>'
_SPECIAL = re.compile("[&<>\"\r\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xD;"}


def escaped(text: str) -> str:
    """As XML can hold it. A carriage return would be read as a line feed, so it is named.

    What XML cannot hold at all came through another door; one such message must not spoil the batch that it is in.
    """
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], "\ufffd"), text)


def encode_result(action: str, result: Shape, request_id: str) -> bytes:
    parts: list[str] = []
    _write_members(result, parts)
    content = "".join(parts)
    if members(type(result)):
        content = f"<{action}Result>{content}</{action}Result>"
    metadata = f"<ResponseMetadata><RequestId>{escaped(request_id)}</RequestId></ResponseMetadata>"
    answer = f'{_DECLARATION}<{action}Response xmlns="{NAMESPACE}">{content}{metadata}</{action}Response>'
    return answer.encode()


def encode_error(error: SqsError, request_id: str) -> bytes:
    if isinstance(error, UnknownOperation):
        # No action was named at all, and so AWS answers before it knows which service is meant.
        return b"<UnknownOperationException/>\n"
    fault = "Sender" if error.sender_fault else "Receiver"
    message = escaped(error.message_in(Protocol.QUERY))
    answer = (
        f'{_DECLARATION}<ErrorResponse xmlns="{NAMESPACE}">'
        f"<Error><Type>{fault}</Type><Code>{error.code}</Code><Message>{message}</Message><Detail/></Error>"
        f"<RequestId>{escaped(request_id)}</RequestId></ErrorResponse>"
    )
    return answer.encode()


def _write_members(shape: Shape, parts: list[str]) -> None:
    for member in members(type(shape)):
        value = getattr(shape, member.field)
        if value is not None:
            _write(member.query_name, value, member, parts)


def _write(name: str, value: Any, member: Member, parts: list[str]) -> None:
    match member.kind:
        case Kind.LIST:
            for item in value:
                _write(name, item, _item(member), parts)
        case Kind.MAP:
            for key, item in value.items():
                parts.append(f"<{name}><{member.key}>{escaped(key)}</{member.key}>")
                _write("Value", item, _item(member), parts)
                parts.append(f"</{name}>")
        case Kind.SHAPE:
            parts.append(f"<{name}>")
            _write_members(value, parts)
            parts.append(f"</{name}>")
        case _:
            parts.append(f"<{name}>{_text(value)}</{name}>")


def _item(member: Member) -> Member:
    assert member.item is not None, "lists and maps have items"
    return member.item


def _text(value: str | int | bool | bytes) -> str:
    match value:
        case str():
            return escaped(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return b64encode(value).decode()
    return str(value)
