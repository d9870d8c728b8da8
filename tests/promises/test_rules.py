"""The rules that keep the promises: R1, R3 to R7, R10, R11, R13, R14, R17. R2 is about Cassandra: tests/cluster."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, KEYS, POINTERS, SEQUENCES, STATES, WAKES
from angelhair.errors import InvalidReceipt, OutcomeUnknown, QueueNotFound, StaleReceipt, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import DAY, HOUR, MINUTE, SECOND, YEAR, Server, World, numbers

# --- R1: late writes without clocks -----------------------------------------------------------------------------------


async def finish_around(server: Server, **settings: int) -> None:
    """Everything but the ids that others hold is acked, and the worker goes as far as it can."""
    await server.drain("orders")
    for _ in range(3):
        await server.work("orders", 5 * SECOND)
        await server.drain("orders")
    await server.work("orders", 20 * SECOND)


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
    server.store.next("change", STATES, note_claim, times=100)
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


async def test_r03_many_buckets_due_at_once(world: World) -> None:
    """A look at the index is bounded; what does not fit into one comes with the next, and nothing is left out."""
    server = world.server()
    await server.create("orders", bucket_size=1, visibility_timeout_ms=10 * SECOND, repair_timeout_ms=SECOND)
    count = limits.WAKE_VISITS + 20
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
    with pytest.raises(Unavailable):
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
    with pytest.raises(Unavailable):
        await server.engine.delete_queue(world.account, "orders")
    world.wait(limits.GRAVE_PATIENCE_MS)
    await other.bury()
    other.store.touched.update(server.store.touched)
    assert [key for key in await world.dump() if key[0] in ("bodies", "states", "queues", "sequences")] == []


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
    graves = (await world.dump()).get(("graves", "all"), ({}, {}))[1]
    assert queue.incarnation not in graves


async def test_r06_two_create_the_same_queue(world: World) -> None:
    """Naive: last writer wins. One incarnation, whoever was first, and one of them made it."""
    servers = [world.server() for _ in range(4)]
    made = await asyncio.gather(
        *(server.engine.create_queue(world.account, "orders", (await_settings())) for server in servers)
    )
    assert len({queue.incarnation for queue, _ in made}) == 1
    assert sum(new for _, new in made) == 1


def await_settings():  # type: ignore[no-untyped-def]
    from angelhair.model import QueueSettings

    return QueueSettings(bucket_size=7)


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


# --- R7: transfer -----------------------------------------------------------------------------------------------------


async def exhausted(server: Server, **settings: object) -> None:
    """One poison message in `orders` that has used up its deliveries."""
    await server.create("coffin", bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    await server.create(
        "orders", bucket_size=4, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue="coffin", **settings
    )
    await server.put("orders", b"poison", attributes='{"a":1}')
    await server.receive("orders")
    server.world.wait(2 * SECOND)
    assert await server.receive("orders") == []


async def settle_moves(world: World, server: Server) -> None:
    await world.work("orders", 3 * MINUTE, [server], every_ms=5 * SECOND)


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE, ARRIVE_LATE])
@pytest.mark.parametrize(("verb", "table"), [("change", STATES), ("write", BODIES), ("change", SEQUENCES)])
async def test_r07_moved_once_whatever_fails(world: World, verb: str, table: object, fault: str) -> None:
    """Naive: copy, then delete. Every step fails in every way; the message arrives once, and only there."""
    server = world.server()
    await exhausted(server)
    server.store.next(verb, table, fault, times=limits.SETTLE_ATTEMPTS + 1)  # type: ignore[arg-type]
    try:
        await server.step("orders")
    except (Unavailable, OutcomeUnknown):
        pass
    server.store.heal()
    await settle_moves(world, server)
    await server.store.land()
    await settle_moves(world, server)
    assert await server.receive("orders") == []
    (arrived,) = await server.drain("coffin")
    assert (arrived.body, arrived.attributes, arrived.deliveries) == (b"poison", '{"a":1}', 1)
    assert arrived.origin == f"{world.account}/orders/0-0"


async def test_r07_target_bucket_finished_while_the_mover_slept(world: World) -> None:
    """Naive: write at the reserved id and call it done. Its bucket was finished and dropped meanwhile."""
    server, other = world.server(), world.server()
    await exhausted(server)

    async def finish_target() -> None:
        await other.put("coffin", count=4)
        await other.drain("coffin")
        for _ in range(4):
            await other.work("coffin", 3 * SECOND)
            await other.drain("coffin")

    server.store.next("write", BODIES, finish_target)
    await server.step("orders")
    assert (await world.marks("coffin")).dropped >= 1
    assert [item.body for item in await server.drain("coffin")] == [b"poison"]
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values.get("settled") == "dead"


async def test_r07_target_deleted_on_the_way_gives_the_message_back(world: World) -> None:
    """Naive: a message that is moving to a queue that is no more stays there for ever."""
    server, other = world.server(), world.server()
    await exhausted(server)
    server.store.next("write", BODIES, UNAVAILABLE, times=100)
    await server.step("orders")
    server.store.heal()
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values.get("settled") == "moving"
    await other.engine.delete_queue(world.account, "coffin")
    got: list[bytes] = []
    for _ in range(30):
        await world.work("orders", 5 * SECOND, [other])
        got += [item.body for item in await other.receive("orders", 1, HOUR)]
        if got:
            break
    assert got == [b"poison"]


async def test_r07_rewritten_body_travels(world: World) -> None:
    """Naive: move what was put, not what it was changed to."""
    server = world.server()
    await server.create("elsewhere")
    await server.create("orders")
    await server.put("orders", b"as put")
    (delivery,) = await server.receive("orders")
    (outcome,) = await server.engine.change(world.account, "orders", [(delivery.receipt, 0, b"as changed")])
    assert outcome is None
    assert [item.body for item in await server.engine.peek(world.account, "orders", 5)] == [b"as changed"]
    assert await server.engine.redrive(world.account, "orders", "elsewhere", 10) == 1
    assert [item.body for item in await server.receive("elsewhere")] == [b"as changed"]
    assert [type(item) for item in await server.ack("orders", delivery)] == [StaleReceipt]


async def test_r07_redrive_of_messages_never_delivered(world: World) -> None:
    """They have no state row yet; the move makes one, and no reader can claim them any more."""
    server, reader = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders", bucket_size=4)
    await server.put("orders", count=10)
    assert numbers(await reader.receive("orders", 1, HOUR)) == [0]
    assert await server.engine.redrive(world.account, "orders", "elsewhere", 5) == 5
    assert numbers(await reader.receive("orders", 10, HOUR)) == [6, 7, 8, 9]
    assert len(await server.drain("elsewhere")) == 5


async def test_r07_redrive_races_with_consumers(world: World) -> None:
    """Naive: move what was seen. What was claimed, moved or settled meanwhile is left out, the rest goes."""
    server, consumer = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders", bucket_size=8, visibility_timeout_ms=HOUR)
    await server.put("orders", count=6)

    async def consume() -> None:
        await consumer.take("orders", 2)

    server.store.next("change", STATES, consume)
    assert await server.engine.redrive(world.account, "orders", "elsewhere", 10) == 4
    assert len(await server.drain("elsewhere")) == 4
    assert await server.receive("orders", 10) == []


async def test_r07_redrive_to_a_queue_that_was_made_again(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders")
    await server.put("orders")
    await server.put("elsewhere", b"old")
    await other.engine.delete_queue(world.account, "elsewhere")
    await other.create("elsewhere")
    moved = 0
    for _ in range(3):
        moved += await server.engine.redrive(world.account, "orders", "elsewhere", 10)
    assert moved == 1
    assert numbers(await other.receive("elsewhere", 10)) == [0]


# --- R10: one mechanism for de-duplication ----------------------------------------------------------------------------


async def test_r10_same_key_is_one_message(world: World) -> None:
    """Naive: check, then put. Several servers put the same key at once."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders", repair_timeout_ms=SECOND, bucket_size=4)
    given = await asyncio.gather(*(server.put("orders", b"once", key="k") for server in servers for _ in range(2)))
    assert len({number for group in given for number in group}) == 1
    world.wait(5 * SECOND)
    got = []
    for _ in range(3):
        got += await servers[0].drain("orders")
        await servers[0].work("orders", 5 * SECOND)
    assert [item.body for item in got] == [b"once"]


