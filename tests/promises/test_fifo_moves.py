"""R7 of fifo queues: dead letters and redrive keep the order of each group; none is lost or doubled on the way."""

from __future__ import annotations

from contextlib import suppress

import pytest

from angelhair import limits
from angelhair.engine.schema import GROUPS, LOGS
from angelhair.errors import AngelhairError, InvalidRequest, StaleReceipt, StoreError
from tests.faults import LOSE_ANSWER, NEVER_SENT
from tests.promises.fifo import QUEUE, bodies, make, message, put
from tests.queues import SECOND, Server, World

DEAD = "dead"


async def exhausted(world: World, server: Server, **settings: int) -> None:
    """A queue whose message `a` has used up its one delivery, with `b` behind it."""
    await make(server, DEAD, bucket_size=2, **settings)
    await make(server, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND, bucket_size=2)
    await put(server, "a", "b")
    assert bodies(await server.receive(QUEUE)) == ["a"]
    world.wait(SECOND)


async def test_r07_what_used_up_its_deliveries_goes_to_the_dead_letters_in_order(world: World) -> None:
    server = world.server()
    await exhausted(world, server)
    assert await server.receive(QUEUE) == [], "b waits until a has gone"
    await server.work(QUEUE)
    (second,) = await server.receive(QUEUE)
    assert bodies([second]) == ["b"]
    world.wait(SECOND)
    assert await server.receive(QUEUE) == []
    await server.work(QUEUE)
    assert isinstance((await server.ack(QUEUE, second))[0], StaleReceipt)
    dead = await server.receive(DEAD, 10)
    assert bodies(dead) == ["a", "b"]
    assert [(delivery.group, delivery.origin) for delivery in dead] == [
        ("g", f"{world.account}/{QUEUE}/0-0"), ("g", f"{world.account}/{QUEUE}/0-1")
    ]


async def test_r07_without_a_dead_letter_queue_messages_go_round(world: World) -> None:
    server = world.server()
    await make(server, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND)
    await put(server, "a")
    for _ in range(3):
        await server.receive(QUEUE)
        world.wait(SECOND)
    await server.receive(QUEUE)
    await server.work(QUEUE)
    assert bodies(await server.receive(QUEUE)) == ["a"]


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT])
@pytest.mark.parametrize("table", [LOGS, GROUPS])
@pytest.mark.parametrize("times", [1, 5, 10])
async def test_r07_a_move_whose_answers_are_lost_happens_once(
    world: World, fault: str, table: object, times: int
) -> None:
    server = world.server()
    await exhausted(world, server)
    await server.receive(QUEUE)
    rule = server.store.next("change", table, fault, times=times)  # type: ignore[arg-type]
    with suppress(StoreError):
        await server.engine.step(world.account, QUEUE)
    rule.times = 0
    await put(world.server(), "another", name=DEAD, group="other")
    await server.work(QUEUE, limits.MOVE_PATIENCE_MS + 2 * SECOND)
    await server.receive(QUEUE, 1, 0)
    await server.work(QUEUE, limits.MOVE_PATIENCE_MS + 2 * SECOND)
    dead = bodies(await server.drain(DEAD))
    assert sorted(dead)[:2] == ["a", "another"] and dead.count("a") == 1


async def test_r07_another_goes_on_when_the_mover_dies(world: World) -> None:
    mover, other = world.server(), world.server()
    await exhausted(world, mover)
    await mover.receive(QUEUE)

    async def dies() -> None:
        raise RuntimeError("the mover dies")

    mover.store.next("change", LOGS, dies)
    with pytest.raises(RuntimeError):
        await mover.work(QUEUE)
    await put(other, "first", name=DEAD, group="other")
    await other.receive(QUEUE)
    await other.work(QUEUE, limits.MOVE_PATIENCE_MS + 20 * SECOND)
    assert bodies(await other.receive(DEAD, 10)) == ["first", "a"]
    assert bodies(await other.receive(QUEUE)) == ["b"]


