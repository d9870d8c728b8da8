"""What an operator does: look without taking, see to dead letters, watch the pointers, have repair look again,
see which servers there are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from angelhair import limits
from angelhair.client import reading
from angelhair.client.paths import of_queue
from angelhair.client.plans import Call, Plan, Repeat, Request
from angelhair.client.retrying import Manner, exchange
from angelhair.client.values import Bucket, Cluster, LanePointers, PeekedMessage
from angelhair.client.verbs.queues import JSON
from angelhair.model import validate_whole


def peek(manner: Manner, queue: str, count: int = 10) -> Plan[list[PeekedMessage]]:
    """Up to so many messages that could be received now, without taking them; of a timeline those that are not due yet,
    too."""
    return (yield from _look(manner, queue, "peek", count))


def dead_letters(manner: Manner, queue: str, count: int = 10) -> Plan[list[PeekedMessage]]:
    """Up to so many messages of the queue's dead-letter queue, without taking them."""
    return (yield from _look(manner, queue, "dead", count))


def redrive(
    manner: Manner, queue: str, destination: str | None = None, *, count: int = limits.BATCH_MESSAGES
) -> Plan[int]:
    """Moves messages of this (dead-letter) queue to another, or each to where it came from; returns how many went.

    Call it until it returns 0.
    """
    body = json.dumps({"destination": destination, "count": count}).encode()
    request = Request("POST", of_queue(queue, "redrive"), {}, body, JSON)
    call = Call(request, reading.reads(lambda found: int(found["moved"])), Repeat.UNSAFE, queue=queue)
    return (yield from exchange(manner, call))


def pointers(manner: Manner, queue: str) -> Plan[list[LanePointers]]:
    """Where each lane stands."""
    request = Request("GET", of_queue(queue, "pointers"))
    return (yield from exchange(manner, Call(request, reading.reads(reading.pointers), Repeat.READS, queue=queue)))


def buckets(
    manner: Manner, queue: str, lane: int | None = None, *, first: int | None = None, count: int | None = None
) -> Plan[list[Bucket]]:
    """Buckets of a lane and what is in them; from the first lane and bucket that are kept, unless told otherwise."""
    given = {"lane": lane, "first": first, "count": count}
    query = {name: str(value) for name, value in given.items() if value is not None}
    request = Request("GET", of_queue(queue, "buckets"), query)
    return (yield from exchange(manner, Call(request, reading.reads(reading.buckets), Repeat.READS, queue=queue)))


def move_back(manner: Manner, queue: str, lane: int, bucket: int) -> Plan[int]:
    """Has repair look into buckets again, from this one on; returns where its pointer stands now."""
    body = json.dumps({"lane": lane, "bucket": bucket}).encode()
    request = Request("POST", of_queue(queue, "repair"), {}, body, JSON)
    call = Call(request, reading.reads(lambda found: int(found["repair"])), Repeat.SAFE, queue=queue)
    return (yield from exchange(manner, call))


def cluster(manner: Manner) -> Plan[Cluster]:
    """The servers that live."""
    call = Call(Request("GET", "/cluster"), reading.reads(reading.cluster), Repeat.READS)
    return (yield from exchange(manner, call))


def _look(manner: Manner, queue: str, where: str, count: int) -> Plan[list[PeekedMessage]]:
    def read(found: Mapping[str, Any]) -> list[PeekedMessage]:
        return [reading.peeked(found.get("queue", queue), each) for each in found["messages"]]

    validate_whole("count", count, 1, limits.BATCH_MESSAGES)
    request = Request("GET", of_queue(queue, where, str(count)))
    return (yield from exchange(manner, Call(request, reading.reads(read), Repeat.READS, queue=queue)))
