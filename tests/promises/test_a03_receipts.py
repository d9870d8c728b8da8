"""A3: a receipt is new for every delivery; of two acks of different deliveries one wins, the stale one does nothing."""

from __future__ import annotations

import asyncio

from angelhair.engine import receipts
from angelhair.engine.schema import STATES
from angelhair.errors import InvalidReceipt, OutcomeUnknown, StaleReceipt, Unavailable
from angelhair.model import WantedChange
from angelhair.stores.counting import CountingStore
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import SECOND, World, numbers


async def test_a03_encodes_index_and_delivery(world: World) -> None:
    server = world.server()
    queue = await server.create("orders")
    await server.put("orders", count=3)
    seen = set()
    for expected in (1, 2, 3):
        for delivery in await server.receive("orders", 3, 0):
            decoded = receipts.decode(queue.incarnation, queue.secret, delivery.receipt)
            assert decoded == (0, delivery.id.number, expected)
            seen.add(delivery.receipt)
        world.wait(SECOND)
    assert len(seen) == 9


async def test_a03_only_the_newest_delivery_can_be_acked(world: World) -> None:
    """Naive: a receipt that names the message only. The slow consumer would ack what another is working on."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=SECOND)
    await server.put("orders")
    (old,) = await server.receive("orders")
    world.wait(3 * SECOND)
    (new,) = await other.receive("orders")
    assert [type(outcome) for outcome in await server.ack("orders", old)] == [StaleReceipt]
    assert await other.ack("orders", new) == [None]
    assert [type(outcome) for outcome in await server.ack("orders", old)] == [StaleReceipt]
    assert await server.ack("orders", new) == [None]


async def test_a03_two_receipts_of_one_message_in_one_request(world: World) -> None:
    """Naive: one conditional write that names the row twice, or the older receipt taking the newer along."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=SECOND)
    await server.put("orders", count=2)
    old, _ = await server.receive("orders", 2)
    world.wait(2 * SECOND)
    new, other = await server.receive("orders", 2)
    outcomes = await server.ack("orders", old, new, other, new)
    assert [type(outcome) for outcome in outcomes] == [StaleReceipt, type(None), type(None), type(None)]


async def test_a03_late_consumer_may_ack_while_nobody_else_got_it(world: World) -> None:
    """The delivery number guards an ack, not the clock (R13)."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=SECOND)
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    world.wait(60 * SECOND)
    assert await server.ack("orders", delivery) == [None]
    assert await server.receive("orders") == []


async def test_a03_race_of_two_consumers_has_one_winner(world: World) -> None:
    """Naive: read, compare, write. Between claim and ack of the old delivery stands one conditional write."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders", visibility_timeout_ms=SECOND)
    for _ in range(5):
        (number,) = await servers[0].put("orders")
        (old,) = await servers[0].receive("orders")
        assert old.id.number == number
        world.wait(3 * SECOND)
        acked, *received = await asyncio.gather(
            servers[0].ack("orders", old), servers[1].receive("orders"), servers[2].receive("orders")
        )
        got = [delivery for group in received for delivery in group]
        assert len(got) <= 1
        if acked == [None]:
            assert got == []
        else:
            assert isinstance(acked[0], StaleReceipt)
            assert await servers[1].ack("orders", *got) == [None]


