"""R7 of fifo queues: a move that others go on with, purge, or whose target changes, arrives once or comes back."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import GROUPS, LOGS
from angelhair.engine.store import Change
from angelhair.errors import StaleReceipt
from angelhair.model import Delivery
from tests.promises.fifo import QUEUE, bodies, make, put
from tests.queues import HOUR, MINUTE, SECOND, Server, World

DEAD = "dead"


async def exhausted(world: World, server: Server, *groups: str) -> list[Delivery]:
    """A queue with a message in each of these groups that has used up its one delivery, as its server knows."""
    await make(server, DEAD)
    await make(
        server, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND, bucket_size=1, history_ms=0,
        dedup_window_ms=SECOND,
    )
    for group in groups:
        await put(server, f"in {group}", group=group)
    deliveries = await server.receive(QUEUE, len(groups))
    assert len(deliveries) == len(groups)
    world.wait(SECOND)
    assert await server.receive(QUEUE, 10) == []
    return deliveries


def marking(change: Change) -> bool:
    return any(row.values is not None and '"moving"' in str(row.values.get("touched")) for row in change.rows)


async def marked_only(server: Server) -> None:
    """The mover comes as far as marking what it moves, and dies."""

    async def dies() -> None:
        raise RuntimeError("the mover dies")

    server.store.next("change", LOGS, dies, when=lambda change: bool(change.rows))
    with pytest.raises(RuntimeError):
        await server.work(QUEUE)
    server.store.heal()


async def everything(world: World, server: Server) -> tuple[list[str], list[str]]:
    """What can be received in the end: from the queue, and from its dead letters."""
    await server.work(QUEUE, limits.MOVE_PATIENCE_MS + 20 * SECOND)
    return bodies(await server.drain(QUEUE)), bodies(await server.drain(DEAD))


async def test_a03_the_receipt_of_a_message_that_is_being_moved_settles_nothing(world: World) -> None:
    """A3, R7: naive, to ack it where it was, and deliver it from the dead letters all the same."""
    mover, other = world.server(), world.server()
    (delivery,) = await exhausted(world, mover, "g")
    await marked_only(mover)
    (outcome,) = await other.ack(QUEUE, delivery)
    assert isinstance(outcome, StaleReceipt)
    assert isinstance(await other.extend(QUEUE, delivery, HOUR), StaleReceipt)
    assert await everything(world, other) == ([], ["in g"])


async def test_r07_a_move_that_another_server_has_finished_meanwhile_is_not_gone_on_with(world: World) -> None:
    """R7: two find that it stands still. One sees, before it begins, that the other has done it."""
    mover, slow, fast = world.server(), world.server(), world.server()
    await exhausted(world, mover, "g")
    await marked_only(mover)
    for server in (slow, fast):
        assert await server.engine.peek(world.account, QUEUE, 1) == []
        await server.work(QUEUE, SECOND)

    async def finished() -> None:
        await fast.work(QUEUE, SECOND)
        assert bodies(await fast.receive(DEAD, hide_ms=0)) == ["in g"]
        # Another verb of the slow server sees it too.
        assert await slow.engine.peek(world.account, QUEUE, 1) == []

    rule = slow.store.next("read", LOGS, finished, when=lambda span: span.columns is None)
    world.wait(limits.MOVE_PATIENCE_MS)
    await slow.work(QUEUE, 30 * SECOND)
    assert rule.happened == 1
    assert await everything(world, fast) == ([], ["in g"])


async def test_r07_what_was_purged_and_dropped_before_it_was_marked_is_not_moved(world: World) -> None:
    """R7, R14: the mover slept; there is nothing left that could be moved, and no place is taken for it."""
    mover, other = world.server(), world.server()
    await exhausted(world, mover, "g")

    async def purged() -> None:
        await other.engine.purge(world.account, QUEUE)
        await put(other, "behind")
        await other.work(QUEUE, 2 * MINUTE)
        assert (await world.marks(QUEUE)).dropped == 1

    rule = mover.store.next("change", GROUPS, purged, when=marking)
    await mover.work(QUEUE, SECOND)
    assert rule.happened == 1
    assert await everything(world, mover) == (["behind"], [])
    assert (await world.marks(DEAD)).next_id == 0


async def test_r07_what_was_marked_behind_one_that_stays_is_appended_all_the_same(world: World) -> None:
    """R7: two were to move to the numbers 0 and 1 of the target. The first is extended before it is marked: the other
    must not wait for a number that the log never comes to."""
    mover, other = world.server(), world.server()
    first, _ = await exhausted(world, mover, "x", "y")

    async def extended() -> None:
        assert await other.extend(QUEUE, first, HOUR) is None

    rule = mover.store.next("change", GROUPS, extended, when=marking)
    await mover.work(QUEUE, SECOND)
    assert rule.happened == 1
    dead = await mover.receive(DEAD, 10)
    assert bodies(dead) == ["in y"] and dead[0].id.number == 0
    assert await other.ack(QUEUE, first) == [None]
    assert await everything(world, mover) == ([], [])


async def test_r07_what_another_server_has_given_back_is_not_given_back_twice(world: World) -> None:
    """R7: both find that the target is gone. It was received again since then, and that delivery stands."""
    mover, slow, fast = world.server(), world.server(), world.server()
    await exhausted(world, mover, "g")
    await marked_only(mover)
    await mover.engine.delete_queue(world.account, DEAD)
    for server in (slow, fast):
        assert await server.engine.peek(world.account, QUEUE, 1) == []
        await server.work(QUEUE, SECOND)
    taken: list[Delivery] = []

    async def given_back() -> None:
        for _ in range(3):
            # Back where it was it has used up its deliveries, until its worker finds that there is nowhere to go.
            await fast.work(QUEUE)
            taken.extend(await fast.receive(QUEUE, hide_ms=HOUR))

    rule = slow.store.next("change", GROUPS, given_back, when=lambda change: bool(change.rows))
    world.wait(limits.MOVE_PATIENCE_MS)
    await slow.work(QUEUE, 30 * SECOND)
    assert rule.happened == 1
    assert bodies(taken) == ["in g"]
    assert await slow.receive(QUEUE) == [], "it is in somebody's hands"
    assert await slow.ack(QUEUE, *taken) == [None]
    assert await slow.drain(QUEUE) == []
