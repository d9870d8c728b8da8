"""For how long a finished bucket is kept is never guessed: what it came with is read, or read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, LEDGER
from angelhair.engine.store import Partition, Span
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT, Between, Item
from tests.queues import DAY, HOUR, MINUTE, SECOND, YEAR, Server, World

SETTINGS: dict[str, Any] = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": 0}
BATCH = [NewMessage(b"m0"), NewMessage(b"m1")]
RUN = Run("task", 0, 2, "digest", DAY)


class BodiesFirst(Between):
    """Items of one call may run in any order: of a bucket's look the bodies are read first, and then comes a pause."""

    pause: Callable[[], Awaitable[None]] | None = None

    async def _pass(self, verb: str, items: Sequence[Item]) -> list[Any]:
        if verb != "read" or len(items) != 2 or _partition(items[1]).table is not BODIES:
            return await super()._pass(verb, items)
        (bodies,) = await super()._pass(verb, items[1:])
        (seen,) = await super()._pass(verb, items[:1])
        if self.pause is not None and _partition(items[0]).key.endswith(".0.0") and seen.flags.get("final") is not None:
            await self.pause()
        (states,) = await super()._pass(verb, items[:1])
        return [states, bodies]


def _partition(item: Item) -> Partition:
    assert isinstance(item, Span)
    return item.partition


async def put_late(world: World, worker: Server, sleeper: Callable[[], Awaitable[None]], others: Server) -> None:
    """Plays the queue until the worker looks into its first bucket; there, between the bodies and the states, the
    sleeper wakes."""
    split = worker.store.real
    assert isinstance(split, BodiesFirst)
    woken = []

    async def pause() -> None:
        if not woken and (await world.marks("orders")).settled >= 1:
            woken.append(True)
            await sleeper()

    split.pause = pause
    for _ in range(30):
        await world.work("orders", SECOND, [worker])
        await others.drain("orders")
    split.pause = None
    assert woken


async def test_r10_a_bucket_is_kept_until_the_run_lapses_that_it_has_to_tell_about(world: World) -> None:
    sleeper, other = world.server(), world.server()
    worker = world.server(store=BodiesFirst(world.store))
    await other.create("orders", **SETTINGS)
    begun = await sleeper.engine.begin_run(world.account, "orders", RUN)
    assert begun is not None
    await other.put("orders", b"later")
    got = Counter(delivery.body for delivery in await other.drain("orders"))
    sleeper.store.next(
        "change", LEDGER, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=1000
    )

    async def wake() -> None:
        with pytest.raises(StoreError):
            await sleeper.engine.finish_run(begun, BATCH)
        got.update(delivery.body for delivery in await sleeper.drain("orders"))

    await put_late(world, worker, wake, other)
    assert got == {b"m0": 1, b"m1": 1, b"later": 1}
    await world.work("orders", HOUR, [worker], every_ms=MINUTE)
    again = await other.engine.begin_run(world.account, "orders", RUN)
    assert again is not None
    await other.engine.finish_run(again, BATCH)
    for _ in range(4):
        assert await other.drain("orders") == []
        await world.work("orders", 30 * SECOND, [other])


@pytest.mark.parametrize("ahead_ms", [YEAR, -YEAR])
async def test_r5_a_wrong_clock_does_not_decide_for_how_long_a_bucket_is_kept(world: World, ahead_ms: int) -> None:
    sleeper, other = world.server(), world.server()
    worker = world.server(store=BodiesFirst(world.store), ahead_ms=ahead_ms)
    await other.create("orders", **SETTINGS)
    reserved = await sleeper.engine.reserve(world.account, "orders", 2)
    await other.put("orders", b"later")
    await other.drain("orders")

    async def wake() -> None:
        await sleeper.engine.put_reserved(reserved, BATCH)
        await sleeper.drain("orders")

    await put_late(world, worker, wake, other)
    states, _ = await world.bucket("orders", 0)
    assert states.flags.get("finished") == 1
    assert states.flags.get("keyed") is None


async def test_a_bucket_that_lost_a_body_is_finished_all_the_same(world: World) -> None:
    """A damaged store: repair does not wait for ever."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"a", b"b", b"c")
    await server.receive("orders", 10)
    bucket, _ = await world.bucket("orders", 0)
    assert len(bucket.rows) == 2
    queue = await world.queue("orders")
    await world.store.drop([server.engine.memory.lane(queue, 0).bodies(0)])
    await server.engine.purge(world.account, "orders")
    await world.work("orders", 3 * MINUTE, [server])
    assert (await world.marks("orders")).repair >= 1
