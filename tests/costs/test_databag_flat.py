"""D5: what a message of a databag costs does not depend on how many have passed before it, nor on how many wait."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from tests.costs.clients import SeededIdentities
from tests.costs.clocks import StillClock
from tests.costs.passing import in_memory
from tests.costs.passing_bags import Costs, pass_through

PASSED, WAITING, EPOCH = 20_000, 40_000, 128
"""`make prove` lets a million pass, has half a million wait, and holds them to the bars, too. Epochs as short as these
cost more, each at its end."""

SEED = 1


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> Costs:
    async def passed() -> Costs:
        clock = StillClock()
        async with in_memory(clock, tmp_path_factory.mktemp("costs")) as store:
            return await pass_through(store, clock, PASSED, WAITING, identities=SeededIdentities(SEED))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "BAG_EPOCH_MESSAGES", EPOCH)
        found = asyncio.run(passed())
    for when, cost in found._asdict().items():
        print(when, cost)
    return found


def test_d05_a_message_costs_the_same_after_many_have_passed(costs: Costs) -> None:
    assert costs.early.drops > 0, "no epoch was dropped in the early window: it is not like the late one"
    assert costs.grown("late") == []


def test_d05_a_message_costs_the_same_while_many_wait(costs: Costs) -> None:
    assert costs.grown("deep") == []
