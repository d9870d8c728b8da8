"""A key's message comes twice: a run goes on from an id of somebody else's put, and trusts its bucket to tell for as
long as the run's own window (R10)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS, STATES
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 1, "repair_timeout_ms": 5 * SECOND, "history_ms": 0, "dedup_window_ms": HOUR, "lanes": 2}


def committing(change) -> bool:
    return (change.rows[0].values or {}).get("status") == "committed"


@pytest.mark.parametrize("slept_ms", [5 * MINUTE, 40 * MINUTE])
async def test_r10_told_until_in_runs(world: World, slept_ms: int) -> None:
    """5 minutes is the control: the bucket is still there to tell."""
    first, p1, p2, receiver, second, worker = (world.server() for _ in range(6))
    await worker.create("orders", retention_ms=20 * MINUTE, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", delay_ms=5 * HOUR, key="k")]
    # The run's first try writes X and dies before it commits the key.
    first.store.next("change", KEYS, NEVER_SENT, times=1000, when=committing)
    begun = await first.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    await worker.engine.purge(world.account, "orders")
    # P1: X is purged; pending(Y, before X), X void; dies before it writes Y.
    p1.store.next(
        "write", BODIES, NEVER_SENT, times=1000,
        when=lambda w: w.rows[0].values.get("body") == b"m"
        and w.partition.key.split(".")[1:] != [str(begun.entry.lane), "0"],
    )
    (said,) = await p1.put_outcomes("orders", [NewMessage(b"m", delay_ms=5 * HOUR, key="k")])
    assert isinstance(said, StoreError)
    world.wait(HOUR + MINUTE)  # the key's row lapses
    # P2's turn is the second lane.
    for _ in range(2):
        (filler,) = await p2.put_outcomes("orders", [NewMessage(b"filler")])
        if filler.lane == begun.entry.lane:
            break
    await worker.drain("orders")
    # P2: pending(Z), written; dies before the commit.
    p2.store.next("change", KEYS, NEVER_SENT, times=1000, when=committing)
    (said,) = await p2.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(said, StoreError)
    # A receive is about to claim Z and sleeps; meanwhile Z has outlived its retention.
    at_claim, claim = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        at_claim.set()
        await claim.wait()

    receiver.store.next("change", STATES, hold, when=lambda change: bool(change.rows))
    receiving = asyncio.create_task(receiver.receive("orders"))
    await asyncio.wait_for(at_claim.wait(), 10)
    world.wait(25 * MINUTE)
    got: list[bytes] = []

    async def meanwhile() -> None:
        claim.set()
        deliveries = await receiving
        got.extend(delivery.body for delivery in deliveries)
        assert await receiver.ack("orders", *deliveries) == [None] * len(deliveries)
        await worker.put("orders", b"next")
        await worker.drain("orders")
        await world.work("orders", MINUTE, [worker])
        world.wait(slept_ms)
        await world.work("orders", MINUTE, [worker])
        got.append(b"|")

    again = await second.engine.begin_run(world.account, "orders", run)
    seen = []

    def moves_on(change) -> bool:
        values = change.rows[0].values
        seen.append((change.rows[0].expect, {n: values[n] for n in ("status", "lane", "id", "before")}))
        return values["before"] is not None and change.rows[0].expect.get("status") == "pending"

    rule = second.store.next("change", KEYS, meanwhile, when=moves_on, after=True)
    try:
        said = await second.engine.finish_run(again, batch)
    except AngelhairError as error:
        said = error
    assert rule.happened, (said, seen)
    world.wait(5 * HOUR - 2 * HOUR - MINUTE)
    got += await all_of(world, worker, ms=4 * MINUTE)
    assert got == [b"m", b"|"], (said, got, seen, await world.marks("orders"))