async def test_a03_ack_that_lands_late_does_not_settle_a_newer_delivery(world: World) -> None:
    """Naive: a blind write of `acked`. A packet that was under way for long would settle somebody else's delivery."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=SECOND)
    await server.put("orders")
    (old,) = await server.receive("orders")
    server.store.next("change", STATES, ARRIVE_LATE, times=100)
    assert isinstance((await server.ack("orders", old))[0], OutcomeUnknown)
    world.wait(3 * SECOND)
    (new,) = await other.receive("orders")
    await server.store.land()
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values.get("settled") is None
    assert await other.ack("orders", new) == [None]


async def test_a03_ack_of_unknown_outcome_is_settled(world: World) -> None:
    """Naive: answer an error for an ack that holds. The same write again shows what happened."""
    server = world.server()
    await server.create("orders")
    await server.put("orders", count=2)
    first, second = await server.receive("orders", 2)
    server.store.next("change", STATES, LOSE_ANSWER)
    assert await server.ack("orders", first) == [None]
    server.store.next("change", STATES, NEVER_SENT)
    assert await server.ack("orders", second) == [None]


async def test_a03_ack_says_what_the_store_says(world: World) -> None:
    """Provably not done and perhaps done are different answers; unknown stays unknown however the tries go on."""
    server = world.server()
    await server.create("orders")
    await server.put("orders", count=2)
    first, second = await server.receive("orders", 2)
    server.store.next("change", STATES, UNAVAILABLE)
    assert [type(outcome) for outcome in await server.ack("orders", first)] == [Unavailable]
    server.store.next("change", STATES, NEVER_SENT)
    server.store.next("change", STATES, UNAVAILABLE, times=100)
    assert [type(outcome) for outcome in await server.ack("orders", second)] == [OutcomeUnknown]
    server.store.heal()
    assert await server.ack("orders", first, second) == [None, None]


async def test_a03_guards_extend_release_and_rewrite(world: World) -> None:
    """Naive: guard the ack only."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=SECOND)
    await server.put("orders", b"as put")
    (old,) = await server.receive("orders")
    world.wait(2 * SECOND)
    (new,) = await server.receive("orders", 1, 10 * SECOND)
    before = await world.dump()
    for visibility_ms, body in [(60 * SECOND, None), (0, None), (None, b"stolen")]:
        wanted = WantedChange(old.receipt, visibility_ms, body)
        (outcome,) = await server.engine.change(world.account, "orders", [wanted])
        assert isinstance(outcome, StaleReceipt)
    after = await world.dump()
    assert {key: value for key, value in after.items() if key[0] != "wakes"} == {
        key: value for key, value in before.items() if key[0] != "wakes"
    }
    (outcome,) = await server.engine.change(world.account, "orders", [WantedChange(new.receipt, 0, b"rewritten")])
    assert outcome is None
    (again,) = await server.receive("orders")
    assert (again.body, again.deliveries) == (b"rewritten", 3)
    assert await server.engine.peek(world.account, "orders", 1) == []


async def test_a03_change_that_lands_late_does_not_undo_a_newer_one(world: World) -> None:
    """Naive: condition a change on the delivery number. A late extension would hide a released message again (R13)."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    server.store.next("change", STATES, ARRIVE_LATE, times=100)
    assert isinstance(await server.extend("orders", delivery, 3_600 * SECOND), OutcomeUnknown)
    assert await other.extend("orders", delivery, 0) is None
    await server.store.land()
    assert numbers(await other.receive("orders")) == [0]


async def test_a03_ack_is_one_conditional_write(world: World) -> None:
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await server.create("orders", bucket_size=10)
    await server.put("orders", count=30)
    deliveries = await server.receive("orders", 30)
    before = counting.counts
    assert await server.ack("orders", deliveries[0]) == [None]
    spent = counting.counts - before
    assert (spent.changes, spent.reads, spent.writes) == (1, 0, 0)
    before = counting.counts
    assert await server.ack("orders", *deliveries[1:]) == [None] * 29
    spent = counting.counts - before
    assert (spent.changes, spent.reads, spent.writes) == (3, 0, 0)


async def test_a03_receipts_that_are_none_cost_the_store_next_to_nothing(world: World) -> None:
    """Naive: look the queue up for each of them, so that whoever sends rubbish chooses what the store does."""
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await server.create("orders")
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    queue = await world.queue("orders")
    damaged = ["", "A" * 44, delivery.receipt[:-1], "*" + delivery.receipt[1:]]
    foreign = [
        *(receipts.encode(queue.incarnation, b"another secret", *delivery.id, number) for number in range(50)),
        *(receipts.encode(f"{number:032x}", b"another secret", *delivery.id, 1) for number in range(50)),
    ]
    for texts, reads in ((damaged, 0), (foreign, 1), (damaged + foreign, 1)):
        before = counting.counts
        outcomes = await server.engine.ack(world.account, "orders", [*texts, delivery.receipt])
        assert [type(outcome) for outcome in outcomes[:-1]] == [InvalidReceipt] * len(texts)
        assert outcomes[-1] is None
        spent = counting.counts - before
        assert (spent.reads, spent.changes) == (reads, 1)


async def test_a03_refused_group_takes_out_the_refused_row_only(world: World) -> None:
    """Naive: one stale receipt spoils the group that it was acked with."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=SECOND)
    await server.put("orders", count=5)
    deliveries = await server.receive("orders", 5)
    world.wait(2 * SECOND)
    (again,) = await server.receive("orders", 1)
    outcomes = await server.ack("orders", *deliveries)
    assert [outcome is None for outcome in outcomes] == [item.id != again.id for item in deliveries]
