"""Attacks on a receive of a databag that looks several times before it locks once, and at much at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair import limits
from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import Run, cut
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_LOCKS, BAG_MESSAGES
from angelhair.engine.store import Span, Store, Table
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import HOUR_MS, SteppedClock, new_world, played, server
from tests.faults import Between, FaultyStore, Item

SECOND_MS = 1_000
POLLS = 20


async def create(engine: Engine, **settings: int) -> None:
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG, **settings))  # type: ignore[arg-type]


async def put(engine: Engine, count: int, body: bytes = b"m", at_once: int = 20) -> list[MessageId]:
    found: list[MessageId] = []
    while len(found) < count:
        outcomes = await engine.put("shop", "bag", [NewMessage(body)] * min(at_once, count - len(found)))
        for outcome in outcomes:
            assert isinstance(outcome, MessageId)
            found.append(outcome)
    return found


async def receive(engine: Engine, most: int) -> list[Delivery]:
    (found,) = await engine.receive("shop", "bag", [Ask(most)])
    assert isinstance(found, list)
    return found


async def delete(engine: Engine, *messages: MessageId) -> None:
    assert await engine.ack("shop", "bag", [str(message) for message in messages]) == [None] * len(messages)


class Counted(Between):
    """Rows of messages that were read, what the bodies of those that are not deleted come to, and calls that read
    some."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.begin()

    def begin(self) -> None:
        self.calls = self.spans = self.rows = self.bytes = 0

    async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
        found = await super()._pass(verb, items)
        if verb == "read":
            some = [
                slice_ for item, slice_ in zip(items, found, strict=True)
                if isinstance(item, Span) and item.partition.table is BAG_MESSAGES
            ]
            self.calls += bool(some)
            self.spans += len(some)
            self.rows += sum(len(slice_.rows) for slice_ in some)
            there = [row for slice_ in some for row in slice_.rows if row.values.get("deleted") is None]
            self.bytes += sum(len(row.values.get("body") or b"") for row in there)
        return found


@played
async def test_a2_no_message_comes_twice_in_one_receive_while_partitions_are_cut_anew() -> None:
    """A receive has found too few in its first look, and looks on before it locks anything. Meanwhile it is time for a
    sync, which cuts finer. The runs of now are none that were looked at, so their messages are found once more; both
    the old run and the new ones in it are unlocked, both are locked by one change, and each message is given twice in
    one answer."""
    clock, store = new_world()
    faulty = FaultyStore(store)
    engine, operator = server(faulty, clock), server(store, clock)
    await create(engine, min_partitions=16, max_partitions=64, visibility_timeout_ms=30 * SECOND_MS)
    await put(engine, 100, at_once=1)
    await operator.change_queue("shop", "bag", {"min_partitions": 64})
    clock.ms += limits.BAG_SYNC_MS - 10

    async def time_for_a_sync() -> None:
        clock.ms += 20
        assert (await engine.partitions("shop", "bag")).partitions == 64

    faulty.next("read", BAG_MESSAGES, time_for_a_sync)
    times = Counter(delivery.id for delivery in await receive(engine, 1_000))
    assert sum(times.values()) == len(times), f"{len(times)} messages came {sum(times.values())} times"


@pytest.mark.parametrize(
    ("verb", "table", "item"), [("read", BAG_MESSAGES, 1), ("change", BAG_LOCKS, 0)], ids=["before", "at the lock"]
)
@played
async def test_d7_what_was_deleted_here_after_the_first_look_is_not_given(verb: str, table: Table, item: int) -> None:
    """`BAG_DELETED`: deletes that a server has confirmed are remembered, so that it gives none of these messages though
    it had read them before. What is read is compared with them once, when it is read; between the first look and the
    lock there are up to two further looks now, and the write of the lock."""
    clock, store = new_world()
    faulty = FaultyStore(store)
    engine = server(faulty, clock)
    await create(engine, min_partitions=16, max_partitions=16, visibility_timeout_ms=SECOND_MS)
    first = await put(engine, 200, at_once=1)
    assert len(await receive(server(store, clock), 1_000)) == 200
    clock.ms += 2 * SECOND_MS
    seen = 0

    def is_it(_: Item) -> bool:
        nonlocal seen
        seen += 1
        return seen > item

    async def deleted() -> None:
        await delete(engine, *first)

    faulty.next(verb, table, deleted, when=is_it)
    found = await receive(engine, 1_000)
    assert not found, f"{len(found)} were given after their delete was confirmed by the same server"


async def read_by_a_poll(waiting: int, body: bytes) -> tuple[int, int]:
    """Rows that a receive reads for nothing, and the bytes of their bodies, when so many messages wait behind locks of
    every second partition and the others are empty."""
    clock, store = new_world()
    counted = Counted(store)
    engine = server(counted, clock)
    await create(engine, min_partitions=1_000, max_partitions=1_000, visibility_timeout_ms=SECOND_MS)
    await put(engine, 2 * waiting, body, at_once=1_000)
    for _ in range(500):
        # Whose turn comes is locked for long, and the next one for a second.
        await engine.receive("shop", "bag", [Ask(1, 12 * HOUR_MS)])
        await receive(engine, 1)
    for _ in range(100):
        clock.ms += SECOND_MS
        found = await receive(engine, 1_000)
        await delete(engine, *(delivery.id for delivery in found))
        await engine.step("shop", "bag")
        if not found:
            break
    counted.begin()
    for _ in range(POLLS):
        clock.ms += SECOND_MS
        assert await receive(engine, 10) == []
    return counted.rows // POLLS, counted.bytes // POLLS


