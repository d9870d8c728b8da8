"""A1, A2, A8, R6, R14 of bucketed queues: workers and receives that lose a race, or whose store fails half way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.schema import BODIES, POINTERS, STATES, WAKES
from angelhair.engine.store import Change, Span, Store
from angelhair.errors import OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import Ask, MessageId, NewMessage
from tests.faults import NEVER_SENT, UNAVAILABLE, Between
from tests.promises.steps import finish_around
from tests.queues import HOUR, MINUTE, SECOND, Server, World, numbers

SETTINGS: dict[str, Any] = {"bucket_size": 2, "repair_timeout_ms": SECOND, "history_ms": 0}
FOR_EVER = 1_000


# --- workers ----------------------------------------------------------------------------------------------------------


async def consume_for_ever(server: Server) -> None:
    for _ in range(30):
        await server.drain("orders")
        await server.work("orders", SECOND)


@pytest.mark.parametrize("mark", ["final", "repair", "wake_done"])
async def test_r06_a_worker_that_slept_until_its_queue_was_buried_brings_no_mark_back(world: World, mark: str) -> None:
    """R6, R14: a mark of a lane that is gone would keep a lane alive for who remembers it."""
    worker, other = world.server(), world.server()
    await worker.create("orders", **SETTINGS)
    incarnation = (await world.queue("orders")).incarnation
    await worker.put("orders", count=5, delay_ms=SECOND)
    world.wait(SECOND)

    async def buried() -> None:
        await other.engine.delete_queue(world.account, "orders")
        await other.bury()

    rule = worker.store.next("change", POINTERS, buried, when=lambda change: change.rows[0].key == mark)
    with pytest.raises(QueueNotFound):
        await consume_for_ever(worker)
    assert rule.happened == 1
    partitions = [places.pointers(incarnation, 0)]
    partitions += [places.states(incarnation, 0, bucket) for bucket in range(3)]
    partitions += [places.bodies(incarnation, 0, bucket) for bucket in range(3)]
    for found in await world.store.read([Span(partition) for partition in partitions]):
        assert not found.rows and all(value is None for value in found.flags.values())


async def test_a08_a_bucket_that_could_not_be_finished_is_finished_later(world: World) -> None:
    """A8: the worker says what it met, and the mark does not pass what is not finished."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", count=4)
    assert len(await server.drain("orders")) == 4
    server.store.next(
        "change", STATES, UNAVAILABLE, when=lambda change: "finished" in change.set_flags, times=FOR_EVER
    )
    with pytest.raises(Unavailable):
        await server.work("orders", 30 * SECOND)
    assert (await world.marks("orders")).repair == 0
    server.store.heal()
    await finish_around(server)
    assert (await world.marks("orders")).repair == 2
    assert await server.drain("orders") == []


async def test_a10_many_buckets_that_wake_at_once_are_woken_in_portions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A10: a step visits a bounded number of buckets, and the next one goes on where it stopped."""
    monkeypatch.setattr(limits, "WAKE_VISITS", 1)
    server, consumer = world.server(), world.server()
    await server.create("orders", **SETTINGS)
    for second in range(1, 7):
        await server.put("orders", count=2, delay_ms=second * 10 * SECOND)
    await server.work("orders", 5 * SECOND)
    assert await consumer.receive("orders", 100) == []
    world.wait(MINUTE)
    await server.work("orders", 30 * SECOND)
    marks = await world.marks("orders")
    assert marks.wake_done == marks.wake_raised
    assert sorted(numbers(await consumer.drain("orders"))) == list(range(12))


async def test_r14_an_index_that_could_not_be_dropped_is_dropped_later(world: World) -> None:
    """R14: the mark that says what is gone follows only when it is."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"late", delay_ms=SECOND)
    rule = server.store.next("drop", WAKES, UNAVAILABLE, times=2)
    before = (await world.marks("orders")).wake_dropped
    period_ms = limits.WAKE_PERIOD_SLOTS * limits.WAKE_SLOT_MS
    await server.work("orders", 2 * period_ms, every_ms=MINUTE)
    assert rule.happened == 2
    after = (await world.marks("orders")).wake_dropped
    assert after >= before + 2
    incarnation = (await world.queue("orders")).incarnation
    for found in await world.store.read([Span(places.wakes(incarnation, 0, old)) for old in range(before, after)]):
        assert not found.rows
    assert [item.body for item in await server.drain("orders")] == [b"late"]


