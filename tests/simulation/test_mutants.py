"""The simulator catches an engine that is broken: every mutant within 500 seeds.

A mutant counts as caught when one of the checkers that it names speaks. A broken world, or another checker, would mean
that the mutant is not the one that was meant. The controls must pass: what they take away is for speed only, or another
rule stands in for it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from angelhair.simulation.checkers import CHECKERS
from angelhair.simulation.checkers.databags import DATABAG_CHECKERS
from angelhair.simulation.checkers.timelines import TIMELINE_CHECKERS
from angelhair.simulation.checkers.topics import TOPIC_CHECKERS
from angelhair.simulation.run import run_seed
from tests.simulation.mutants import CONTROLS, MUTANTS, RARE, Mutant
from tests.simulation.mutants.hunt import SEEDS, hunt, remembered
from tests.simulation.mutants.patching import Patch

CONTROL_SEEDS = 30
"""Seeds that a control must pass: as many as it takes to catch nearly every mutant."""
MUTANTS_LEAST = 16
CHECKER_NAMES = {checker.__name__ for checker in (*CHECKERS, *TOPIC_CHECKERS, *TIMELINE_CHECKERS, *DATABAG_CHECKERS)}


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """As in a campaign: the collector's pauses cost more than what a seed leaves behind."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught(mutant: Mutant) -> None:
    catch = hunt(mutant, remembered().get(mutant.name))
    assert catch is not None, f"{mutant.name}: not caught in {SEEDS} seeds"
    print(f"{mutant.name}: seed {catch.seed}: {catch.violation}")


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_control_does_no_harm(control: Mutant) -> None:
    with control.at_work():
        found = [violation for seed in range(CONTROL_SEEDS) for violation in run_seed(seed).violations]
    assert found == []


@pytest.mark.parametrize("mutant", RARE, ids=lambda mutant: mutant.name)
def test_rare_mutant_falls_to_its_attack_and_the_engine_does_not(mutant: Mutant) -> None:
    assert mutant.attack is not None
    assert asyncio.run(mutant.attack())
    with mutant.at_work():
        assert not asyncio.run(mutant.attack())


def test_there_are_mutants_enough_and_each_says_what_it_breaks() -> None:
    everybody = (*MUTANTS, *RARE, *CONTROLS)
    assert len(MUTANTS) >= MUTANTS_LEAST
    assert len({mutant.name for mutant in everybody}) == len(everybody)
    for mutant in MUTANTS:
        assert mutant.breaks and mutant.rule and mutant.caught_by and not mutant.covered_by
        assert set(mutant.caught_by) <= CHECKER_NAMES
    for control in CONTROLS:
        assert control.breaks and control.rule and control.covered_by and not control.caught_by


@pytest.mark.parametrize("mutant", [*MUTANTS, *RARE, *CONTROLS], ids=lambda mutant: mutant.name)
def test_mutant_fits_the_engine_and_leaves_it_as_it_was(mutant: Mutant) -> None:
    functions = list(mutant.codes())
    before = [function.__code__ for function in functions]
    with mutant.at_work():
        assert all(function.__code__ is not code for function, code in zip(functions, before, strict=True))
    assert [function.__code__ for function in functions] == before


def test_a_patch_that_no_longer_fits_is_refused() -> None:
    stale = Mutant("stale", "Nothing.", "none", (Patch("bucketed.put.write", "words that are not there", "others"),))
    with pytest.raises(LookupError, match=r"occurs 0 times in bucketed\.put\.write"), stale.at_work():
        pytest.fail("the mutant is at work")
