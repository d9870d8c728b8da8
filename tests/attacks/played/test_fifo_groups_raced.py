"""A3, R6, R12, R14 of fifo queues: the state of groups while others change it, move it on, or delete the queue."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.schema import GROUPS, LOGS, POINTERS, SEQUENCES
from angelhair.engine.store import Change, Span
from angelhair.errors import AngelhairError, QueueNotFound, StaleReceipt, Unavailable
from angelhair.model import Ask, WantedChange
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.promises.fifo import QUEUE, bodies, make, put
from tests.queues import HOUR, MINUTE, SECOND, Server, World, succeeded

FOR_EVER = 1_000


async def worn_out(world: World, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue whose worker wants a new epoch at its next step, with one message that waits: `last`, of group g0."""
    monkeypatch.setattr(limits, "EPOCH_ROWS", 2)
    await make(server, bucket_size=2, dedup_window_ms=SECOND)
    for number in range(6):
        await put(server, f"m{number}", group=f"g{number}")
    assert len(await server.drain(QUEUE)) == 6
    await put(server, "last", group="g0")


def sealing(change: Change) -> bool:
    return "sealed" in change.set_flags


def making_ready(change: Change) -> bool:
    return "ready" in change.set_flags


async def left_of(world: World, incarnation: str) -> list[str]:
    """Which partitions of a queue's groups and logs hold anything."""
    partitions = [partition(incarnation, 0, number) for number in range(6) for partition in (places.log, places.groups)]
    slices = await world.store.read([Span(partition) for partition in partitions])
    return [
        f"{partition.table.name} {partition.key}" for partition, found in zip(partitions, slices, strict=True)
        if found.rows or any(value is not None for value in found.flags.values())
    ]


# --- edits ------------------------------------------------------------------------------------------------------------


async def test_a03_an_ack_that_others_are_always_faster_than_settles_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: it is said not to have happened, and the message is there for who extended it."""
    monkeypatch.setattr(limits, "EDIT_ROUNDS", 3)
    server, other = world.server(), world.server()
    await make(server, visibility_timeout_ms=MINUTE)
    await put(server, "a", "b")
    (delivery,) = await server.receive(QUEUE)

    async def faster() -> None:
        assert await other.extend(QUEUE, delivery, MINUTE) is None

    server.store.next("change", GROUPS, faster, times=FOR_EVER)
    (outcome,) = await server.ack(QUEUE, delivery)
    assert isinstance(outcome, Unavailable)
    server.store.heal()
    world.wait(MINUTE)
    (again,) = await server.receive(QUEUE)
    assert bodies([again]) == ["a"] and again.deliveries == 2


async def test_r06_an_ack_that_finds_its_queue_deleted_says_that_the_message_is_gone(world: World) -> None:
    """R6: it looks at the group once more before it refuses a receipt, and finds that there is none."""
    server, other = world.server(), world.server()
    await make(server, visibility_timeout_ms=SECOND)
    await put(server, "a")
    (delivery,) = await server.receive(QUEUE)
    world.wait(SECOND)
    assert bodies(await server.receive(QUEUE)) == ["a"]

    async def deleted() -> None:
        await other.engine.delete_queue(world.account, QUEUE)

    server.store.next("read", GROUPS, deleted)
    (outcome,) = await server.ack(QUEUE, delivery)
    assert isinstance(outcome, StaleReceipt)
    with pytest.raises(QueueNotFound):
        await server.receive(QUEUE)


async def test_r14_an_ack_during_which_its_own_server_moves_the_groups_is_judged_by_where_they_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: naive, to remember what was read of the partition that was left meanwhile."""
    server = world.server()
    await worn_out(world, server, monkeypatch)
    (first,) = await server.receive(QUEUE, hide_ms=0)
    (second,) = await server.receive(QUEUE, hide_ms=HOUR)
    assert bodies([first, second]) == ["last", "last"]

    async def moved() -> None:
        await server.work(QUEUE, 10 * SECOND)
        assert (await world.marks(QUEUE)).epoch >= 1

    server.store.next("read", GROUPS, moved, after=True)
    (outcome,) = await server.ack(QUEUE, first)
    assert isinstance(outcome, StaleReceipt)
    assert await server.ack(QUEUE, second) == [None]
    assert await world.server().drain(QUEUE) == []