async def test_a_finished_bucket_above_the_mark_holds_nothing(world: World) -> None:
    """Whoever counts does not count it, though an older bucket keeps the mark below it."""
    server = world.server()
    await server.create("orders", **{**SETTINGS, "history_ms": HOUR})
    await server.put("orders", count=6)
    (held,) = await server.receive("orders", 1, HOUR)
    assert held.id.number == 0
    assert len(await server.drain("orders")) == 5
    await finish_around(server)
    states, _ = await world.bucket("orders", 1)
    assert states.flags.get("finished") is not None and (await world.marks("orders")).repair == 0
    stats = await world.server().engine.stats(world.account, "orders")
    assert (stats.visible, stats.in_flight, stats.delayed, stats.dead) == (0, 1, 0, 0)


async def test_a08_a_worker_that_can_remember_only_few_buckets_finishes_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A8: what is remembered of full and of acked buckets, and of deliveries, is only there for speed."""
    monkeypatch.setattr(limits, "FULL_BUCKETS", 1)
    # Not fewer than the buckets that one step looks into: else it would forget what it has just finished.
    monkeypatch.setattr(limits, "WATCHED_ROWS", limits.LOW_BUCKETS)
    server = world.server()
    await server.create("orders", **{**SETTINGS, "visibility_timeout_ms": 5 * SECOND})
    await server.put("orders", count=12)
    first = await server.receive("orders", 12)
    assert len(first) == 12
    await server.work("orders", 4 * SECOND)
    assert await server.receive("orders", 12) == [], "in flight, whoever watches them"
    world.wait(SECOND)
    await server.work("orders", SECOND)
    again = await server.drain("orders")
    assert sorted(numbers(again)) == list(range(12))
    await finish_around(server)
    assert (await world.marks("orders")).repair == 6


# --- claims -----------------------------------------------------------------------------------------------------------


def claiming(change: Change) -> bool:
    return any((row.values or {}).get("claim") is not None for row in change.rows)


async def test_a01_a_receive_that_others_race_for_every_message_shares_them(world: World) -> None:
    """A1, A2: each comes to one of the two, however often a claim is refused."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=16)
    await server.put("orders", count=12)
    theirs: list[int] = []

    async def faster() -> None:
        theirs.extend(numbers(await other.receive("orders", 1, HOUR)))

    server.store.next("change", STATES, faster, when=claiming, times=FOR_EVER)
    mine = numbers(await server.receive("orders", 12, HOUR))
    server.store.heal()
    assert len(theirs) > limits.CLAIM_ROUNDS
    mine += numbers(await server.receive("orders", 12, HOUR))
    assert sorted([*mine, *theirs]) == list(range(12))


async def test_a02_claims_that_fail_in_two_ways_are_said_to_be_unknown(world: World) -> None:
    """A2: of one bucket nobody knows whether its messages were claimed, of the other it is sure that they were not. All
    come in the end, and none twice at once."""
    server = world.server()
    await server.create("orders", bucket_size=2, visibility_timeout_ms=MINUTE)
    await server.put("orders", count=4)
    first = places.states((await world.queue("orders")).incarnation, 0, 0)

    def claiming_first(change: Change) -> bool:
        return claiming(change) and change.partition == first

    server.store.next("change", STATES, NEVER_SENT, when=claiming_first, times=FOR_EVER)
    server.store.next("change", STATES, UNAVAILABLE, when=claiming, times=FOR_EVER)
    (outcome,) = await server.engine.receive(world.account, "orders", [Ask(4)])
    assert isinstance(outcome, OutcomeUnknown)
    server.store.heal()
    world.wait(MINUTE)
    assert sorted(numbers(await server.receive("orders", 4))) == [0, 1, 2, 3]
    assert await world.server().receive("orders", 4) == []


