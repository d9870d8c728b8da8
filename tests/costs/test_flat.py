"""A14: what a message costs does not depend on how many have passed before it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.costs.clocks import StillClock
from tests.costs.passing import EARLY, differences, in_memory, pass_through

LATE = 100_000
"""`make prove` lets a million pass."""

TOLERATED = 0.05


def test_a14_a_message_costs_as_much_after_many_as_after_few(tmp_path: Path) -> None:
    async def test() -> None:
        clock = StillClock()
        async with in_memory(clock, tmp_path) as store:
            costs = await pass_through(store, clock, [EARLY, LATE])
        assert differences(costs[EARLY], costs[LATE], TOLERATED) == []
        assert costs[EARLY].drops > 0, "no bucket was dropped before the early window: it is not like the late one"

    asyncio.run(test())
