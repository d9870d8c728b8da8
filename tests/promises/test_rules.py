"""The rules that keep the promises: R1, R3 to R6. R2 is about Cassandra and lives in tests/cluster."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, POINTERS, SEQUENCES, STATES, WAKES
from angelhair.errors import OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import MessageId, NewMessage, QueueSettings
from tests.faults import UNAVAILABLE
from tests.promises.steps import finish_around
from tests.queues import DAY, HOUR, MINUTE, SECOND, YEAR, World, numbers

# --- R1: late writes without clocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("history_ms", [0, DAY])
@pytest.mark.parametrize(("verb", "table"), [("write", BODIES), ("read", POINTERS)])
async def test_r01_putter_suspended_anywhere(world: World, verb: str, table: object, history_ms: int) -> None:
    """Naive: confirm after the write. The putter is suspended before its write, or between write and confirmation,
    until its bucket is finished, or even dropped. Whatever it is told then, a confirmed message is delivered once."""
    server, putter = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=5 * SECOND, history_ms=history_ms)
    await server.put("orders")
    reservation = await putter.engine.reserve(world.account, "orders", 1)
    await server.put("orders", count=2)
    putter.store.next(verb, table, lambda: finish_around(server))  # type: ignore[arg-type]
    (outcome,) = await putter.engine.put_reserved(reservation, [NewMessage(b"overslept")])
    assert isinstance(outcome, MessageId)
    await server.work("orders", 30 * SECOND)
    got = await server.drain("orders")
    await server.work("orders", 30 * SECOND)
    got += await server.drain("orders")
    if verb == "write":
        assert [(item.id, item.body) for item in got] == [(outcome, b"overslept")]
    else:
        # Written in time: it was delivered and acked while its putter slept. Confirming it is the truth; a second
        # delivery is allowed only under a new id, when nothing is left of the bucket that could tell.
        assert [(item.id, item.body) for item in got] == ([] if outcome.number == 1 else [(outcome, b"overslept")])


async def test_r01_bucket_is_not_finished_over_an_admission(world: World) -> None:
    """Naive: finish what was found done. Between that look and the flag a putter admits its message."""
    server, putter = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=5 * SECOND, visibility_timeout_ms=HOUR)
    (delayed,) = await server.put("orders")
    reservation = await putter.engine.reserve(world.account, "orders", 1)
    await server.put("orders")
    (first, *_) = await server.receive("orders", 2)
    assert first.id.number == delayed
    for _ in range(3):
        await server.work("orders", 5 * SECOND)
        await server.receive("orders")
    assert (await world.marks("orders")).settled == 1
    assert await server.ack("orders", first) == [None]

    async def admit() -> None:
        (outcome,) = await putter.engine.put_reserved(reservation, [NewMessage(b"just in time")])
        assert outcome == MessageId(0, 1)

    server.store.next("change", STATES, admit, when=lambda change: "finished" in change.set_flags)
    await server.work("orders", 5 * SECOND)
    states, _ = await world.bucket("orders", 0)
    assert states.flags.get("finished") is None
    assert [item.body for item in await server.drain("orders")] == [b"just in time"]
    await server.work("orders", 5 * SECOND)
    assert (await world.marks("orders")).repair == 1


async def test_r01_put_that_keeps_meeting_finished_buckets_says_that_it_does_not_know(world: World) -> None:
    """Naive: try for ever, or claim that it did not happen."""
    server, putter = world.server(), world.server()
    await server.create("orders", bucket_size=1, repair_timeout_ms=SECOND, history_ms=0)

    async def finish() -> None:
        await server.put("orders")
        await finish_around(server)

    putter.store.next("write", BODIES, finish, times=100)
    (outcome,) = await putter.put_outcomes("orders", [NewMessage(b"unlucky")])
    assert isinstance(outcome, OutcomeUnknown)


# --- R3: low-water marks and the wake index ---------------------------------------------------------------------------


async def test_r03_entry_is_written_before_the_claim(world: World) -> None:
    """Naive: claim first. A server that dies in between leaves a message that nobody will look for."""
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    order: list[str] = []

    async def note_wake() -> None:
        order.append("wake")

    async def note_claim() -> None:
        order.append("claim")

    server.store.next("write", WAKES, note_wake, after=True, times=100)
    server.store.next("change", STATES, note_claim, when=lambda change: bool(change.rows), times=100)
    await server.receive("orders")
    assert order == ["wake", "claim"]


async def test_r03_without_an_entry_nothing_is_claimed(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    server.store.next("write", WAKES, UNAVAILABLE, times=100)
    with pytest.raises(Unavailable):
        await server.receive("orders")
    server.store.heal()
    assert [(item.id.number, item.deliveries) for item in await server.receive("orders")] == [(0, 1)]


async def test_r03_entry_behind_the_mark_is_written_again_above_it(world: World) -> None:
    """Naive: write and forget. The worker had passed the slot before the entry was there."""
    server, worker = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=2 * SECOND)
    await server.put("orders")
    server.store.next("write", WAKES, lambda: worker.work("orders", 2 * MINUTE, every_ms=10 * SECOND))
    assert len(await server.receive("orders")) == 1
    world.wait(2 * SECOND)
    fresh = world.server()
    got: list[int] = []
    for _ in range(3):
        got += numbers(await fresh.take("orders"))
        world.wait(2 * SECOND)
    assert got == [0]


async def test_r03_many_buckets_due_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the index is bounded; what does not fit into one comes with the next, and nothing is left out."""
    monkeypatch.setattr(limits, "WAKE_VISITS", 5)
    server = world.server()
    await server.create("orders", bucket_size=1, visibility_timeout_ms=10 * SECOND, repair_timeout_ms=SECOND)
    count = 4 * limits.WAKE_VISITS
    put = await server.put("orders", count=count)
    held: list[int] = []
    while len(held) < count:
        held += numbers(await server.receive("orders", count))
        await server.step("orders")
    other = world.server()
    world.wait(15 * SECOND)
    acked: list[int] = []
    for _ in range(count):
        acked += numbers(await other.take("orders", 10))
        if len(acked) == count:
            break
        world.wait(SECOND)
        await other.step("orders")
    assert sorted(acked) == put