async def test_r14_a_delayed_message_whose_bucket_was_dropped_since_it_was_found_is_not_given(world: World) -> None:
    """R14, A2: it was found in a bucket that readers have passed. Before it is claimed, another has received it, and
    its bucket is finished and gone."""
    server, other = world.server(), world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"late", delay_ms=30 * SECOND)
    await server.put("orders", count=4)
    assert len(await server.drain("orders")) == 4
    assert (await world.marks("orders")).reader >= 1
    world.wait(30 * SECOND)
    theirs: list[bytes] = []

    async def dropped() -> None:
        for _ in range(6):
            theirs.extend(item.body for item in await other.drain("orders"))
            await other.work("orders", 5 * SECOND)
        assert (await world.marks("orders")).dropped >= 1

    async def found() -> None:
        server.store.next("read", POINTERS, dropped)

    server.store.next("read", BODIES, found, when=lambda span: span.partition.key.endswith(".0"))
    assert await server.receive("orders", 10) == []
    assert theirs == [b"late"]


async def test_a06_a_delayed_message_that_comes_late_into_a_bucket_that_nobody_ever_read_is_given(world: World) -> None:
    """A6, A10: its writer slept while all around it expired, and the bucket was closed without a reader. It is not
    final yet: the id of another put that failed is missing."""
    sleeper, server = world.server(), world.server()
    await server.create("orders", bucket_size=3, retention_ms=MINUTE, repair_timeout_ms=HOUR, history_ms=0)

    async def expire() -> None:
        await server.put("orders", count=1)
        server.store.next("write", BODIES, UNAVAILABLE, times=limits.WRITE_ATTEMPTS)
        (failed,) = await server.put_outcomes("orders", [NewMessage(b"failed")])
        assert isinstance(failed, Unavailable)
        await server.put("orders", count=3)
        await server.work("orders", 2 * MINUTE)
        marks = await world.marks("orders")
        assert (marks.reader, marks.final) == (2, 0)

    sleeper.store.next("write", BODIES, expire)
    assert await sleeper.put("orders", b"late", delay_ms=5 * MINUTE) == [0]
    assert await server.receive("orders", 10) == []
    await server.work("orders", 3 * MINUTE - SECOND)
    assert await server.receive("orders", 10) == []
    world.wait(2 * SECOND)
    got = [item.body for item in await server.drain("orders")]
    for _ in range(3):
        await server.work("orders", 10 * SECOND)
        got += [item.body for item in await server.drain("orders")]
    assert got == [b"late"]


# --- erasing ----------------------------------------------------------------------------------------------------------


class LaterWins(Between):
    """A store that goes by clocks: what was written with a fast one stays, and a write after it seems to succeed."""

    def __init__(self, store: Store, times: int) -> None:
        super().__init__(store)
        self.times = times

    async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
        if verb == "write" and self.times and all(item.partition.table is BODIES for item in items):
            self.times -= 1
            return [None] * len(items)
        return await super()._pass(verb, items)


async def body_of(world: World, number: int) -> object:
    _, found = await world.bucket("orders", number // 2)
    return found[number].values.get("body")


async def erase(server: Server, number: int) -> bool:
    return await server.engine.erase(server.world.account, "orders", MessageId(0, number))


async def test_what_a_fast_clock_wrote_is_overwritten_until_it_is_gone(world: World) -> None:
    """Naive: to believe the store that it has overwritten it, and tell who must forget that it is forgotten."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"who", b"else")
    once = world.server(store=LaterWins(world.store, 1))
    assert await erase(once, 0)
    assert await body_of(world, 0) == b""
    always = world.server(store=LaterWins(world.store, FOR_EVER))
    with pytest.raises(OutcomeUnknown, match="clock"):
        await erase(always, 1)
    assert await body_of(world, 1) == b"else"
    assert await server.receive("orders", 10) == [], "nobody is given it all the same"
    assert await erase(server, 1) and await body_of(world, 1) == b""


async def test_an_erasure_that_others_always_come_before_leaves_the_message_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", *(b"%d" % number for number in range(8)))
    monkeypatch.setattr(limits, "ACK_ROUNDS", 3)
    before = iter(range(3))

    async def faster() -> None:
        assert await erase(other, next(before))

    server.store.next("change", POINTERS, faster, times=3)
    with pytest.raises(Unavailable):
        await erase(server, 7)
    assert await body_of(world, 7) == b"7"
    assert sorted(numbers(await other.drain("orders"))) == [3, 4, 5, 6, 7]
