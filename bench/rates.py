"""Rates of put, receive and ack through batching, beside the same groups of rows given straight to the same store.

The baseline is what the store alone can do with what the engine asks of it: the same number of conditional writes of
the same size, blind writes and reads, one after the other, by nobody who thinks. A ratio near 1 means that the engine
costs nothing; it may exceed 1, because puts overlap.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from angelhair.engine.schema import BODIES, POINTERS, SEQUENCES, STATES
from angelhair.engine.store import APPLIED, Change, Partition, Row, RowChange, Span, Store, Write
from angelhair.model import QueueSettings
from tests.costs.clients import BODY, CLIENTS, QUEUE, Cost, Server

SETTINGS = QueueSettings(visibility_timeout_ms=600_000)

BUCKET_ROWS = SETTINGS.bucket_size

WARM_UP_MESSAGES = 10 * CLIENTS

ROUNDS = 5
"""Rates and baselines take turns, and the median counts: what else the machine does in between hits both."""

T = TypeVar("T")


@dataclass
class Rate:
    verb: str
    messages: int
    seconds: float
    cost: Cost
    baseline_seconds: float

    @property
    def per_second(self) -> float:
        return self.messages / self.seconds

    @property
    def baseline_per_second(self) -> float:
        return self.messages / self.baseline_seconds


async def measure(store: Store, messages: int) -> list[Rate]:
    """Background work runs meanwhile, as it does on a server."""
    server = Server(store)
    await server.create(SETTINGS)
    server.workers.start([QUEUE])
    await server.put(WARM_UP_MESSAGES)
    await server.ack(await server.receive(WARM_UP_MESSAGES))
    rounds: list[list[Rate]] = []
    for _ in range(ROUNDS):
        put, put_rate = await _rate(server, "put", server.put(messages))
        receipts, receive_rate = await _rate(server, "receive", server.receive(put))
        _, ack_rate = await _rate(server, "ack", server.ack(receipts))
        rounds.append([put_rate, receive_rate, ack_rate])
        for rate in rounds[-1]:
            rate.baseline_seconds = await _baseline(store, rate)
    await server.workers.stop()
    return [_middle(verb) for verb in zip(*rounds, strict=True)]


def _middle(rates: Sequence[Rate]) -> Rate:
    """Of each figure the median over the rounds."""
    parts = zip(*(rate.cost for rate in rates), strict=True)
    return Rate(
        rates[0].verb,
        rates[0].messages,
        statistics.median(rate.seconds for rate in rates),
        Cost(*(statistics.median(part) for part in parts)),
        statistics.median(rate.baseline_seconds for rate in rates),
    )


async def _rate(server: Server, verb: str, work: Coroutine[Any, Any, T]) -> tuple[T, Rate]:
    began = time.perf_counter()
    result, counts = await server.counted(work)
    seconds = time.perf_counter() - began
    messages = result if isinstance(result, int) else len(cast("list[str]", result))
    return result, Rate(verb, messages, seconds, Cost.of(counts, messages), 0.0)


async def _baseline(store: Store, rate: Rate) -> float:
    """The seconds that the store needs for the same messages in groups of the same size."""
    place = uuid.uuid4().hex
    group = max(1, round(1 / rate.cost.changes))
    if rate.verb == "ack":
        await _states(store, place, rate.messages, group, None)
    began = time.perf_counter()
    if rate.verb == "put":
        await _bodies(store, place, rate.messages, group)
    elif rate.verb == "receive":
        await _states(store, place, rate.messages, group, None)
    else:
        await _states(store, place, rate.messages, group, 1)
    return time.perf_counter() - began


async def _bodies(store: Store, place: str, messages: int, group: int) -> None:
    sequence = Partition(SEQUENCES, place)
    before: int | None = None
    for first in range(0, messages, group):
        numbers = range(first, min(first + group, messages))
        change = Change(sequence, [RowChange("ids", {"next": before}, {"next": numbers.stop})])
        assert await store.change([change]) == [APPLIED]
        before = numbers.stop
        rows = [Row(number, {"body": BODY, "enqueued_at": number}) for number in numbers]
        assert await store.write([Write(_bucket(BODIES, place, first), rows)]) == [None]
        await store.read([Span(Partition(POINTERS, place))])


async def _states(store: Store, place: str, messages: int, group: int, delivery: int | None) -> None:
    """First claims, or, of what was delivered, acks."""
    for first in range(0, messages, group):
        numbers = range(first, min(first + group, messages))
        if delivery is None:
            values: dict[str, Any] = {"delivery": 1, "revision": 1, "visible_at": 1, "duration": 1, "claim": place}
            await store.read([Span(Partition(SEQUENCES, place)), Span(Partition(POINTERS, place))])
        else:
            values = {"settled": "acked", "settled_at": 1}
        rows = [RowChange(number, {"delivery": delivery}, values) for number in numbers]
        assert await store.change([Change(_bucket(STATES, place, first), rows)]) == [APPLIED]


def _bucket(table: Any, place: str, number: int) -> Partition:
    return Partition(table, f"{place}.{number // BUCKET_ROWS}")