async def test_a03_a_change_that_asks_for_nothing_changes_nothing(world: World) -> None:
    server = world.server()
    await make(server, visibility_timeout_ms=MINUTE)
    await put(server, "a")
    (delivery,) = await server.receive(QUEUE)
    assert await server.engine.change(world.account, QUEUE, [WantedChange(delivery.receipt)]) == [None]
    world.wait(MINUTE - 1)
    assert await server.receive(QUEUE) == []
    world.wait(1)
    assert bodies(await server.receive(QUEUE)) == ["a"]


# --- epochs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [sealing, making_ready])
async def test_r06_a_queue_that_is_deleted_while_its_groups_move_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, when: object
) -> None:
    """R6, R14: neither the epoch that was in force nor the one that was being made goes on to be used, and both go."""
    worker, server = world.server(), world.server()
    await worn_out(world, server, monkeypatch)
    incarnation = (await world.queue(QUEUE)).incarnation

    async def deleted() -> None:
        await server.engine.delete_queue(world.account, QUEUE)

    rule = worker.store.next("change", GROUPS, deleted, when=when)  # type: ignore[arg-type]
    with pytest.raises(QueueNotFound):
        await worker.work(QUEUE, MINUTE)
    assert rule.happened == 1
    for some in (worker, server):
        with pytest.raises(QueueNotFound):
            await some.receive(QUEUE)
    await server.bury()
    assert await left_of(world, incarnation) == []


