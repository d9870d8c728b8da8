"""What a timeline refuses, what it refuses to others, and that requests which travel together stay apart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from angelhair.batching.batching import Batching
from angelhair.engine.engine import Engine
from angelhair.engine.ledger import Run
from angelhair.engine.timeline import receipts
from angelhair.engine.timeline.receipts import LENGTH, is_well_formed
from angelhair.errors import InvalidReceipt, InvalidRequest, MessageGone, NotInFlight, StaleReceipt
from angelhair.model import TIMELINE, Ask, DueId, MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, touch
from tests.queues import MINUTE, SECOND, START_MS, World

LOCK_QUARTER = 2_500

Verb = Callable[[Engine, str], Awaitable[object]]

REFUSED: dict[str, Verb] = {
    "reserve": lambda engine, account: engine.reserve(account, NAME, 1),
    "marks": lambda engine, account: engine.marks(account, NAME),
    "buckets": lambda engine, account: engine.buckets(account, NAME, 0, None, 1),
    "purge": lambda engine, account: engine.purge(account, NAME),
    "move back": lambda engine, account: engine.move_back(account, NAME, 0, 0),
    "archive": lambda engine, account: engine.archived_up_to(account, NAME, 0, 0),
    "retire": lambda engine, account: engine.retire(account, NAME),
    "erase": lambda engine, account: engine.erase(account, NAME, DueId(0, 1)),
    "redrive": lambda engine, account: engine.redrive(account, NAME, None, 1),
    "runs": lambda engine, account: engine.begin_run(account, NAME, Run("writer", 0, 1, "digest", 1_000)),
}


@pytest.mark.parametrize("verb", REFUSED)
async def test_what_a_timeline_cannot_do_it_refuses(world: World, verb: str) -> None:
    server = world.server()
    await create(server)
    before = await world.dump()
    with pytest.raises(InvalidRequest) as refused:
        await REFUSED[verb](server.engine, world.account)
    assert refused.value.field == "kind"
    assert await world.dump() == before


@pytest.mark.parametrize("kind", ["bucketed", "fifo"])
async def test_other_kinds_have_no_shards_and_no_due_times(world: World, kind: str) -> None:
    server = world.server()
    await server.create("other", kind=kind)
    for verb in (
        server.engine.touch_consumer(world.account, "other", "a"),
        server.engine.leave_consumer(world.account, "other", "a"),
        server.engine.shards(world.account, "other"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            await verb
        assert refused.value.field == "kind"
    for door in (server.engine, Batching(server.engine, AsyncioRuntime())):
        with pytest.raises(InvalidRequest) as refused:
            await door.put(world.account, "other", [NewMessage(b"-", due_ms=START_MS, group="g", key="k")])
        assert refused.value.field == "due"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("key", NewMessage(b"-", key="k")),
        ("group", NewMessage(b"-", group="g")),
        ("priority", NewMessage(b"-", priority=1)),
        ("due", NewMessage(b"-", due_ms=START_MS, delay_ms=1)),
    ],
)
async def test_a_message_that_asks_for_what_a_timeline_has_not_concerns_itself_alone(
    world: World, field: str, message: NewMessage
) -> None:
    server = world.server()
    await create(server)
    good, bad = await server.put_outcomes(NAME, [NewMessage(b"good"), message])
    assert isinstance(good, DueId)
    assert isinstance(bad, InvalidRequest) and bad.field == field


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("granularity", {"granularity": "second"}),
        ("producer_delay", {"producer_delay_ms": -1}),
        ("lock", {"lock_ms": 999}),
        ("expire_after", {"expire_after_ms": 0}),
        ("archive", {"archive": True}),
        ("priorities", {"priorities": 2}),
    ],
)
async def test_settings_out_of_bounds_are_refused(world: World, field: str, settings: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await world.server().create(NAME, kind=TIMELINE, **settings)
    assert refused.value.field == field


async def test_settings_that_may_change_do(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    changed = await server.engine.change_queue(
        world.account, NAME, {"producer_delay_ms": 0, "lock_ms": 2 * SECOND, "visibility_timeout_ms": SECOND}
    )
    assert QueueSettings.from_text(changed.settings.to_text()) == changed.settings
    world.wait(SECOND)
    await put(server, b"-")
    share = await touch(server, "a")
    assert share.lock_ms == 2 * SECOND
    assert bodies(await receive(server, consumer="a")) == [b"-"]
    world.wait(SECOND)
    assert bodies(await receive(server, consumer="a")) == [b"-"]


async def test_bad_consumers_are_refused(world: World) -> None:
    server = world.server()
    await create(server)
    for name in ("", "~server", "x" * 129, "\ud800"):
        with pytest.raises(InvalidRequest):
            await touch(server, name)
        with pytest.raises(InvalidRequest):
            await receive(server, consumer=name)
    for most in (0, 1_025):
        with pytest.raises(InvalidRequest):
            await touch(server, "a", most)


async def test_receipts_forged_foreign_and_old_are_told_apart(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, visibility_timeout_ms=5 * SECOND)
    await put(server, b"one", b"two", in_ms=DELAY)
    world.wait(DELAY)
    one, two = await receive(server)
    assert len(one.receipt) == LENGTH and is_well_formed(one.receipt)

    async def outcome(receipt: str) -> object:
        (found,) = await server.engine.ack(world.account, NAME, [receipt])
        return found

    swapped = one.receipt[:20] + ("A" if one.receipt[20] != "A" else "B") + one.receipt[21:]
    for wrong in ("", "x", swapped, one.receipt[:-1], one.receipt + "A", one.receipt[:-1] + "*"):
        assert isinstance(await outcome(wrong), InvalidReceipt), wrong
    assert await outcome(one.receipt) is None
    world.wait(5 * SECOND)
    late = await server.engine.ack(world.account, NAME, [two.receipt], in_flight=True)
    assert isinstance(late[0], NotInFlight)
    (again,) = await receive(server)
    assert type(await outcome(two.receipt)) is StaleReceipt
    assert await outcome(again.receipt) is None
    for _ in range(3):
        world.wait(5 * SECOND)
        await receive(server)
    await server.engine.delete_queue(world.account, NAME)
    await create(server, lanes=1)
    assert isinstance(await outcome(again.receipt), InvalidReceipt)


async def test_an_ack_long_after_the_checkpoint_passed_says_so(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"one", in_ms=DELAY)
    world.wait(DELAY)
    (one,) = await receive(server)
    assert await ack(server, one) == [None]
    for _ in range(4):
        world.wait(LOCK_QUARTER)
        await receive(server)
    assert await ack(server, one) == [None], "this very delivery was acked"
    queue = await world.queue(NAME)
    receipt = receipts.decode(queue.incarnation, queue.secret, one.receipt)
    other = receipts.encode(queue.incarnation, queue.secret, receipt._replace(delivery=2))
    (outcome,) = await ack(server, one._replace(receipt=other))
    assert isinstance(outcome, MessageGone)


async def test_ids_are_text_and_back(world: World) -> None:
    server = world.server()
    await create(server)
    for placed in await put(server, b"-", b"-"):
        text = str(placed)
        assert text.count("-") == 5 and text.startswith(f"{placed.lane}-")
        assert MessageId.parse(text) == placed
    assert MessageId.parse("3-17") == MessageId(3, 17) and type(MessageId.parse("3-17")) is MessageId
    for wrong in ("3", "3-", "-3", "3-019g", "x-018bcfe5-6800-7000-8000-000000000000"):
        with pytest.raises(InvalidRequest):
            MessageId.parse(wrong)


async def test_receives_that_go_together_get_what_their_consumers_hold(world: World) -> None:
    server = world.server()
    await create(server, lanes=4)
    for _ in range(6):
        shares = {name: await touch(server, name) for name in ("a", "b")}
        world.wait(LOCK_QUARTER)
    for second in range(8):
        await put(server, b"%d" % second, in_ms=DELAY + second * SECOND)
    await pass_time(server, 5 * SECOND)
    for name in shares:
        await touch(server, name)
    await pass_time(server, 9 * SECOND)
    shares = {name: await touch(server, name) for name in ("a", "b")}
    asks = [Ask(10, consumer="a"), Ask(10, consumer="b"), Ask(10, consumer="a")]
    outcomes = await server.engine.receive(world.account, NAME, asks)
    for ask, outcome in zip(asks, outcomes, strict=True):
        assert isinstance(outcome, list)
        assert {delivery.id.lane for delivery in outcome} <= set(shares[ask.consumer or ""].lanes)
    assert sum(len(outcome) for outcome in outcomes if isinstance(outcome, list)) == 8
    assert len({delivery.id for outcome in outcomes if isinstance(outcome, list) for delivery in outcome}) == 8


async def test_lists_of_many_go_in_one_write_and_one_read(world: World) -> None:
    server = world.server()
    await create(server, lanes=6)
    await put(server, b"warm", in_ms=MINUTE)
    calls: list[str] = []

    def counted(verb: str) -> Callable[[Any], Any]:
        real = getattr(server.store, verb)

        def count(items: Any) -> Any:
            calls.append(verb)
            return real(items)

        return count

    for verb in ("read", "write", "change", "drop"):
        setattr(server.store, verb, counted(verb))
    many = [NewMessage(b"-", due_ms=START_MS + MINUTE + number * 500) for number in range(40)]
    outcomes = await server.put_outcomes(NAME, many)
    assert all(isinstance(outcome, DueId) for outcome in outcomes)
    assert calls == ["write", "read"]


async def test_a_timeline_of_before_keeps_settings_that_it_has_no_use_for_and_can_be_changed(world: World) -> None:
    """A queue that was made when nobody refused them."""
    before = QueueSettings.from_text('{"kind": "timeline", "bucket_size": 7, "retention_ms": null, "lock_ms": 2000}')
    changed = before.changed({"lock_ms": 5_000, "bucket_size": 7, "retention_ms": None})
    assert (changed.lock_ms, changed.bucket_size, changed.retention_ms) == (5_000, 7, None)
    for name, value in (("retention_ms", 1_000), ("bucket_size", 8)):
        with pytest.raises(InvalidRequest, match="'timeline' has no such setting"):
            before.changed({name: value})
    with pytest.raises(InvalidRequest, match="has no such setting"):
        before.validated()


async def test_who_acks_at_another_server_than_gave_the_message_is_told_so_and_what_to_do(world: World) -> None:
    """As with several processes behind one port, and a client that names no consumer. Naive: "its lock was lost"."""
    gave, other = world.server(), world.server()
    await create(gave, lanes=1)
    await put(gave, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(gave)
    (outcome,) = await ack(other, delivery)
    for said in (outcome, await other.extend(NAME, delivery, SECOND)):
        assert isinstance(said, StaleReceipt)
        assert "another process of this one" in str(said) and "Name a consumer" in str(said)
    assert await ack(gave, delivery) == [None], "there it is still good"


async def test_who_acks_where_the_lock_was_lost_is_told_that(world: World) -> None:
    gave, other = world.server(), world.server()
    await create(gave, lanes=1)
    await put(gave, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(gave, consumer="a")
    assert (await touch(other, "a")).fences == {0: 2}, "it has come over"
    world.wait(MINUTE)
    for server in (gave, other):
        (outcome,) = await ack(server, delivery)
        assert isinstance(outcome, StaleReceipt) and "was lost since" in str(outcome)
