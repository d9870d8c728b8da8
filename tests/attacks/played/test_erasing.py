"""What was erased comes back."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.runs import Bodies
from angelhair.engine.schema import BODIES, POINTERS, STATES
from angelhair.errors import OutcomeUnknown, StoreError
from angelhair.model import MessageId, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE, Between
from tests.queues import DAY, HOUR, MINUTE, SECOND, World, numbers

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}
RUN = Run("task", 0, 2, "digest", DAY)


async def body_of(world, number, queue="orders"):
    _, bodies = await world.bucket(queue, number // 2)
    return bodies[number].values.get("body") if number in bodies else None


@pytest.mark.parametrize("columns", [False, True])
async def test_acked_then_erased_comes_back_with_a_sleeping_try(world: World, columns) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    bodies = [b"who 0", b"who 1"]
    batch = Bodies(bodies) if columns else [NewMessage(body) for body in bodies]
    begun = await sleeper.engine.begin_run(world.account, "orders", RUN)
    again = await other.engine.begin_run(world.account, "orders", RUN)
    await other.engine.finish_run(again, batch)
    assert len(await other.drain("orders")) == 2
    assert await other.engine.erase(world.account, "orders", MessageId(0, 1))
    assert await body_of(world, 1) == b""
    await sleeper.engine.finish_run(begun, batch)
    assert await body_of(world, 1) == b""


async def test_acked_then_erased_comes_back_with_a_sleeping_put_of_its_key(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)

    async def meanwhile() -> None:
        await other.put("orders", b"who", key="k")
        assert len(await other.drain("orders")) == 1
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    sleeper.store.next("write", BODIES, meanwhile)
    await sleeper.put("orders", b"who", key="k")
    assert await body_of(world, 0) == b""


async def test_acked_then_erased_comes_back_with_the_second_attempt_of_a_plain_put(world: World) -> None:
    putter, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)

    async def meanwhile() -> None:
        assert [d.body for d in await other.take("orders")] == [b"who"]
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    putter.store.next("write", BODIES, LOSE_ANSWER)
    putter.store.next("write", BODIES, meanwhile)
    await putter.put("orders", b"who")
    assert await body_of(world, 0) == b""


async def test_expired_and_finished_then_erased_comes_back(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", retention_ms=MINUTE, **SETTINGS)

    async def meanwhile() -> None:
        await other.put("orders", b"who", key="k")
        await other.put("orders", b"x", b"y")
        await world.work("orders", 3 * MINUTE, [other])
        states, _ = await world.bucket("orders", 0)
        assert states.flags.get("finished") == 1
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    sleeper.store.next("write", BODIES, meanwhile)
    await sleeper.put_outcomes("orders", [NewMessage(b"who", key="k")])
    assert await body_of(world, 0) in (b"", None)


async def test_erase_says_unavailable_though_it_settled(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"who")

    async def blind() -> None:
        server.store.next("read", BODIES, UNAVAILABLE, times=1000)

    server.store.next("change", STATES, LOSE_ANSWER)
    server.store.next("change", STATES, blind)
    with pytest.raises(StoreError) as raised:
        await server.engine.erase(world.account, "orders", MessageId(0, 0))
    states, _ = await world.bucket("orders", 0)
    assert states.rows and states.rows[0].values["settled"] == "erased"
    assert isinstance(raised.value, OutcomeUnknown), raised.value


async def test_a_late_write_after_the_bucket_is_finished(world: World) -> None:
    """It dies before it looks: who reads finished buckets goes by what the state says."""
    dying, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)

    async def meanwhile() -> None:
        await other.put("orders", b"who", key="k")
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))
        await other.put("orders", count=3)
        for _ in range(3):
            await other.drain("orders")
            await world.work("orders", MINUTE, [other])
        states, _ = await world.bucket("orders", 0)
        assert states.flags.get("finished") == 1
        for table in (POINTERS, STATES):
            dying.store.next("read", table, UNAVAILABLE, times=1000)

    dying.store.next("write", BODIES, meanwhile)
    await dying.put_outcomes("orders", [NewMessage(b"who", key="k")])
    states, _ = await world.bucket("orders", 0)
    assert {row.key: row.values.get("erased_at") for row in states.rows}[0] is not None
    assert await other.engine.peek(world.account, "orders", 10) == []
    assert await other.drain("orders") == []


@pytest.mark.parametrize("erased", [True, False])
async def test_move_goes_on_after_the_target_was_purged(world: World, erased) -> None:
    failing, other = world.server(), world.server()
    await other.create("dead", **SETTINGS)
    await other.create("orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND, **SETTINGS)
    await other.put("orders", b"who")
    assert numbers(await failing.receive("orders")) == [0]
    failing.store.next(
        "change",
        STATES,
        NEVER_SENT,
        times=1000,
        when=lambda change: any((row.values or {}).get("settled") == "dead" for row in change.rows),
    )
    await world.work("orders", 5 * SECOND, [failing])
    assert await body_of(world, 0, "dead") == b"who"
    if erased:
        assert await other.engine.erase(world.account, "dead", MessageId(0, 0))
    else:
        assert len(await other.take("dead")) == 1
    await other.engine.purge(world.account, "dead")
    await world.work("orders", 3 * MINUTE, [other])
    assert [d.body for d in await other.drain("dead")] == []


async def test_repair_that_slept_writes_into_a_dropped_bucket(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", **{**SETTINGS, "history_ms": 0})
    await other.put("orders", b"a", b"b", b"c")
    assert await other.engine.erase(world.account, "orders", MessageId(0, 0))
    await other.drain("orders")
    hit = []

    async def meanwhile() -> None:
        hit.append(1)
        await world.work("orders", 2 * MINUTE, [other])
        assert (await world.marks("orders")).dropped >= 1

    sleeper.store.next("write", BODIES, meanwhile)
    await world.work("orders", 2 * MINUTE, [sleeper])
    assert hit
    await world.work("orders", 2 * MINUTE, [other])
    states, bodies = await world.bucket("orders", 0)
    assert not bodies and not states.rows


class BodiesThenPause(Between):
    """Of a message that is moving the bodies are read; then comes a pause, then the states."""

    pause = None

    async def _pass(self, verb, items):
        answer = await super()._pass(verb, items)
        moves = verb == "read" and len(items) == 1 and items[0].partition.table is BODIES and items[0].columns is None
        if moves and self.pause is not None and answer[0].rows:
            pause, self.pause = self.pause, None
            await pause()
        return answer


async def test_resume_empties_the_target_when_the_source_is_erased_meanwhile(world: World) -> None:
    mover, other = world.server(), world.server()
    split = BodiesThenPause(world.store)
    second = world.server(store=split)
    await other.create("dead", **SETTINGS)
    await other.create("orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND, **SETTINGS)
    await other.put("orders", b"who")
    assert numbers(await mover.receive("orders")) == [0]
    mover.store.next(
        "change",
        STATES,
        NEVER_SENT,
        times=1000,
        when=lambda change: any((row.values or {}).get("settled") == "dead" for row in change.rows),
    )
    await world.work("orders", 5 * SECOND, [mover])
    hit = []

    async def meanwhile() -> None:
        hit.append(1)
        mover.store.heal()
        for _ in range(200):
            await world.work("orders", SECOND, [mover, other])
            states, _ = await world.bucket("orders", 0)
            if states.rows[0].values["settled"] == "dead":
                break
        else:
            raise AssertionError("not settled")
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    split.pause = meanwhile
    await mover.engine.release_leases()
    await world.work("orders", 3 * MINUTE, [second])
    assert hit
    assert [d.body for d in await other.drain("dead")] == [b"who"]


async def test_peek_gives_nobody_an_erased_one_as_empty(world: World) -> None:
    server, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    await other.put("orders", b"who")

    async def meanwhile() -> None:
        assert await other.engine.erase(world.account, "orders", MessageId(0, 0))

    server.store.next("read", BODIES, meanwhile, when=lambda span: span.columns is None)
    assert await server.engine.peek(world.account, "orders", 10) == []