@pytest.mark.parametrize("fault", [NEVER_SENT, UNAVAILABLE])
async def test_r14_groups_that_cannot_be_moved_on_are_moved_on_later(
    world: World, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """R14, A1: the old partition is sealed, the new one not ready. Nobody is given anything until somebody goes on."""
    worker, server = world.server(), world.server()
    await worn_out(world, server, monkeypatch)
    worker.store.next("change", GROUPS, fault, when=making_ready, times=FOR_EVER)
    with pytest.raises(Unavailable):
        await worker.work(QUEUE, MINUTE)
    server.store.next("change", GROUPS, fault, when=making_ready, times=FOR_EVER)
    (outcome,) = await server.engine.receive(world.account, QUEUE, [Ask(1)])
    assert isinstance(outcome, Unavailable)
    assert (await world.marks(QUEUE)).epoch == 0
    for some in (worker, server):
        some.store.heal()
    (delivery,) = await server.receive(QUEUE)
    assert bodies([delivery]) == ["last"] and await worker.ack(QUEUE, delivery) == [None]
    assert (await world.marks(QUEUE)).epoch == 1
    assert await server.drain(QUEUE) == []


async def test_r06_a_deletion_that_slept_until_all_was_buried_brings_nothing_back(world: World) -> None:
    """R6: what it would mark as deleted is gone; and the queue that has the name now is another."""
    sleeper, other = world.server(), world.server()
    await make(sleeper, bucket_size=2)
    await put(sleeper, "a", "b", "c")
    incarnation = (await world.queue(QUEUE)).incarnation

    async def meanwhile() -> None:
        await other.engine.delete_queue(world.account, QUEUE)
        await other.bury()
        await make(other)
        await put(other, "new")

    sleeper.store.next("change", SEQUENCES, meanwhile)
    await sleeper.engine.delete_queue(world.account, QUEUE)
    assert bodies(await other.drain(QUEUE)) == ["new"]
    await other.bury()
    assert await left_of(world, incarnation) == []


# --- expiry, and the end of buckets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("meanwhile", ["ack", "extend"])
async def test_a14_what_a_consumer_holds_on_to_does_not_expire_under_its_hands(world: World, meanwhile: str) -> None:
    """A14, A3: the worker is about to settle it as expired when its consumer acks or extends it."""
    server, other = world.server(), world.server()
    await make(server, bucket_size=2, retention_ms=HOUR, visibility_timeout_ms=SECOND)
    await put(server, "a", "b")
    first, second = await server.receive(QUEUE, 2)
    world.wait(HOUR + SECOND)
    await put(server, "c")

    async def faster() -> None:
        if meanwhile == "ack":
            assert await other.ack(QUEUE, first) == [None]
        else:
            assert await other.extend(QUEUE, first, HOUR) is None

    server.store.next("change", GROUPS, faster)
    await server.step(QUEUE)
    await server.work(QUEUE, 10 * SECOND)
    if meanwhile == "extend":
        assert (await world.marks(QUEUE)).repair == 0, "somebody has it in hand"
        assert await server.receive(QUEUE) == [], "c waits for it"
        assert await other.ack(QUEUE, first) == [None]
        await server.work(QUEUE, 10 * SECOND)
    assert (await world.marks(QUEUE)).repair == 1
    assert bodies(await server.receive(QUEUE, 10)) == ["c"]
    (late,) = await other.ack(QUEUE, second)
    assert isinstance(late, AngelhairError), "b has expired"


async def test_r06_a_worker_that_slept_until_its_queue_was_buried_leaves_nothing(world: World) -> None:
    """R6, R14: it is about to raise a mark of a lane that is gone."""
    worker, other = world.server(), world.server()
    await make(worker, bucket_size=2)
    await put(worker, "a", "b", "c")
    assert len(await worker.drain(QUEUE)) == 3
    incarnation = (await world.queue(QUEUE)).incarnation

    async def meanwhile() -> None:
        await other.engine.delete_queue(world.account, QUEUE)
        await other.bury()

    rule = worker.store.next(
        "change", POINTERS, meanwhile, when=lambda change: any(row.key == "repair" for row in change.rows)
    )
    with pytest.raises(QueueNotFound):
        await worker.work(QUEUE, MINUTE)
    assert rule.happened == 1
    pointers, = await world.store.read([Span(places.pointers(incarnation, 0))])
    assert not pointers.rows and await left_of(world, incarnation) == []


@pytest.mark.parametrize("verb", ["receive", "peek"])
async def test_r14_what_was_purged_and_dropped_meanwhile_is_not_given(world: World, verb: str) -> None:
    """R14: it was claimed, or found, when it was still there; its body is not there any more."""
    server, other = world.server(), world.server()
    await make(server, bucket_size=1, history_ms=0, dedup_window_ms=SECOND)
    await put(server, "a", "b")

    async def meanwhile() -> None:
        await other.engine.purge(world.account, QUEUE)
        await put(other, "c", group="other")
        await other.work(QUEUE, 2 * MINUTE)
        assert (await world.marks(QUEUE)).dropped == 2

    server.store.next("read", LOGS, meanwhile, when=lambda span: span.columns is None)
    if verb == "receive":
        assert bodies(await server.receive(QUEUE, 2, hide_ms=0)) == ["c"]
    else:
        assert await server.engine.peek(world.account, QUEUE, 2) == []
    assert bodies(await server.drain(QUEUE)) == ["c"]
    await server.work(QUEUE, MINUTE)
    assert await other.drain(QUEUE) == []


# --- what servers remember, and attempts ------------------------------------------------------------------------------


async def test_a02_a_server_that_can_watch_only_few_deliveries_gives_none_too_early(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2, R5: what it stops watching is hidden for longer, or until the clock says so, and never for less."""
    monkeypatch.setattr(limits, "WATCHED_ROWS", 1)
    server, other = world.server(), world.server()
    await make(server, visibility_timeout_ms=MINUTE)
    for group in "xyz":
        await put(server, f"in {group}", group=group)
    assert len(await server.receive(QUEUE, 10)) == 3
    for _ in range(59):
        world.wait(SECOND)
        assert await other.receive(QUEUE, 10) == []
    world.wait(SECOND)
    assert bodies(await other.receive(QUEUE, 10)) == ["in x", "in y", "in z"]


async def test_r05_an_attempt_that_is_made_again_is_hidden_for_as_long_as_it_asks_now(world: World) -> None:
    """R5: the same receipts, and a time-out that begins anew and is the one of the second try."""
    server, other = world.server(), world.server()
    await make(server, visibility_timeout_ms=MINUTE)
    await put(server, "a", "b")
    (first,) = await server.engine.receive(world.account, QUEUE, [Ask(1, attempt="try")])
    world.wait(MINUTE // 2)
    (again,) = await other.engine.receive(world.account, QUEUE, [Ask(1, HOUR, attempt="try")])
    assert [one.receipt for one in succeeded(again)] == [one.receipt for one in succeeded(first)]
    world.wait(HOUR - 1)
    assert await server.receive(QUEUE, 10) == []
    world.wait(1)
    assert bodies(await server.receive(QUEUE, 10)) == ["a", "b"]
