"""R14, R6, A3 of fifo queues: who slept while the world went on does no harm when it wakes."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import GROUPS, LOGS
from angelhair.errors import AngelhairError, OutcomeUnknown
from angelhair.model import MessageId
from tests.faults import ARRIVE_LATE
from tests.promises.fifo import QUEUE, bodies, make, put, put_one
from tests.queues import MINUTE, SECOND, World


async def test_r14_a_claim_that_slept_through_an_epoch_delivers_nothing_that_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14"""
    monkeypatch.setattr(limits, "EPOCH_ROWS", 1)
    sleeper, server = world.server(), world.server()
    await make(server, bucket_size=1, history_ms=0, dedup_window_ms=SECOND)
    await put(server, "a", "b", "c")
    assert await sleeper.engine.peek(world.account, QUEUE, 1)

    async def meanwhile() -> None:
        assert len(await server.drain(QUEUE)) == 3
        await put(server, "d", group="other")
        await server.work(QUEUE, MINUTE)
        assert (await world.marks(QUEUE)).epoch >= 1

    sleeper.store.next("change", GROUPS, meanwhile)
    assert bodies(await sleeper.receive(QUEUE, 10)) in ([], ["d"])


async def test_a03_a_late_ack_of_unknown_outcome_settles_nothing_else(world: World) -> None:
    """A3: it is refused, because the group has changed since."""
    server, other = world.server(), world.server()
    await make(server, visibility_timeout_ms=SECOND)
    await put(server, "a", "b")
    (first,) = await server.receive(QUEUE)
    server.store.next("change", GROUPS, ARRIVE_LATE, times=1 + limits.SETTLE_ATTEMPTS)
    (answer,) = await server.ack(QUEUE, first)
    assert isinstance(answer, OutcomeUnknown)
    world.wait(2 * SECOND)
    again = await other.receive(QUEUE, 1, MINUTE)
    assert bodies(again) == ["a"]
    await server.store.land()
    assert await other.receive(QUEUE) == []
    assert await other.ack(QUEUE, *again) == [None]
    assert bodies(await other.receive(QUEUE)) == ["b"]


async def test_r10_a_put_that_slept_longer_than_the_window_is_still_one_message(world: World) -> None:
    """R10: what it was asked to put once is not put twice because it took long to hear of it."""
    server = world.server()
    await make(server, dedup_window_ms=SECOND)
    await put(server, "first")

    async def sleeps() -> None:
        world.wait(10 * MINUTE)

    server.store.next("change", LOGS, "lose answer")
    server.store.next("change", LOGS, sleeps)
    outcome = await put_one(server, "a")
    assert outcome == MessageId(0, 1) or isinstance(outcome, OutcomeUnknown)
    assert bodies(await server.drain(QUEUE)) == ["first", "a"]


async def test_r06_an_ack_that_slept_through_the_deletion_changes_nothing_in_the_new_queue(world: World) -> None:
    """R6"""
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "a")
    (delivery,) = await server.receive(QUEUE)

    async def meanwhile() -> None:
        await other.engine.delete_queue(world.account, QUEUE)
        await other.bury()
        await make(other)
        await put(other, "new")

    server.store.next("change", GROUPS, meanwhile)
    (answer,) = await server.ack(QUEUE, delivery)
    assert isinstance(answer, AngelhairError)
    assert bodies(await server.drain(QUEUE)) == ["new"]
