"""Plays seeds with a mutant at work until a checker catches it."""

from __future__ import annotations

import gc
from typing import NamedTuple

from angelhair.simulation.run import run_seed
from tests.simulation.mutants.patching import Mutant

SEEDS = 500
"""Every mutant must be caught within so many."""


class Catch(NamedTuple):
    seed: int
    violation: str


def hunt(mutant: Mutant) -> Catch | None:
    """The first seed, from 0 on, in which one of the mutant's own checkers speaks."""
    with mutant.at_work():
        for seed in range(SEEDS):
            violations = run_seed(seed).violations
            gc.collect()
            for violation in violations:
                if violation.partition(":")[0] in mutant.caught_by:
                    return Catch(seed, violation)
    return None
