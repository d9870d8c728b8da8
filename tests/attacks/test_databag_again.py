"""Attacks on a receive of a databag that looks several times before it locks once, and at much at a time."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from angelhair import limits
from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import Run, cut
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_LOCKS, BAG_MESSAGES
from angelhair.engine.store import Table
from angelhair.model import MessageId
from tests.attacks.bags import SECOND_MS, create, delete, put, receive
from tests.attacks.worlds import HOUR_MS, SteppedClock, new_world, played, server
from tests.faults import FaultyStore, Item


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
