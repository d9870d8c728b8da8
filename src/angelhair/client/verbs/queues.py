"""Queues: making, showing, changing, deleting and listing them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar, Unpack

from angelhair import limits
from angelhair.client import reading
from angelhair.client.paths import of_queue
from angelhair.client.plans import Call, Plan, Repeat, Request, nothing
from angelhair.client.retrying import Manner, exchange
from angelhair.client.values import Queue, QueueSettings
from angelhair.errors import QueueNotFound

JSON = "application/json"
T = TypeVar("T")


class Page(NamedTuple, Generic[T]):
    items: list[T]
    following: Plan[Page[T]] | None
    """How to get the next one."""


def create_queue(manner: Manner, name: str, **settings: Unpack[QueueSettings]) -> Plan[Queue]:
    """Makes a queue. One that exists with the same settings is as good; with others it is `QueueExists`."""
    request = with_json("PUT", of_queue(name), settings)
    return (yield from exchange(manner, Call(request, _QUEUE, Repeat.SAFE, queue=name)))


def queue(manner: Manner, name: str) -> Plan[Queue]:
    """The queue's settings and what it holds."""
    return (yield from exchange(manner, Call(Request("GET", of_queue(name)), _QUEUE, Repeat.READS, queue=name)))


def change_queue(manner: Manner, name: str, **settings: Unpack[QueueSettings]) -> Plan[Queue]:
    """Changes these settings and leaves the others."""
    request = with_json("PATCH", of_queue(name), settings)
    return (yield from exchange(manner, Call(request, _QUEUE, Repeat.SAFE, queue=name)))


def delete_queue(manner: Manner, name: str) -> Plan[None]:
    """Deletes the queue and all that is in it."""
    request = Request("DELETE", of_queue(name))
    yield from exchange(manner, Call(request, nothing, Repeat.SAFE, queue=name, done_if=(QueueNotFound,)))


def queues(manner: Manner, prefix: str = "", *, after: str = "") -> Plan[Page[str]]:
    """The names of the queues that begin like this, in order."""
    query = {"limit": str(limits.LIST_QUEUES)}
    query.update({name: value for name, value in (("prefix", prefix), ("after", after)) if value})
    call = Call(Request("GET", "/queues", query), reading.reads(_names), Repeat.READS)
    names, following = yield from exchange(manner, call)
    return Page(names, queues(manner, prefix, after=following) if following else None)


def purge(manner: Manner, queue: str) -> Plan[None]:
    """All that was put before this is gone, in flight or not."""
    yield from exchange(manner, Call(Request("POST", of_queue(queue, "purge")), nothing, Repeat.SAFE, queue=queue))


def with_json(method: str, path: str, value: Mapping[str, Any]) -> Request:
    return Request(method, path, {}, json.dumps(value).encode(), JSON)


def _names(found: Mapping[str, Any]) -> tuple[list[str], str | None]:
    return list(found["queues"]), found["next"]


_QUEUE = reading.reads(reading.queue)