@pytest.mark.parametrize("table", [KEYS, BODIES, POINTERS])
@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE])
async def test_r10_whoever_finds_it_pending_completes_it(world: World, table: object, fault: str) -> None:
    """Naive: a key that is marked used before the message is there. Its put dies anywhere; the next completes it."""
    server, other = world.server(), world.server()
    await server.create("orders", repair_timeout_ms=SECOND)
    verb = {KEYS: "change", BODIES: "write", POINTERS: "read"}[table]  # type: ignore[index]
    server.store.next(verb, table, fault, times=100)  # type: ignore[arg-type]
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k")])
    assert isinstance(outcome, Unavailable | OutcomeUnknown)
    if fault == LOSE_ANSWER:
        assert isinstance(outcome, OutcomeUnknown) or table is POINTERS
    (number,) = await other.put("orders", b"once", key="k")
    assert await other.put("orders", b"once", key="k") == [number]
    world.wait(SECOND)
    got = await other.drain("orders")
    assert [item.body for item in got] == [b"once"]


async def test_r10_pending_key_whose_bucket_was_finished(world: World) -> None:
    """Naive: complete the write at an id that nobody reads any more. The key moves on to a new id."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND, history_ms=0, dedup_window_ms=HOUR)
    server.store.next("write", BODIES, UNAVAILABLE, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k")])
    assert isinstance(outcome, Unavailable)
    await other.put("orders", count=3)
    await finish_around(other)
    assert (await world.marks("orders")).dropped >= 1
    given = await other.put("orders", b"once", key="k")
    assert given != [0]
    assert await other.put("orders", b"once", key="k") == given
    world.wait(SECOND)
    assert [item.body for item in await other.drain("orders")] == [b"once"]


async def test_r10_window_ends(world: World) -> None:
    """Keys are forgotten after the queue's window. On Cassandra that is its own clock's business: tests/contract."""
    if world.name == "cassandra":
        pytest.skip("Cassandra times the TTL of keys by its own clock, which this world cannot move")
    server = world.server()
    await server.create("orders", dedup_window_ms=MINUTE)
    assert await server.put("orders", b"1", key="k") == [0]
    world.wait(59 * SECOND)
    assert await server.put("orders", b"1", key="k") == [0]
    world.wait(2 * SECOND)
    assert (await server.put("orders", b"2", key="k"))[0] > 0
    assert [item.body for item in await server.drain("orders")] == [b"1", b"2"]


# --- R11: lanes -------------------------------------------------------------------------------------------------------


async def test_r11_sealed_lane_takes_no_puts_and_is_read_to_its_end(world: World) -> None:
    """Naive: drop the lane from the list. A server that did not hear of it puts there; nobody reads it."""
    server, stale = world.server(), world.server()
    await server.create("orders", lanes=4, bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    for _ in range(8):
        await stale.put("orders")
    await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    lanes = set()
    for _ in range(8):
        (outcome,) = await stale.put_outcomes("orders", [NewMessage(b"-")])
        assert isinstance(outcome, MessageId)
        lanes.add(outcome.lane)
    assert lanes == {0}
    assert len(await server.drain("orders")) == 16
    for _ in range(6):
        await server.work("orders", 5 * SECOND)
        await server.drain("orders")
    assert list((await world.queue("orders")).lanes) == [0]
    await server.engine.change_queue(world.account, "orders", {"lanes": 2})
    assert list((await world.queue("orders")).lanes) == [0, 4]


async def test_r11_lane_sealed_in_the_catalog_only(world: World) -> None:
    """Whoever sealed it died before the sequence row knew. A put that still got through is read before the lane ends."""
    server, stale = world.server(), world.server()
    await server.create("orders", lanes=2, bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    await stale.put("orders", count=1)
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=100)
    with pytest.raises(Unavailable):
        await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    put = [await stale.put_outcomes("orders", [NewMessage(b"-")]) for _ in range(4)]
    assert {outcome.lane for (outcome,) in put if isinstance(outcome, MessageId)} == {0, 1}
    other = world.server()
    got = len(await other.drain("orders"))
    for _ in range(6):
        await other.work("orders", 5 * SECOND)
        got += len(await other.drain("orders"))
    assert got == 5
    assert list((await world.queue("orders")).lanes) == [0]


async def test_r11_two_change_the_lanes_at_once(world: World) -> None:
    """Naive: last writer wins. Every lane that was made is known, and none is made twice."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders")
    await asyncio.gather(
        *(server.engine.change_queue(world.account, "orders", {"lanes": 2 + index}) for index, server in enumerate(servers))
    )
    queue = await world.queue("orders")
    assert len(queue.open_lanes) == queue.settings.lanes
    assert queue.lanes_made >= 4
    for _ in range(12):
        await servers[0].put("orders")
    got = await servers[1].drain("orders")
    assert len(got) == 12


