"""A run that was interrupted once is never finished: it takes longer than the window to look at each of its messages,
and if their keys lapsed meanwhile each further try would do the same (R10)."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import KEYS
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT, Between
from tests.queues import DAY, MINUTE, SECOND, World

CALL_MS = 5
"""What a call of the store takes: DESIGN 5, one conditional write on three nodes takes 5 ms and more."""


MOST_CALLS = 30


class Slow(Between):
    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self.world = world

    async def _pass(self, verb, items):
        self.world.wait(CALL_MS)
        return await super()._pass(verb, items)


@pytest.mark.parametrize("interrupted", [False, True])
async def test_r10_run_never_finishes(world: World, interrupted: bool) -> None:
    """False is the control: the same run, not interrupted, takes a moment. 1,000 messages and a window of 10 seconds;
    with the window of 5 minutes that is the default it is 15,000 messages at 5 ms."""
    first, second = world.server(), world.server(store=Slow(world))
    await first.create("orders", dedup_window_ms=10 * SECOND, retention_ms=DAY)
    count = 1_000
    run, batch = Run("task", 0, count, "digest", DAY), [NewMessage(b"m", key=f"k{n}") for n in range(count)]
    begun = await (second if not interrupted else first).engine.begin_run(world.account, "orders", run)
    if interrupted:
        first.store.next(
            "change", KEYS, NEVER_SENT, times=10**6, when=lambda c: c.rows[0].values["status"] == "committed"
        )
        with pytest.raises(StoreError):
            await first.engine.finish_run(begun, batch)
        world.wait(MINUTE)
    said = []
    for _ in range(3):
        try:
            begun_ms = world.dial.wall_ms
            begun = await second.engine.begin_run(world.account, "orders", run) if interrupted else begun
            said.append(await second.engine.finish_run(begun, batch))
            break
        except AngelhairError as error:
            said.append((str(error), world.dial.wall_ms - begun_ms))
    assert said[-1] == set(), said
    # A few calls for all of them together, whoever has to be asked.
    assert world.dial.wall_ms - begun_ms <= MOST_CALLS * CALL_MS