async def test_r07_the_target_is_gone_and_the_message_comes_back(world: World) -> None:
    mover, other = world.server(), world.server()
    await exhausted(world, mover)
    await mover.receive(QUEUE)

    async def gone() -> None:
        await other.engine.delete_queue(world.account, DEAD)

    mover.store.next("change", LOGS, gone)
    for _ in range(3):
        await mover.work(QUEUE)
        if taken := bodies(await mover.receive(QUEUE)):
            break
    assert taken == ["a"]


async def test_r07_redrive_brings_messages_back_in_order(world: World) -> None:
    server = world.server()
    await exhausted(world, server)
    await server.receive(QUEUE)
    await server.work(QUEUE)
    await server.receive(QUEUE)
    world.wait(SECOND)
    await server.receive(QUEUE)
    await server.work(QUEUE)
    await put(server, "of here", name=DEAD, group="here")
    assert await server.engine.redrive(world.account, DEAD, None, 10) == 2
    assert await put(server, "a", "b") == [0, 1], "whoever puts them again hears of the first time"
    assert bodies(await server.drain(QUEUE)) == ["a", "b"]
    assert bodies(await server.receive(DEAD, 10)) == ["of here"]


# --- from one kind to another: no message goes where nobody reads -----------------------------------------------------


async def delivered_on(world: World, server: Server) -> int:
    """How often the queue's one message comes in a while, with its worker at work in between."""
    times = 0
    for _ in range(10):
        world.wait(2 * SECOND)
        times += len(await server.receive(QUEUE))
        await server.work(QUEUE, SECOND)
    return times


async def test_a01_dead_letters_of_a_bucketed_queue_do_not_go_to_a_fifo_one(world: World) -> None:
    """Naive: write them to the buckets of the target, which a fifo queue never looks into."""
    server = world.server()
    await make(server, DEAD)
    await server.create(QUEUE, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND)
    await server.put(QUEUE, b"poison")
    assert await delivered_on(world, server) >= 3, "with nowhere to go it is delivered on"
    assert await server.receive(DEAD) == []


async def test_a01_dead_letters_of_a_fifo_queue_do_not_go_to_a_bucketed_one(world: World) -> None:
    server = world.server()
    await server.create(DEAD)
    await make(server, max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND)
    await put(server, "poison")
    assert await delivered_on(world, server) >= 3, "with nowhere to go it is delivered on"
    assert await server.receive(DEAD) == []


async def test_a01_nothing_is_redriven_from_one_kind_to_another(world: World) -> None:
    server = world.server()
    await make(server, "in-order")
    await server.create("any-order")
    await put(server, "a", name="in-order")
    await server.put("any-order", b"b")
    with pytest.raises(InvalidRequest, match="kind"):
        await server.engine.redrive(world.account, "any-order", "in-order", 10)
    with pytest.raises(InvalidRequest, match="kind"):
        await server.engine.redrive(world.account, "in-order", "any-order", 10)
    assert bodies(await server.receive("in-order", 10)) == ["a"]
    assert bodies(await server.receive("any-order", 10)) == ["b"]


async def test_a01_a_queue_made_again_as_another_kind_takes_nothing_of_a_server_that_remembers_the_old(
    world: World,
) -> None:
    server, other = world.server(), world.server()
    await server.create(QUEUE)
    await server.put(QUEUE, b"old")
    await other.engine.delete_queue(world.account, QUEUE)
    await make(other)
    (outcome,) = await server.put_outcomes(QUEUE, [message("new")])
    assert not isinstance(outcome, AngelhairError)
    assert bodies(await other.receive(QUEUE, 10)) == ["new"]
    await other.engine.delete_queue(world.account, QUEUE)
    await other.create(QUEUE)
    (outcome,) = await server.put_outcomes(QUEUE, [message("newer")])
    assert not isinstance(outcome, AngelhairError)
    assert bodies(await other.receive(QUEUE, 10)) == ["newer"]