# --- R13, R14, R17 ----------------------------------------------------------------------------------------------------


async def test_r13_extending_does_not_change_the_receipt(world: World) -> None:
    """Naive: the receipt carries the revision. Every heartbeat would make it stale."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    for _ in range(5):
        assert await server.extend("orders", delivery, 10 * SECOND) is None
        world.wait(5 * SECOND)
    assert await server.ack("orders", delivery) == [None]


async def test_r13_receipts_belong_to_one_incarnation(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    await server.engine.delete_queue(world.account, "orders")
    await server.create("orders")
    await server.put("orders")
    (fresh,) = await server.receive("orders")
    assert [type(item) for item in await server.ack("orders", delivery, fresh)] == [InvalidReceipt, type(None)]


async def test_r13_receipt_of_a_newer_incarnation_than_remembered(world: World) -> None:
    """Naive: call it forged. The server remembers the old queue; the receipt makes it look again."""
    stale, other = world.server(), world.server()
    await stale.create("orders")
    await stale.put("orders")
    await other.engine.delete_queue(world.account, "orders")
    await other.create("orders")
    await other.put("orders")
    (delivery,) = await other.receive("orders")
    assert await stale.ack("orders", delivery) == [None]


async def test_r14_floor_then_bodies_then_states(world: World) -> None:
    """Naive: drop first. A reader between the two would find an old bucket that looks new."""
    server = world.server()
    await server.create("orders", bucket_size=2, history_ms=0)
    await server.put("orders", count=4)
    await server.drain("orders")
    seen: list[tuple[str, int]] = []

    def note(what: str):  # type: ignore[no-untyped-def]
        async def see() -> None:
            seen.append((what, (await world.marks("orders")).floor))

        return see

    server.store.next("drop", BODIES, note("bodies"))
    server.store.next("drop", STATES, note("states"))
    await server.work("orders", 5 * SECOND)
    assert seen == [("bodies", 2), ("states", 2)]
    assert (await world.marks("orders")).dropped == 2


async def test_r14_server_that_slept_through_the_drop_delivers_nothing(world: World) -> None:
    """Naive: claim what one remembers. A dropped bucket looks like one that was never claimed from."""
    server, sleeper = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    await server.put("orders", count=4)
    sleeper.store.next("change", STATES, lambda: finish_around(server))
    assert await sleeper.receive("orders", 4) == []
    assert [key for key in await world.dump() if key[0] in ("bodies", "states")] == []
    assert await sleeper.receive("orders", 4) == []


async def test_r17_puts_receives_and_leases_do_not_share_a_partition(world: World) -> None:
    """Naive: one row for everything. Paxos would line up puts behind receives."""
    server = world.server()
    await server.create("orders", bucket_size=2)
    touched: dict[str, set[str]] = {}

    async def note(verb: str, action) -> None:  # type: ignore[no-untyped-def]
        changed: set[str] = set()
        rule = server.store.next("change", None, _nothing, when=lambda change: bool(changed.add(change.partition.key + change.partition.table.name)) or True, times=10_000)
        await action
        server.store.rules.remove(rule)
        touched[verb] = changed

    await note("put", server.put("orders", count=4))
    await note("receive", server.receive("orders", 4))
    await note("work", server.engine.step(world.account, "orders"))
    leases = {key for key in touched["work"] if key.endswith("leases")}
    assert touched["put"] and touched["receive"] and leases
    assert not touched["put"] & touched["receive"]
    assert not leases & (touched["put"] | touched["receive"])


async def _nothing() -> None:
    return None
