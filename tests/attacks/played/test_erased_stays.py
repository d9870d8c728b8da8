"""What was erased does not come back, and is given to nobody as an empty message."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.runs import Bodies
from angelhair.engine.schema import BODIES, POINTERS, STATES
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import DAY, HOUR, MINUTE, SECOND, World, numbers

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


async def body_of(world: World, number: int, queue: str = "orders") -> object:
    _, bodies = await world.bucket(queue, number // 2)
    return bodies[number].values.get("body")


@pytest.mark.parametrize("columns", [False, True])
async def test_not_with_a_sleeping_try_of_its_run(world: World, columns: bool) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    bodies = [b"who 0", b"who 1"]
    batch: Sequence[NewMessage] = Bodies(bodies) if columns else [NewMessage(body) for body in bodies]
    run = Run("task", 0, 2, "digest", DAY)
    begun = await sleeper.engine.begin_run(world.account, "orders", run)
    again = await other.engine.begin_run(world.account, "orders", run)
    assert begun is not None and again is not None
    await other.engine.finish_run(again, batch)
    assert await other.engine.erase(world.account, "orders", MessageId(0, 1))
    assert await body_of(world, 1) == b""
    await sleeper.engine.finish_run(begun, batch)
    assert await body_of(world, 1) == b""
    assert await body_of(world, 0) == b"who 0"


async def test_not_with_a_sleeping_put_of_its_key(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)

    async def meanwhile() -> None:
        await other.put("orders", b"who", key="k")
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    sleeper.store.next("write", BODIES, meanwhile)
    await sleeper.put("orders", b"who", key="k")
    assert await body_of(world, 0) == b""


async def test_not_with_a_move_that_goes_on(world: World) -> None:
    """The server that moves it dies between the target's row and the source's; it is erased in the target; another
    server goes on with the move and writes it there again."""
    failing, other = world.server(), world.server()
    await other.create("dead", **SETTINGS)
    await other.create("orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND, **SETTINGS)
    await other.put("orders", b"who")
    assert numbers(await failing.receive("orders")) == [0]
    failing.store.next(
        "change", STATES, NEVER_SENT, times=1000,
        when=lambda change: any((row.values or {}).get("settled") == "dead" for row in change.rows),
    )
    await world.work("orders", 5 * SECOND, [failing])
    assert await body_of(world, 0, "dead") == b"who"
    assert await other.engine.erase(world.account, "dead", MessageId(0, 0))
    await world.work("orders", 3 * MINUTE, [other])
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values["settled"] == "dead"
    assert await body_of(world, 0, "dead") == b""


async def test_not_with_the_second_attempt_of_a_put(world: World) -> None:
    """Its first attempt landed and the answer was lost; somebody received it and erased it before the second."""
    putter, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)

    async def meanwhile() -> None:
        assert [delivery.body for delivery in await other.receive("orders")] == [b"who"]
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    putter.store.next("write", BODIES, LOSE_ANSWER)
    putter.store.next("write", BODIES, meanwhile)
    await putter.put("orders", b"who")
    assert await body_of(world, 0) == b""


@pytest.mark.parametrize("key", ["k", None])
async def test_repair_ends_what_a_dead_writer_brought_back(world: World, key: str | None) -> None:
    """It wrote the row again and died before it looked whether that had been erased."""
    dying, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)

    async def meanwhile() -> None:
        if key is not None:
            await other.put("orders", b"who", key=key)
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))
        for table in (POINTERS, STATES):
            dying.store.next("read", table, UNAVAILABLE, times=1000)

    if key is None:
        dying.store.next("write", BODIES, LOSE_ANSWER)
    dying.store.next("write", BODIES, meanwhile)
    await dying.put_outcomes("orders", [NewMessage(b"who", key=key), NewMessage(b"else")])
    assert await body_of(world, 0) == b"who"
    await other.put("orders", count=2)
    for _ in range(3):
        await other.drain("orders")
        await world.work("orders", MINUTE, [other])
    states, _ = await world.bucket("orders", 0)
    assert states.flags.get("finished") == 1
    assert await body_of(world, 0) == b""


async def test_one_that_is_claimed_meanwhile_is_not_given_out_empty(world: World) -> None:
    """Of a message that is delivered again the body is read after the claim: by then it is erased."""
    server, other = world.server(), world.server()
    await other.create("orders", visibility_timeout_ms=SECOND, **SETTINGS)
    await other.put("orders", b"who")
    assert len(await server.receive("orders")) == 1
    world.wait(2 * SECOND)

    async def meanwhile() -> None:
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    server.store.next("change", STATES, meanwhile, when=lambda change: bool(change.rows), after=True)
    assert [delivery.body for delivery in await server.receive("orders")] == []


async def test_an_empty_message_is_delivered_again_as_any_other(world: World) -> None:
    server = world.server()
    await server.create("orders", visibility_timeout_ms=SECOND, **SETTINGS)
    await server.put("orders", b"")
    for _ in range(2):
        assert [delivery.body for delivery in await server.receive("orders")] == [b""]
        world.wait(2 * SECOND)


async def test_a_finished_bucket_stays_what_it_was(world: World) -> None:
    """One that expired is not settled anew, where nothing may change; what it says goes."""
    server = world.server()
    await server.create("orders", retention_ms=MINUTE, **SETTINGS)
    await server.put("orders", b"a", b"b")
    await world.work("orders", 3 * MINUTE, [server])
    before, _ = await world.bucket("orders", 0)
    assert before.flags.get("finished") == 1
    assert await server.engine.erase(world.account, "orders", MessageId(0, 0))
    after, _ = await world.bucket("orders", 0)
    assert [row.values.get("erased_at") is not None for row in after.rows] == [True, False]
    for old, new in zip(before.rows, after.rows, strict=True):
        assert old.key == new.key
        assert all(new.values.get(name) == old.values.get(name) for name in {*old.values, *new.values} - {"erased_at"})
    assert await body_of(world, 0) == b""


@pytest.mark.parametrize(("verb", "table"), [("change", POINTERS), ("write", BODIES)])
async def test_nothing_is_left_in_a_bucket_that_is_dropped_meanwhile(world: World, verb: str, table: object) -> None:
    """Between erase's look and its writes: what it wrote below the floor would stay for ever."""
    server, other = world.server(), world.server()
    await server.create("orders", retention_ms=MINUTE, **{**SETTINGS, "history_ms": MINUTE})
    await server.put("orders", b"a", b"b")
    await world.work("orders", 90 * SECOND, [other])

    async def meanwhile() -> None:
        await world.work("orders", 5 * MINUTE, [other])

    server.store.next(verb, table, meanwhile)  # type: ignore[arg-type]
    await server.engine.erase(world.account, "orders", MessageId(0, 0))
    assert (await world.marks("orders")).dropped == 1
    states, bodies = await world.bucket("orders", 0)
    assert not states.rows and not bodies


async def test_a_store_that_fails_after_the_mark_leaves_the_message(world: World) -> None:
    """The mark alone erases nothing; the next try does."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"who")
    server.store.next("change", STATES, UNAVAILABLE, times=1000)
    with pytest.raises(StoreError):
        await server.engine.erase(world.account, "orders", MessageId(0, 0))
    assert (await world.marks("orders")).erased == 1
    assert await body_of(world, 0) == b"who"
    server.store.heal()
    assert await server.engine.erase(world.account, "orders", MessageId(0, 0))
    assert await body_of(world, 0) == b""
