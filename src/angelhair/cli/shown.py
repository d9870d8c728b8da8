"""Messages and queues as commands show them: the REST door's JSON, and columns for tables and lines."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from angelhair.cli.output import Cell, Column, Room, print_table, rfc3339

if TYPE_CHECKING:
    from angelhair.client import Message, PeekedMessage, Queue, Topic

DELIVERED = (
    Column("ID"), Column("RECEIPT"), Column("DELIVERIES", numeric=True, room=Room.LEFT_OUT),
    Column("ENQUEUED", room=Room.LEFT_OUT), Column("TYPE", room=Room.LEFT_OUT), Column("BODY", room=Room.CUT),
)
PEEKED = tuple(column for column in DELIVERED if column.title != "RECEIPT")


def message_json(message: PeekedMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": message.id, **body_json(message.body)}
    fields["content_type"] = message.content_type
    fields["deliveries"] = message.deliveries
    fields["enqueued_at"] = rfc3339(message.enqueued_at)
    origin = message.origin
    fields["origin"] = None if origin is None else {"queue": origin.queue, "id": origin.id}
    # As over REST, where they are said if they are there.
    fields |= {name: value for name, value in (("group", message.group), ("priority", message.priority)) if value}
    if message.due is not None:
        fields["due"] = rfc3339(message.due)
    return fields


def delivery_json(message: Message) -> dict[str, Any]:
    return {
        **message_json(message),
        "receipt": message.receipt,
        "first_delivered_at": rfc3339(message.first_delivered_at),
        "visible_at": rfc3339(message.visible_at),
    }


def body_json(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": b64encode(body).decode("ascii")}


def print_deliveries(messages: Sequence[Message]) -> None:
    print_table(DELIVERED, [_cells(message, message.receipt) for message in messages])


def print_peeked(messages: Sequence[PeekedMessage]) -> None:
    print_table(PEEKED, [_cells(message) for message in messages])


def _cells(message: PeekedMessage, *receipt: str) -> list[Cell]:
    return [
        message.id, *receipt, message.deliveries, message.enqueued_at, message.content_type, message.body,
    ]


def queue_json(queue: Queue) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": queue.name,
        "kind": queue.kind,
        "settings": queue.settings,
        "changeable": list(queue.changeable),
        "fixed": list(queue.fixed),
        "created_at": rfc3339(queue.created_at),
        "changed_at": rfc3339(queue.changed_at),
        "warnings": list(queue.warnings),
    }
    if queue.statistics is not None:
        shown["statistics"] = queue.statistics._asdict()
    return shown


def topic_json(topic: Topic) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": topic.name,
        "kind": topic.kind,
        "content_dedup": topic.content_dedup,
        "dedup_scope": topic.dedup_scope,
        "created_at": rfc3339(topic.created_at),
        "changed_at": rfc3339(topic.changed_at),
    }
    if topic.queues is not None:
        shown["queues"] = list(topic.queues)
        shown["others"] = topic.others
    return shown
