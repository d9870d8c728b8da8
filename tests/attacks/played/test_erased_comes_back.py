"""What was erased is given out: it had expired unseen in a finished bucket, and whoever speaks for it goes on to a new
id.

 1. A message is on its way by a row that speaks for it (a move's source, a ledger's entry), is written at X, and the
    mover or writer dies before it settles the row.
 2. X expires unseen, its bucket is finished. An operator erases X (Engine.erase says True). In a finished bucket
    `erase` notes `erased_at` only, without `settled`, and overwrites the body.
 3. The move or the run is resumed: X is late, `given` says that nobody was given it (it reads delivery, revision and
    settled, not erased_at), so the message goes on to Y, with the body from the source or the writer.
 4. A consumer receives at Y what was erased. (Control: in a bucket that is not finished the same erase settles the
    row, `given` sees it and the move ends.)

Promise: ARCHITECTURE "What was erased is given to nobody, whoever writes it again".
"""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import LEDGER, STATES
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.faults import NEVER_SENT
from tests.queues import DAY, MINUTE, SECOND, World, numbers

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": DAY}


@pytest.mark.parametrize("finished", [False, True])
async def test_by_a_move(world: World, finished: bool) -> None:
    failing, other = world.server(), world.server()
    await other.create("dead", retention_ms=10 * MINUTE, **SETTINGS)
    await other.create(
        "orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND, retention_ms=None,
        **SETTINGS,
    )
    await other.put("orders", b"who")
    assert numbers(await failing.receive("orders")) == [0]
    failing.store.next(
        "change", STATES, NEVER_SENT, times=1000,
        when=lambda change: any((row.values or {}).get("settled") == "dead" for row in change.rows),
    )
    await world.work("orders", 4 * SECOND, [failing])
    await other.put("dead", b"-")  # the bucket is full
    if finished:
        world.wait(11 * MINUTE)
        await world.work("dead", MINUTE, [other])
        states, _ = await world.bucket("dead", 0)
        assert states.flags.get("finished")
    assert await other.engine.erase(world.account, "dead", MessageId(0, 0))
    if not finished:
        world.wait(11 * MINUTE)
    await world.work("orders", 3 * MINUTE, [other])
    assert b"who" not in [delivery.body for delivery in await other.drain("dead")]


async def test_by_a_run(world: World) -> None:
    failing, other = world.server(), world.server()
    await other.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    run, batch = Run("task", 0, 2, "digest", DAY), [NewMessage(b"who"), NewMessage(b"-")]
    failing.store.next(
        "change", LEDGER, NEVER_SENT, times=1000, when=lambda c: c.rows[0].values["status"] == "committed"
    )
    begun = await failing.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await failing.engine.finish_run(begun, batch)
    world.wait(11 * MINUTE)
    await world.work("orders", MINUTE, [other])
    states, _ = await world.bucket("orders", 0)
    assert states.flags.get("finished")
    assert await other.engine.erase(world.account, "orders", MessageId(0, 0))
    begun = await other.engine.begin_run(world.account, "orders", run)
    await other.engine.finish_run(begun, batch)
    assert b"who" not in [delivery.body for delivery in await other.drain("orders")]