@played
async def test_d5_a_poll_does_not_read_what_waits_behind_locks() -> None:
    """D5: get does not grow with depth. Every second partition is locked for long, and thousands wait behind these
    locks; the others are empty. As nothing was found in those, little is expected, and all of a block is read with one
    range, from the first that is unlocked to the last: every poll reads all that waits."""
    few, many = (await read_by_a_poll(2_000, b"m"))[0], (await read_by_a_poll(16_000, b"m"))[0]
    assert many <= limits.BAG_LOOK_MOST_ROWS + few, f"{many} rows, and {few} where an eighth waits"


@played
async def test_d5_a_poll_does_not_read_the_bodies_of_what_waits_behind_locks() -> None:
    """As above, with fewer messages that are large."""
    _, read = await read_by_a_poll(1_000, b"m" * 20_000)
    assert read <= 2 * limits.BAG_LOOK_BYTES, f"{read // 1_000_000} MB for nothing"


async def read_after_a_rush(messages: int) -> int:
    """Rows that are read for ten of so many, by who has found nothing just before they came."""
    clock, store = new_world()
    counted = Counted(store)
    engine = server(counted, clock)
    await create(engine)
    for _ in range(2):
        assert await receive(engine, 10) == []
    await put(engine, messages, at_once=1_000)
    clock.ms += 2 * SECOND_MS
    counted.begin()
    assert len(await receive(engine, 10)) == 10
    return counted.rows


def test_d5_what_who_expects_nothing_reads_of_a_rush_does_not_grow_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """D5: get does not grow with depth. Who has found nothing looks at all epochs of all blocks at once; each read is
    bounded, and how many there are is not: ten messages of a backlog of sixty epochs are sixty times sixteen reads, in
    one call, of 64 rows each."""
    monkeypatch.setattr(limits, "BAG_EPOCH_MESSAGES", 64)
    few, many = (asyncio.run(read_after_a_rush(messages)) for messages in (16_000, 160_000))
    assert many <= limits.BAG_BLOCKS * limits.BAG_LOOK_MOST_ROWS, f"{many} rows, and {few} of a tenth"


LOW, HIGH = range(64), range(192, 256)
"""Slices of a block."""


async def put_to(engine: Engine, block: int, slices: range, count: int) -> list[MessageId]:
    """Puts until so many lie there; the others are deleted."""
    kept: list[MessageId] = []
    while len(kept) < count:
        messages = await put(engine, 320, at_once=320)
        places = {message: divmod(ids.slice_of(message.number), ids.BLOCK_SLICES) for message in messages}
        good = [each for each in messages if places[each][0] == block and places[each][1] in slices]
        kept += good[: count - len(kept)]
        await delete(engine, *(message for message in messages if message not in set(kept)))
    return kept


def run_of(message: MessageId) -> Run:
    return next(run for run in cut(1_000) if run.first <= ids.slice_of(message.number) <= run.last)


async def served_before(engine: Engine, clock: SteppedClock) -> Counter[Run]:
    """How often partitions in the beginning of a block were served, until one at its end was, in which a message has
    waited for longer."""
    await create(engine, visibility_timeout_ms=SECOND_MS)
    for _ in range(2):
        assert await receive(engine, 10) == []
    (old,) = await put_to(engine, 3, HIGH, 1)
    await put_to(engine, 3, LOW, 30)
    served: Counter[Run] = Counter()
    for _ in range(20):
        clock.ms += 2 * SECOND_MS
        found = [delivery.id for delivery in await receive(engine, 10)]
        if old in found:
            break
        await delete(engine, *found)
        await put_to(engine, 3, LOW, len(found))
        served.update({run_of(message) for message in found})
    return served


def test_d3_what_lies_at_the_end_of_a_block_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """D3: each once before any twice. Where little is expected all of a block is read from its lowest slice on, up to a
    page; if enough was found by then the rest is not read. It is so the next time as well, and those in the beginning,
    if something comes to them, are served again and again before those at the end are once."""
    monkeypatch.setattr(limits, "BAG_LOOK_MOST_ROWS", 128)
    clock, store = new_world()
    served = asyncio.run(served_before(server(store, clock), clock))
    assert max(served.values(), default=0) <= 1, f"{max(served.values())} times"


def block_of(message: MessageId) -> int:
    return ids.block_of(ids.slice_of(message.number))


@played
async def test_d4_partitions_do_not_become_more_while_nothing_waits() -> None:
    """`docs/databags.md`: the number is doubled if a receive got less than it asked for while messages waited behind
    locks. There is one message, in an epoch that is sealed; whoever asks for one has enough when that is read, and the
    open epoch, in which nothing is, is not looked at. So its lock says that others may be left; and while it is worked
    on for an hour every poll says that messages wait, and every sync doubles the number, up to the most."""
    clock, store = new_world()
    engine = server(store, clock)
    await create(engine, min_partitions=64, max_partitions=4_096, visibility_timeout_ms=HOUR_MS)
    (only,) = await put(engine, 1)
    for _ in range(1_000):
        (other,) = await put(engine, 1)
        await delete(engine, other)
        if block_of(other) == block_of(only):
            break
    clock.ms += limits.BAG_EPOCH_AGE_MS + SECOND_MS
    await engine.step("shop", "bag")
    assert [delivery.id for delivery in await receive(engine, 1)] == [only]
    numbers: list[int] = []
    for _ in range(8):
        assert await receive(engine, 1) == []
        clock.ms += limits.BAG_SYNC_MS
        numbers.append((await engine.partitions("shop", "bag")).partitions)
    assert max(numbers) == 64, numbers
