"""R10: what expired unseen between two tries of a run, or of a put with a key, is not confirmed as if it were there."""

from __future__ import annotations

import pytest

from angelhair.engine.runs import Bodies
from angelhair.engine.schema import LEDGER, POINTERS, STATES
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.queues import DAY, HOUR, MINUTE, SECOND, World
from tests.runs import ALWAYS, all_of, put, run_of

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": DAY}


async def test_run_expired_unseen_then_committed_into_a_finished_bucket(world: World) -> None:
    """All is written, the last word is lost, nobody consumes, the retention passes, repair finishes the bucket. Then
    the run is tried again: it is said to be committed, and nobody ever receives it."""
    failing, other = world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m%d" % n) for n in range(4)]
    failing.store.next(
        "change", LEDGER, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=ALWAYS
    )
    with pytest.raises(StoreError):
        await put(failing, run_of(batch), batch)
    await world.work("orders", 2 * HOUR, [other], every_ms=MINUTE)
    assert await put(other, run_of(batch), batch)
    assert not await put(other, run_of(batch), batch), "committed"
    assert await all_of(world, other) == {m.body: 1 for m in batch}


async def test_keyed_put_expired_unseen_then_confirmed_into_a_finished_bucket(world: World) -> None:
    """The same with an ordinary put with a key, all settings at their defaults but SQS's shortest retention."""
    failing, other = world.server(), world.server()
    await other.create("orders", retention_ms=MINUTE, bucket_size=1, repair_timeout_ms=5 * SECOND)
    failing.store.next("read", POINTERS, UNAVAILABLE, times=ALWAYS)
    (outcome,) = await failing.put_outcomes("orders", [NewMessage(b"first", key="k")])
    assert isinstance(outcome, AngelhairError), outcome
    await world.work("orders", 3 * MINUTE, [other])
    (outcome,) = await other.put_outcomes("orders", [NewMessage(b"first", key="k")])
    assert not isinstance(outcome, AngelhairError)
    assert await all_of(world, other) == {b"first": 1}


@pytest.mark.parametrize("columns", [False, True])
async def test_a_pause_longer_than_the_retention_between_begin_and_finish(world: World, columns: bool) -> None:
    """Of the two ways of a run, the short one forgets to date the messages anew: they are expired when committed."""
    server = world.server()
    await server.create("orders", retention_ms=MINUTE, **SETTINGS)
    batch = [NewMessage(b"m%d" % n) for n in range(4)]
    begun = await server.engine.begin_run(world.account, "orders", run_of(batch))
    world.wait(2 * MINUTE)
    await server.engine.finish_run(begun, Bodies([m.body for m in batch]) if columns else batch)
    assert await all_of(world, server) == {m.body: 1 for m in batch}


async def test_finishing_races_with_dating_anew(world: World) -> None:
    """Repair has seen the bucket expired; the run is tried again and dates its messages anew, finding their rows; then
    repair finishes the bucket over them: nothing told it that they are new."""
    failing, other, worker = world.server(), world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m%d" % n) for n in range(4)]
    failing.store.next(
        "change", LEDGER, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=ALWAYS
    )
    with pytest.raises(StoreError):
        await put(failing, run_of(batch), batch)
    world.wait(HOUR + MINUTE)
    rule = worker.store.next(
        "change", STATES, lambda: _retry(other, batch), when=lambda change: change.set_flags.get("finished") == 1
    )
    await world.work("orders", 3 * MINUTE, [worker])
    assert rule.happened
    assert await all_of(world, other) == {m.body: 1 for m in batch}


async def _retry(other, batch):
    assert await put(other, run_of(batch), batch)
