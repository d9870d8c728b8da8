"""R10: a try of a run ends at any of its steps. On Cassandra the same is done to tasks of Spark, in tests/spark."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES, LEDGER, POINTERS, SEQUENCES, STATES
from angelhair.engine.store import Table
from angelhair.errors import StoreError
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import World
from tests.runs import ALWAYS, SETTINGS, all_of, messages, put, run_of, way

__all__ = ["way"]

ENDS = [("read", table, UNAVAILABLE) for table in (LEDGER, POINTERS, STATES)] + [
    (verb, table, happening)
    for verb, table in (("change", SEQUENCES), ("change", LEDGER), ("write", BODIES))
    for happening in (LOSE_ANSWER, NEVER_SENT, UNAVAILABLE)
]


@pytest.mark.parametrize(("verb", "table", "happening"), ENDS)
async def test_r10_a_try_that_ends_anywhere_is_repeated(
    world: World, verb: str, table: Table, happening: str
) -> None:
    """Naive: remember at the end that it was put. Between the messages and that, a try ends, and all come twice."""
    failing, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = messages(10)
    if table is STATES:
        # Only who goes on with another's run looks at states.
        assert await failing.engine.begin_run(world.account, "orders", run_of(batch)) is not None
    failing.store.next(verb, table, happening, times=ALWAYS)
    with pytest.raises(StoreError):
        await put(failing, run_of(batch), batch)
    got = await all_of(world, other)
    await put(other, run_of(batch), batch)
    got += await all_of(world, other)
    assert got == {message.body: 1 for message in batch}
    assert not await put(other, run_of(batch), batch)
