"""Answers in the Query protocol: XML, written along the plan of the action's output."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any, NamedTuple

from angelhair.server.aws.errors import AwsError, Protocol
from angelhair.server.aws.members import Kind, Member, members
from angelhair.server.aws.shape import Shape

CONTENT_TYPE = "text/xml"

_DECLARATION = '<?xml version="1.0"?>'
_SPECIAL = re.compile("[&<>\"\r\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xD;"}


def escaped(text: str) -> str:
    """As XML can hold it. A carriage return would be read as a line feed, so it is named.

    What XML cannot hold at all came through another door; one such message must not spoil the batch that it is in.
    """
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], "\ufffd"), text)


class Dialect(NamedTuple):
    """How one service writes its answers."""

    namespace: str
    nested: bool = False
    """Lists and maps have an element of their own, around `member` and `entry`."""


def encode_result(dialect: Dialect, action: str, result: Shape, request_id: str) -> bytes:
    parts: list[str] = []
    _write_members(result, parts, dialect.nested)
    content = "".join(parts)
    if members(type(result)) or result.wrapped:
        content = f"<{action}Result>{content}</{action}Result>"
    metadata = f"<ResponseMetadata><RequestId>{escaped(request_id)}</RequestId></ResponseMetadata>"
    answer = f'{_DECLARATION}<{action}Response xmlns="{dialect.namespace}">{content}{metadata}</{action}Response>'
    return answer.encode()


def encode_error(dialect: Dialect, error: AwsError, request_id: str) -> bytes:
    fault = "Sender" if error.sender_fault else "Receiver"
    message = escaped(error.message_in(Protocol.QUERY))
    answer = (
        f'{_DECLARATION}<ErrorResponse xmlns="{dialect.namespace}">'
        f"<Error><Type>{fault}</Type><Code>{error.code}</Code><Message>{message}</Message><Detail/></Error>"
        f"<RequestId>{escaped(request_id)}</RequestId></ErrorResponse>"
    )
    return answer.encode()


def _write_members(shape: Shape, parts: list[str], nested: bool) -> None:
    for member in members(type(shape)):
        value = getattr(shape, member.field)
        if value is not None:
            _write(member.name if nested else member.query_name, value, member, parts, nested)


def _write(name: str, value: Any, member: Member, parts: list[str], nested: bool) -> None:
    match member.kind:
        case Kind.LIST | Kind.MAP if nested:
            parts.append(f"<{name}>")
            if member.kind is Kind.LIST:
                for item in value:
                    _write("member", item, _item(member), parts, nested)
            else:
                for key, item in value.items():
                    parts.append(f"<entry><key>{escaped(key)}</key>")
                    _write("value", item, _item(member), parts, nested)
                    parts.append("</entry>")
            parts.append(f"</{name}>")
        case Kind.LIST:
            for item in value:
                _write(name, item, _item(member), parts, nested)
        case Kind.MAP:
            for key, item in value.items():
                parts.append(f"<{name}><{member.key}>{escaped(key)}</{member.key}>")
                _write("Value", item, _item(member), parts, nested)
                parts.append(f"</{name}>")
        case Kind.SHAPE:
            parts.append(f"<{name}>")
            _write_members(value, parts, nested)
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