# --- R4: a remembered "nothing there" has a bounded age ---------------------------------------------------------------


async def test_r04_forgotten_bucket_is_looked_into_again(world: World) -> None:
    """Naive: trust the index. A suspended server's claim lands long after its own entry was read and dropped; the
    worker's rows ahead of every unfinished bucket find it all the same."""
    server, sleeper = world.server(), world.server()
    await server.create("orders", bucket_size=4, visibility_timeout_ms=5 * SECOND, repair_timeout_ms=5 * SECOND)
    await server.put("orders", count=2)
    assert numbers(await server.take("orders", 1)) == [0]
    sleeper.store.next("change", STATES, lambda: server.work("orders", 10 * MINUTE, every_ms=20 * SECOND))
    await sleeper.receive("orders", 1)
    got: list[int] = []
    for _ in range(80):
        await server.work("orders", 2 * MINUTE, every_ms=30 * SECOND)
        got += numbers(await server.take("orders", 10))
        if got:
            break
    assert got == [1]


async def test_r04_queue_description_ages_out(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await other.put("orders")
    await server.engine.change_queue(world.account, "orders", {"delay_ms": DAY})
    world.wait(limits.CATALOG_AGE_MS - 1)
    assert (await other.engine.find_queue(world.account, "orders")).settings.delay_ms == 0
    world.wait(1)
    assert (await other.engine.find_queue(world.account, "orders")).settings.delay_ms == DAY


# --- R5: wall clocks neither destroy nor hide -------------------------------------------------------------------------


async def test_r05_hidden_by_a_fast_clock_it_comes_back_in_time(world: World) -> None:
    """Naive: compare `visible_at` with the own clock. A server a year ahead would hide a message for a year."""
    fast, good = world.server(ahead_ms=YEAR), world.server()
    await good.create("orders", visibility_timeout_ms=30 * SECOND, retention_ms=None)
    await good.put("orders")
    assert len(await fast.receive("orders")) == 1
    got: list[int] = []
    waited = 0
    while not got and waited < 5 * MINUTE:
        await good.work("orders", 5 * SECOND)
        waited += 5 * SECOND
        got += numbers(await good.receive("orders"))
    assert got == [0]
    assert 30 * SECOND <= waited <= 3 * MINUTE


async def test_r05_nothing_is_dropped_while_the_clock_is_wrong(world: World) -> None:
    """Naive: drop when the own clock says that the history is over."""
    fast, good = world.server(ahead_ms=YEAR), world.server()
    await good.create("orders", bucket_size=2, history_ms=DAY)
    await good.put("orders", count=4)
    await good.drain("orders")
    await fast.work("orders", 20 * SECOND)
    marks = await world.marks("orders")
    assert (marks.repair, marks.floor) == (2, 0)


async def test_r05_clock_that_jumps_between_checks(world: World) -> None:
    """The clock was good at the last check and has jumped since: what it says is not acted upon."""
    server = world.server()
    await server.create("orders", retention_ms=HOUR)
    await server.put("orders")
    await server.step("orders")
    server.clock.ahead_ms = DAY
    assert numbers(await server.receive("orders")) == [0]


async def test_r05_finished_below_the_floor_is_dropped_whatever_the_clock(world: World) -> None:
    """What the floor has passed is decided: a worker with a wrong clock finishes the drop that a good one began."""
    good, wrong = world.server(), world.server(ahead_ms=-HOUR)
    await good.create("orders", bucket_size=2, history_ms=0)
    await good.put("orders", count=4)
    await good.drain("orders")
    good.store.next("drop", BODIES, UNAVAILABLE, times=100)
    await good.work("orders", 5 * SECOND)
    marks = await world.marks("orders")
    assert (marks.floor, marks.dropped) == (2, 0)
    await wrong.work("orders", 20 * SECOND)
    assert (await world.marks("orders")).dropped == 2


# --- R6: incarnations -------------------------------------------------------------------------------------------------


async def test_r06_deleted_under_a_put_that_was_under_way(world: World) -> None:
    """Naive: confirm a message into a queue that is gone. The ids were taken before; the write comes after."""
    server, other = world.server(), world.server()
    await server.create("orders")
    reservation = await server.engine.reserve(world.account, "orders", 1)
    await other.engine.delete_queue(world.account, "orders")
    await other.bury()
    (outcome,) = await server.engine.put_reserved(reservation, [NewMessage(b"-")])
    assert isinstance(outcome, Exception)


async def test_r06_deletion_is_finished_by_whoever_finds_it(world: World) -> None:
    """Naive: a half-deleted queue blocks its name for ever."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=2)
    await server.put("orders", count=5)
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=100)
    with pytest.raises(OutcomeUnknown):
        await server.engine.delete_queue(world.account, "orders")
    with pytest.raises(QueueNotFound):
        await other.receive("orders")
    assert await other.engine.list_queues(world.account) == ([], False)
    await other.create("orders", bucket_size=3)
    assert await other.receive("orders", 10) == []
    server.store.heal()
    world.wait(MINUTE)
    await server.put("orders", b"new")
    assert [item.body for item in await other.receive("orders", 10)] == [b"new"]


async def test_r06_abandoned_deletion_is_finished_by_the_gravedigger(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=2)
    await server.put("orders", count=5)
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=100)
    with pytest.raises(OutcomeUnknown):
        await server.engine.delete_queue(world.account, "orders")
    world.wait(limits.GRAVE_PATIENCE_MS)
    await other.bury()
    other.store.touched.update(server.store.touched)
    left = await world.dump()
    assert [key for key in left if key[0] in ("bodies", "states", "queues")] == []
    # The mark that the lane was deleted stays for a month, in the way of a creation that lands late.
    marks = [rows for (table, _), (_, rows) in left.items() if table == "sequences"]
    assert marks == [{"ids": {"next": 0, "deleted": 1}}]


async def test_r06_grave_of_a_queue_that_lives_buries_nothing(world: World) -> None:
    """A deletion that died after its note: the queue lives, and so do its messages."""
    server, other = world.server(), world.server()
    queue = await server.create("orders")
    await server.put("orders", b"alive")
    server.store.next("change", None, UNAVAILABLE, when=lambda change: change.partition.table.name == "queues")
    with pytest.raises(Unavailable):
        await server.engine.delete_queue(world.account, "orders")
    world.wait(limits.GRAVE_PATIENCE_MS)
    await other.bury()
    assert [item.body for item in await other.receive("orders")] == [b"alive"]
    assert queue.incarnation not in await server.graves()


async def test_r06_two_create_the_same_queue(world: World) -> None:
    """Naive: last writer wins. One incarnation, whoever was first, and one of them made it."""
    servers = [world.server() for _ in range(4)]
    made = await asyncio.gather(
        *(server.engine.create_queue(world.account, "orders", QueueSettings(bucket_size=7)) for server in servers)
    )
    assert len({queue.incarnation for queue, _ in made}) == 1
    assert sum(new for _, new in made) == 1


async def test_r06_two_delete_at_once(world: World) -> None:
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders")
    outcomes = await asyncio.gather(
        *(server.engine.delete_queue(world.account, "orders") for server in servers), return_exceptions=True
    )
    assert all(outcome is None or isinstance(outcome, QueueNotFound) for outcome in outcomes)
    assert None in outcomes
    with pytest.raises(QueueNotFound):
        await servers[0].put("orders")
