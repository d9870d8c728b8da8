"""Messages and queues as commands show them: the REST door's JSON, and columns for tables and lines."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from angelhair.cli.output import Cell, Column, Room, print_table, rfc3339

if TYPE_CHECKING:
    from angelhair.client import Message, PeekedMessage, Queue, Topic

DELIVERED = (
    Column("ID"), Column("RECEIPT"), Column("DELIVERIES", numeric=True, room=Room.LEFT_OUT),
    Column("ENQUEUED", room=Room.LEFT_OUT), Column("TYPE", room=Room.LEFT_OUT), Column("BODY", room=Room.CUT),
)
PEEKED = tuple(column for column in DELIVERED if column.title != "RECEIPT")
DUE = Column("DUE")
DUE_PLACE = 3
"""Of the column that messages of timelines have beside: behind the time of the put."""


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
    columns, rows = list(PEEKED), [_cells(message) for message in messages]
    if any(message.due is not None for message in messages):
        columns.insert(DUE_PLACE, DUE)
        for message, row in zip(messages, rows, strict=True):
            row.insert(DUE_PLACE, message.due)
    print_table(columns, rows)


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
    if queue.partitions is not None:
        shown["partitions"] = asdict(queue.partitions)
    return shown


def partition_rows(queue: Queue) -> list[list[Cell]]:
    """Of a databag: how it is cut, in figures with a word on each, short enough for a terminal of 80 columns."""
    seen = queue.partitions
    if seen is None:
        return []
    rows: list[list[Cell]] = [
        ["partitions", seen.count, f"in force here, of {seen.min_partitions} to {seen.max_partitions}"],
        ["partitions_locked", seen.locked, "have served, and rest"],
        ["partitions_sync", seen.sync, "s at most until a change is in force"],
        ["epochs", seen.epochs, "parts that go whole"],
        ["duplicates", seen.duplicates, "served though deleted or locked"],
    ]
    stored, in_force = queue.settings, (seen.min_partitions, seen.max_partitions, seen.visibility_timeout)
    names = ("min_partitions", "max_partitions", "visibility_timeout")
    for name, value in zip(names, in_force, strict=True):
        if stored.get(name) != value:
            rows.append([f"{name}_now", value, "in force until the next sync"])
    return rows


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
