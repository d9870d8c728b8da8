"""Timelines where something is in the way: receipts that come late, bounds that are reached, stores that fail (W1 to
W9, R8). What is refused changes nothing, and what was confirmed comes."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import CONSUMERS, DUES, POINTERS, QUEUES, SEQUENCES, SHARDS
from angelhair.engine.store import Change, Row, Span
from angelhair.errors import InvalidReceipt, NotInFlight, OutcomeUnknown, QueueNotFound, StaleReceipt, Unavailable
from angelhair.model import DueId, NewMessage, WantedChange
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, shard, take, touch
from tests.queues import HOUR, MINUTE, SECOND, START_MS, Server, World

LOCK = 10 * SECOND
ALWAYS = 1 + limits.SETTLE_ATTEMPTS


async def keep(server: Server, milliseconds: int, consumer: str = "a") -> None:
    """Time passes, and a consumer keeps what it holds."""
    for _ in range(milliseconds // (LOCK // 4)):
        server.world.wait(LOCK // 4)
        await touch(server, consumer)


async def rows_there(server: Server) -> list[Row]:
    """Of all parts that this server has touched."""
    parts = [Span(partition) for partition in server.store.touched if partition.table is DUES]
    return [row for found in await server.world.store.read(parts) for row in found.rows]


# --- receipts -------------------------------------------------------------------------------------------------------


async def test_an_ack_again_is_as_good_as_once_and_another_delivery_s_is_refused(world: World) -> None:
    """While an earlier message keeps the checkpoint from passing it."""
    server = world.server()
    await create(server, lanes=1, visibility_timeout_ms=SECOND)
    await put(server, b"slow", in_ms=DELAY)
    await put(server, b"-", in_ms=DELAY + 1)
    world.wait(DELAY + 1)
    _, first = await receive(server)
    world.wait(SECOND)
    _, second = await receive(server)
    assert await ack(server, second) == [None]
    assert await ack(server, second) == [None]
    (outcome,) = await ack(server, first)
    assert isinstance(outcome, StaleReceipt) and "another delivery" in str(outcome)
    assert isinstance(await server.extend(NAME, second, SECOND), StaleReceipt), "it is settled"


async def test_who_asks_for_what_is_in_flight_hears_when_it_is_not(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, visibility_timeout_ms=SECOND)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    wanted = WantedChange(delivery.receipt, 5 * SECOND, in_flight=True)
    assert await server.engine.change(world.account, NAME, [WantedChange(delivery.receipt)]) == [None], "nothing"
    world.wait(SECOND)
    (outcome,) = await server.engine.change(world.account, NAME, [wanted])
    assert isinstance(outcome, NotInFlight)
    (outcome,) = await server.engine.ack(world.account, NAME, [delivery.receipt], in_flight=True)
    assert isinstance(outcome, NotInFlight)
    assert await ack(server, delivery) == [None], "others may: it was not given again"


async def test_what_was_set_aside_and_is_read_again_is_acked_or_extended_by_its_receipt(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"acked", b"extended", b"given again", in_ms=DELAY)
    world.wait(DELAY)
    found = {delivery.body: delivery for delivery in await receive(server, consumer="a")}
    for delivery in found.values():
        assert await server.extend(NAME, delivery, MINUTE) is None
    await put(server, b"first", in_ms=MINUTE - SECOND)
    await keep(server, MINUTE)
    # One of them comes; the others are in hand, and were not given.
    assert bodies(await receive(server, 1, consumer="a")) == [b"first"]
    assert await ack(server, found[b"acked"]) == [None]
    assert await server.extend(NAME, found[b"extended"], 5 * SECOND) is None
    (again,) = await receive(server, consumer="a")
    assert (again.body, again.deliveries) == (b"given again", 2)
    (outcome,) = await ack(server, found[b"given again"])
    assert isinstance(outcome, StaleReceipt)
    assert isinstance(await server.extend(NAME, found[b"given again"], SECOND), StaleReceipt)
    assert await ack(server, again) == [None]
    world.wait(5 * SECOND)
    assert await take(server, consumer="a") == [b"extended"]


async def test_more_time_for_what_was_set_aside_counts_when_it_is_read(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server, consumer="a")
    assert await server.extend(NAME, delivery, MINUTE) is None
    assert await server.extend(NAME, delivery, 2 * MINUTE) is None
    await keep(server, MINUTE + LOCK)
    assert await receive(server, consumer="a") == []
    await keep(server, MINUTE)
    assert bodies(await receive(server, consumer="a")) == [b"-"]


@pytest.mark.parametrize("bound", ["TIMELINE_ASIDE", "TIMELINE_SECONDS", "TIMELINE_INDEX_KNOWN", "TIMELINE_ACKED"])
async def test_what_a_server_forgets_comes_again_and_is_not_lost(
    world: World, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(limits, bound, 1)
    server = world.server()
    await create(server, lanes=2)
    for number in range(4):
        await put(server, b"%d" % number, in_ms=DELAY + number * SECOND)
    world.wait(DELAY + 4 * SECOND)
    found = await receive(server, consumer="a")
    for delivery in found:
        assert await server.extend(NAME, delivery, MINUTE) is None
    for delivery in found:
        assert await server.extend(NAME, delivery, MINUTE + SECOND) is None or bound == "TIMELINE_ASIDE"
    acked = {
        delivery.body for delivery in found for outcome in await ack(server, delivery) if outcome is None
    }
    assert len(acked) == (1 if bound == "TIMELINE_ASIDE" else 4)
    again: set[bytes] = set()
    for _ in range(40):
        world.wait(LOCK // 4)
        again |= set(await take(server, consumer="a"))
    assert acked | again == {b"0", b"1", b"2", b"3"}
    assert not again or bound != "TIMELINE_SECONDS"


async def test_damaged_receipts_and_those_of_a_queue_of_another_kind_are_invalid(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1, producer_delay_ms=0)
    await put(server, b"-")
    world.wait(SECOND)
    (delivery,) = await receive(server)
    text = delivery.receipt
    other_key = text[:24] + ("A" if text[24] != "A" else "B") + text[25:]
    for wrong in ("B" + text[1:], text[:-1] + "\N{SNOWMAN}", text[:10] + "." + text[11:], other_key, text + "A"):
        (outcome,) = await server.engine.ack(world.account, NAME, [wrong])
        assert isinstance(outcome, InvalidReceipt), wrong
    # The server remembers the timeline; the receipt is of its successor, and that has been replaced since.
    await other.engine.delete_queue(world.account, NAME)
    await create(other, lanes=1, producer_delay_ms=0)
    await put(other, b"-")
    world.wait(SECOND)
    (newer,) = await receive(other)
    await other.engine.delete_queue(world.account, NAME)
    await other.create(NAME)
    server.engine.memory.remember(await world.queue(NAME), server.clock.now())
    (outcome,) = await server.engine.ack(world.account, NAME, [newer.receipt])
    assert isinstance(outcome, InvalidReceipt)


# --- locks ----------------------------------------------------------------------------------------------------------


async def test_w5_a_touch_while_another_is_under_way_says_what_is_held(world: World) -> None:
    server = world.server()
    await create(server, lanes=3)
    await touch(server, "a")
    world.wait(LOCK // 4)
    shares = []

    async def again() -> None:
        shares.append(await touch(server, "a"))

    server.store.next("write", CONSUMERS, again)
    assert (await touch(server, "a")).lanes == (0, 1, 2)
    assert [share.lanes for share in shares] == [(0, 1, 2)]


def checkpoints(change: Change) -> bool:
    return "last" in (change.rows[0].values or {})


async def test_w6_a_checkpoint_of_unknown_outcome_is_found_again_and_the_lock_is_kept(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1)
    await put(server, b"one", in_ms=DELAY)
    await put(server, b"two", in_ms=DELAY + 1)
    world.wait(DELAY + 1)
    one, two = await receive(server, consumer="a")
    assert await ack(server, one) == [None]
    server.store.next("change", SHARDS, LOSE_ANSWER, when=checkpoints, times=ALWAYS)
    world.wait(LOCK // 4)
    await touch(server, "a")
    assert await ack(server, two) == [None]
    for _ in range(2):
        world.wait(LOCK // 8)
        await touch(server, "a")
    row = await shard(world, incarnation)
    assert (row["fence"], row["consumer"]) == (1, "a")
    assert str(row["last"]) >= str(two.id).partition("-")[2]


async def test_w6_acks_of_a_timeline_that_was_deleted_meanwhile_say_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TIMELINE_CHECKPOINT", 1)
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    await other.engine.delete_queue(world.account, NAME)
    (outcome,) = await ack(server, delivery)
    assert isinstance(outcome, StaleReceipt) and "with its queue" in str(outcome)


async def test_r5_a_change_of_who_knows_no_time_is_not_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    server = world.server(ahead_ms=HOUR)
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server, consumer="a")

    async def away() -> int:
        raise Unavailable("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(server.store, "time_ms", away)
        assert isinstance(await server.extend(NAME, delivery, MINUTE), Unavailable)
    assert await ack(server, delivery) == [None]


async def test_what_is_to_be_given_next_is_known_to_who_waits(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    assert server.engine.due_in_ms(world.account, "never heard of") is None
    await put(server, b"a", b"b", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server, 1, consumer="a", hide_ms=3 * SECOND)
    assert server.engine.due_in_ms(world.account, NAME) == 0, "the other one is in hand"
    assert len(await receive(server, 1, consumer="a", hide_ms=5 * SECOND)) == 1
    assert server.engine.due_in_ms(world.account, NAME) == 3 * SECOND
    assert await ack(server, delivery) == [None]
    await server.engine.leave_consumer(world.account, NAME, "a")
    assert server.engine.due_in_ms(world.account, NAME) is None


async def test_w5_large_messages_fill_a_window_sooner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECEIVE_BYTES", 1_000)
    monkeypatch.setattr(limits, "PORTION_BYTES", 1_000)
    server = world.server()
    await create(server, lanes=1)
    what = [b"%d" % number * 600 for number in range(6)]
    for number, body in enumerate(what):
        await put(server, body, in_ms=DELAY + number)
    world.wait(DELAY + 6)
    found = await receive(server, 100)
    assert 1 <= len(found) < len(what)
    assert await receive(server, 100) == [], "no more are in hand than there is room for"
    done = bodies(found)
    assert await ack(server, *found) == [None] * len(found)
    for _ in range(len(what)):
        done += await take(server)
    assert done == what


async def test_r8_what_has_not_had_its_chance_is_not_set_aside(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TIMELINE_WINDOW", 4)
    server = world.server()
    await create(server, lanes=1)
    for number in range(6):
        await put(server, b"%d" % number, in_ms=DELAY + number)
    world.wait(DELAY + 6)
    assert await take(server, 1, consumer="a") == [b"0"]
    await keep(server, 2 * LOCK)
    await server.step(NAME)
    assert len(await rows_there(server)) == 6, "none was written again"
    found: list[bytes] = []
    for _ in range(3):
        found += await take(server, consumer="a")
        await keep(server, LOCK // 4)
    assert found == [b"1", b"2", b"3", b"4", b"5"]


# --- puts -----------------------------------------------------------------------------------------------------------


async def half_sealed(world: World) -> tuple[Server, Server]:
    """A server that believes two shards to be open, of which one is sealed; and one that knows better."""
    stale, other = world.server(), world.server()
    await create(stale, lanes=2)
    await put(stale, b"warm", in_ms=HOUR)
    await other.engine.change_queue(world.account, NAME, {"lanes": 1})
    for _ in range(3):
        await other.step(NAME)
    return stale, other


def both_shards() -> list[NewMessage]:
    due_ms = START_MS + HOUR
    return [NewMessage(b"%d" % second, due_ms=due_ms + second * SECOND) for second in range(2)]


@pytest.mark.parametrize("again", [False, True])
async def test_r6_a_put_that_is_half_done_when_its_timeline_is_deleted(world: World, again: bool) -> None:
    stale, other = await half_sealed(world)

    async def delete() -> None:
        await other.engine.delete_queue(world.account, NAME)
        if again:
            await create(other, lanes=1)

    stale.store.next("read", QUEUES, delete)
    outcomes = await stale.put_outcomes(NAME, both_shards())
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["DueId", "OutcomeUnknown"]


async def test_r8_a_put_that_cannot_learn_which_shards_are_open_is_unknown(world: World) -> None:
    stale, _ = await half_sealed(world)
    stale.store.next("read", QUEUES, UNAVAILABLE, times=limits.READ_ATTEMPTS)
    outcomes = await stale.put_outcomes(NAME, both_shards())
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["DueId", "OutcomeUnknown"]


async def test_r6_a_put_to_a_timeline_that_is_made_again_meanwhile_goes_to_the_new_one(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, b"old", in_ms=HOUR)

    async def make_again() -> None:
        await other.engine.delete_queue(world.account, NAME)
        await create(other, lanes=1)

    server.store.next("write", DUES, make_again, after=True)
    (placed,) = await put(server, b"new", in_ms=DELAY)
    assert isinstance(placed, DueId)
    world.wait(DELAY + SECOND)
    assert await take(other) == [b"new"]
    await other.engine.delete_queue(world.account, NAME)
    with pytest.raises(QueueNotFound):
        await put(server, b"nowhere")


async def test_r6_a_put_to_a_timeline_that_is_deleted_meanwhile_may_have_been_given(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1)

    async def delete() -> None:
        await other.engine.delete_queue(world.account, NAME)

    server.store.next("write", DUES, delete, after=True)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"-")])
    assert isinstance(outcome, OutcomeUnknown)


# --- background -----------------------------------------------------------------------------------------------------


async def test_a_part_that_cannot_be_dropped_is_dropped_later(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1, expire_after_ms=None)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    assert await take(server) == [b"-"]
    await pass_time(server, 5 * SECOND)
    server.store.next("drop", DUES, UNAVAILABLE)
    failed = 0
    for _ in range(90):
        world.wait(SECOND)
        assert await take(server) == []
        try:
            await server.step(NAME)
        except Unavailable:
            failed += 1
            assert len(await rows_there(server)) == 1
    assert failed == 1
    assert await rows_there(server) == []
    assert (await shard(world, incarnation))["fence"] == 1


@pytest.mark.parametrize("table", [SEQUENCES, POINTERS])
async def test_r8_a_sealed_shard_that_cannot_be_looked_into_stays(world: World, table: object) -> None:
    server = world.server()
    await create(server, lanes=2, expire_after_ms=None)
    await put(server, b"-", in_ms=DELAY)
    await server.engine.change_queue(world.account, NAME, {"lanes": 1})
    verb = "change" if table is SEQUENCES else "read"
    server.store.next(verb, table, UNAVAILABLE, times=3)  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        await server.step(NAME)
    assert len((await world.queue(NAME)).lanes) == 2
    server.store.heal()
    world.wait(DELAY)
    found: list[bytes] = []
    for _ in range(20):
        world.wait(SECOND)
        await server.step(NAME)
        found += await take(server)
    assert found == [b"-"] and len((await world.queue(NAME)).lanes) == 1


async def test_an_ack_comes_in_while_the_message_is_given_more_time_than_a_lock_has(world: World) -> None:
    """Naive: it is set aside all the same, and says nothing any more: an empty message comes later."""
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, b"one", in_ms=DELAY)
    world.wait(DELAY)
    (stranger,) = await receive(other, consumer="a")
    (wanted,) = await receive(server, consumer="a")

    async def acked_meanwhile() -> None:
        assert await ack(server, wanted) == [None]

    looked = server.store.next("read", SHARDS, acked_meanwhile)
    changes = [WantedChange(stranger.receipt, 2 * LOCK), WantedChange(wanted.receipt, 2 * LOCK)]
    outcomes = await server.engine.change(world.account, NAME, changes)
    assert looked.happened == 1 and isinstance(outcomes[0], StaleReceipt)
    assert {row.values["body"] for row in await rows_there(server)} == {b"one"}
