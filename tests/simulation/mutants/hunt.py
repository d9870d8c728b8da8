"""Plays seeds with a mutant at work until a checker catches it.

Where each mutant was caught last is remembered in `caught.json` and played first: most are found there again at once.
`python -m tests.simulation.mutants.hunt` hunts for those that are not, and writes the file anew.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
from pathlib import Path
from typing import NamedTuple

from angelhair.simulation.run import run_seed
from tests.simulation.mutants.patching import Mutant

SEEDS = 500
"""Every mutant must be caught within so many."""

CAUGHT = Path(__file__).with_name("caught.json")


class Catch(NamedTuple):
    seed: int
    violation: str


def hunt(mutant: Mutant, first: int | None = None) -> Catch | None:
    """A seed below `SEEDS` in which one of the mutant's own checkers speaks: `first` if it does, else the lowest."""
    seeds = list(range(SEEDS))
    if first is not None and first in seeds:
        seeds.insert(0, first)
    with mutant.at_work():
        for seed in seeds:
            violations = run_seed(seed, kind=mutant.kind).violations
            gc.collect()
            for violation in violations:
                if violation.partition(":")[0] in mutant.caught_by:
                    return Catch(seed, violation)
    return None


def remembered() -> dict[str, int]:
    found: dict[str, int] = json.loads(CAUGHT.read_text())
    return found


def _hunt_by_name(name: str) -> tuple[str, int | None]:
    from tests.simulation.mutants import MUTANTS

    gc.disable()
    catch = hunt(next(mutant for mutant in MUTANTS if mutant.name == name), remembered().get(name))
    return name, None if catch is None else catch.seed


def _write() -> None:
    from tests.simulation.mutants import MUTANTS

    with multiprocessing.get_context("spawn").Pool() as pool:
        found = dict(pool.imap_unordered(_hunt_by_name, [mutant.name for mutant in MUTANTS], chunksize=1))
    CAUGHT.write_text(json.dumps({name: seed for name, seed in sorted(found.items()) if seed is not None}, indent=1))
    print(f"caught {len(found)} of {len(MUTANTS)}; missed: {[name for name, seed in found.items() if seed is None]}")


if __name__ == "__main__":
    _write()
