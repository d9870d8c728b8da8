"""Where a fifo queue's rules meet a change of its settings, a store that fails, or a queue that is gone."""

from __future__ import annotations

from contextlib import suppress

import pytest

from angelhair.engine.schema import GROUPS, LOGS, POINTERS
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError
from angelhair.model import Ask
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.promises.fifo import QUEUE, bodies, make, message, put
from tests.queues import HOUR, MINUTE, SECOND, World, succeeded

DEAD = "dead"


async def test_r10_keys_are_looked_up_anew_when_their_scope_changes(world: World) -> None:
    """Naive: keep what was remembered under the old rule."""
    server = world.server()
    await make(server)
    (first,) = await server.put_outcomes(QUEUE, [message("a", "g", "k")])
    (same,) = await server.put_outcomes(QUEUE, [message("b", "h", "k")])
    assert same == first
    await server.engine.change_queue(world.account, QUEUE, {"dedup_scope": "group"})
    (other,) = await server.put_outcomes(QUEUE, [message("b", "h", "k")])
    assert succeeded(other) != first
    assert (await server.put_outcomes(QUEUE, [message("a", "g", "k")])) == [first]


async def test_r05_an_attempt_that_cannot_be_looked_for_takes_nothing_new(world: World) -> None:
    """Naive: give the next messages to who asks for the last ones again."""
    server = world.server()
    await make(server)
    await put(server, "a", "b")
    ask = Ask(1, attempt="try")
    (first,) = await server.engine.receive(world.account, QUEUE, [ask])
    other = world.server()
    other.store.next("read", GROUPS, UNAVAILABLE, times=100)
    (outcome,) = await other.engine.receive(world.account, QUEUE, [ask])
    assert isinstance(outcome, StoreError)
    other.store.heal()
    assert await other.engine.receive(world.account, QUEUE, [ask]) == [first]


async def test_r07_no_dead_letter_queue_any_more_when_it_is_to_be_moved(world: World) -> None:
    server = world.server()
    await make(server, DEAD)
    await make(server, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND)
    await put(server, "a")
    assert bodies(await server.receive(QUEUE)) == ["a"]
    world.wait(SECOND)
    assert await server.receive(QUEUE) == []
    changes = {"dead_letter_queue": None, "max_deliveries": None}
    await server.engine.change_queue(world.account, QUEUE, changes)
    await server.work(QUEUE, SECOND)
    assert bodies(await server.receive(QUEUE)) == ["a"]
    assert await server.receive(DEAD) == []


@pytest.mark.parametrize("made_again", [False, True])
async def test_r07_a_target_that_another_server_deleted_gives_the_message_back(world: World, made_again: bool) -> None:
    """Whoever goes on with the move remembers the target as it was, and finds it gone, or another."""
    server, other = world.server(), world.server()
    await make(server, DEAD)
    await make(server, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND)
    await put(server, "a")
    assert bodies(await server.receive(QUEUE)) == ["a"]
    world.wait(SECOND)
    assert await server.receive(QUEUE) == []
    # It is marked, and is never written there.
    server.store.next("change", LOGS, NEVER_SENT, times=100)
    with suppress(StoreError):
        await server.work(QUEUE, SECOND)
    server.store.heal()
    await other.engine.delete_queue(world.account, DEAD)
    if made_again:
        await make(other, DEAD)
    await server.work(QUEUE, 2 * MINUTE)
    await other.work(QUEUE, 2 * MINUTE)
    found: list[str] = []
    for _ in range(3):
        # Back where it was it has used up its deliveries once more: it goes to the new one, or round.
        found += bodies(await server.receive(QUEUE, hide_ms=HOUR))
        await server.work(QUEUE, SECOND)
        found += bodies(await other.receive(DEAD, hide_ms=HOUR)) if made_again else []
    assert found == ["a"], "it is in one of the two, and once"


async def test_purge_that_others_get_in_the_way_of(world: World) -> None:
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "a")

    async def purged_by_another() -> None:
        await put(other, "b")
        await other.engine.purge(world.account, QUEUE)

    server.store.next("change", POINTERS, purged_by_another)
    await server.engine.purge(world.account, QUEUE)
    assert await server.receive(QUEUE, 10) == []
    await put(server, "c")
    assert bodies(await server.receive(QUEUE, 10)) == ["c"]


async def test_a14_what_expired_is_not_counted_and_not_given(world: World) -> None:
    server = world.server()
    await make(server, retention_ms=HOUR, visibility_timeout_ms=SECOND)
    await put(server, "old")
    world.wait(HOUR - MINUTE)
    await put(server, "new", group="other")
    assert bodies(await server.receive(QUEUE, 1)) == ["old"]
    world.wait(2 * MINUTE)
    await server.step(QUEUE)
    stats = await server.engine.stats(world.account, QUEUE)
    assert (stats.visible, stats.in_flight, stats.delayed) == (1, 0, 0)
    assert bodies(await server.receive(QUEUE, 10)) == ["new"]


async def test_r12_a_next_bucket_whose_opening_is_lost_is_opened_all_the_same(world: World) -> None:
    server = world.server()
    await make(server, bucket_size=2)
    await put(server, "a", "b")
    for fault in (LOSE_ANSWER, NEVER_SENT):
        server.store.next("change", LOGS, fault)
    await put(server, "c", "d", "e")
    found = bodies(await server.receive(QUEUE, 10))
    assert found == ["a", "b", "c", "d", "e"]


async def test_r06_a_change_that_may_have_landed_before_the_queue_was_deleted_is_not_denied(world: World) -> None:
    """Naive: say that the message is gone with its queue, and nothing was changed. Seed 1743 of the simulator."""
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "a")
    (delivery,) = await server.receive(QUEUE)

    async def deleted() -> None:
        await other.engine.delete_queue(world.account, QUEUE)

    server.store.next("change", GROUPS, LOSE_ANSWER)
    server.store.next("change", GROUPS, deleted)
    assert isinstance(await server.extend(QUEUE, delivery, HOUR), OutcomeUnknown | None)
    assert isinstance(await server.extend(QUEUE, delivery, HOUR), AngelhairError)
