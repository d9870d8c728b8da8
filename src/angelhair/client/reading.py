"""From answers to values. Fields that a newer server adds are passed over."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from angelhair.client.plans import Answer
from angelhair.client.values import (
    Bucket,
    Cluster,
    LanePointers,
    Member,
    Message,
    Origin,
    Partitions,
    PeekedMessage,
    Queue,
    Shard,
    Share,
    Statistics,
    Topic,
)

T = TypeVar("T")
Fields = Mapping[str, Any]


class Unreadable(Exception):
    """The answer is not one of Angelhair's."""


def reads(read: Callable[[Any], T]) -> Callable[[Answer], T]:
    """A reader of answers from a reader of their JSON."""

    def from_answer(answer: Answer) -> T:
        try:
            return read(json.loads(answer.body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unreadable(f"{type(error).__name__}: {error}") from error

    return from_answer


def queue(found: Fields) -> Queue:
    return Queue(
        name=found["name"],
        kind=found["kind"],
        settings=found["settings"],
        changeable=tuple(found["changeable"]),
        fixed=tuple(found["fixed"]),
        statistics=statistics(found["statistics"]) if found.get("statistics") else None,
        created_at=moment(found["created_at"]),
        changed_at=moment(found["changed_at"]),
        warnings=tuple(found.get("warnings", ())),
        partitions=partitions(found["partitions"]) if found.get("partitions") else None,
    )


def topic(found: Fields) -> Topic:
    return Topic(
        name=found["name"],
        kind=found["kind"],
        content_dedup=found["content_dedup"],
        dedup_scope=found["dedup_scope"],
        queues=tuple(found["queues"]) if "queues" in found else None,
        others=found.get("others"),
        created_at=moment(found["created_at"]),
        changed_at=moment(found["changed_at"]),
    )


def statistics(found: Fields) -> Statistics:
    return Statistics(*(found[name] for name in Statistics._fields))


def partitions(found: Fields) -> Partitions:
    return Partitions(**{field.name: found[field.name] for field in fields(Partitions)})


def message(name: str, found: Fields) -> Message:
    return Message(
        **_seen(name, found),
        receipt=found["receipt"],
        first_delivered_at=moment(found["first_delivered_at"]),
        visible_at=moment(found["visible_at"]),
    )


def peeked(name: str, found: Fields) -> PeekedMessage:
    return PeekedMessage(**_seen(name, found))


def _seen(name: str, found: Fields) -> dict[str, Any]:
    text, origin = found.get("body"), found.get("origin")
    return {
        "queue": name,
        "id": found["id"],
        "body": text.encode() if text is not None else b64decode(found["body_base64"], validate=True),
        "content_type": found.get("content_type"),
        "deliveries": found["deliveries"],
        "enqueued_at": moment(found["enqueued_at"]),
        "origin": None if origin is None else Origin(origin["queue"], origin["id"]),
        "group": found.get("group"),
        "priority": found.get("priority", 0),
        "due": moment(found["due"]) if found.get("due") else None,
    }


def pointers(found: Fields) -> list[LanePointers]:
    return [LanePointers(*(lane[name] for name in LanePointers._fields)) for lane in found["lanes"]]


def buckets(found: Fields) -> list[Bucket]:
    return [Bucket(*(each[name] for name in Bucket._fields)) for each in found["buckets"]]


def cluster(found: Fields) -> Cluster:
    return Cluster(found["server"], tuple(_member(each) for each in found["members"]))


def _member(found: Fields) -> Member:
    return Member(
        found["id"], found["address"], found["host"], found["process"], found["version"], moment(found["started_at"]),
        found["lanes"], found["shards"],
    )


def shards(found: Fields) -> list[Shard]:
    return [_shard(each) for each in found["shards"]]


def _shard(found: Fields) -> Shard:
    def at(name: str) -> datetime | None:
        return None if found[name] is None else moment(found[name])

    return Shard(
        found["shard"], found["state"], found["lock"], found["consumer"], found["fence"], at("taken_at"),
        at("touched_at"), at("mark"), at("last"), found["lag"],
    )


def share(found: Fields) -> Share:
    return Share({each["shard"]: each["fence"] for each in found["shards"]}, found["lock"], found["left"])


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
