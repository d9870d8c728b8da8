"""Which runs a receive looks at: unlocked ones in the order of their turns, as many as may have what it wants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from angelhair import limits
from angelhair.engine.databag.cut import Run, share
from angelhair.engine.databag.lane import Bag

FEW = limits.BAG_BLOCKS
"""Groups of neighbours that are looked at one by one: where there are more, and little is in them, one look is at all
of a block that are chosen, and reads what lies between them as well."""

MANY = 4 * FEW
"""And so many at most, where more is in them."""


def is_first(bag: Bag, others_first: bool, run: Run) -> bool:
    """Whether it comes before the rest, whatever its turn: ours do, and now and then those of others, as it may be that
    nobody asks them."""
    runs = bag.view.runs
    places = share(len(runs), bag.place, bag.servers)
    is_ours = bool(places) and runs[places[0]].first <= run.first <= runs[places[-1]].last
    return is_ours != others_first


def choose(bag: Bag, looked: set[Run], others_first: bool, most_runs: int, most_groups: int) -> list[list[Run]]:
    """Groups of neighbours that follow each other in the order: until there are so many of both, or no more."""
    first: list[Run] = []
    then: list[Run] = []
    for run in bag.view.in_order():
        if run not in looked:
            (first if is_first(bag, others_first, run) else then).append(run)
    return _unlocked(bag, chain(first, then), most_runs, most_groups)


def _unlocked(bag: Bag, runs: Iterable[Run], most_runs: int, most_groups: int) -> list[list[Run]]:
    view, now = bag.view, bag.clock.now()
    by_wall = bag.trusts_clock(now)
    groups: list[list[Run]] = []
    count = 0
    for run in runs:
        block = view.blocks[run.block]
        if block.version is None or block.is_locked(run, now, by_wall):
            continue
        count += 1
        last = groups[-1] if groups else []
        if last and last[-1].last + 1 == run.first and last[-1].block == run.block:
            if len(last) < limits.BAG_GROUP_PARTITIONS:
                last.append(run)
                continue
        if len(groups) >= most_groups and count > most_runs:
            break
        groups.append([run])
    return groups


def by_block(groups: Sequence[list[Run]], whole: set[int]) -> list[list[Run]]:
    """Of some blocks all that are chosen as one; of others the first in the order, so that there are not too many."""
    found: dict[int, list[Run]] = {}
    single: list[list[Run]] = []
    for runs in groups:
        if runs[0].block in whole:
            found.setdefault(runs[0].block, []).extend(runs)
        else:
            single.append(runs)
    return [*(sorted(runs) for runs in found.values()), *single[: MANY - len(found)]]


def roomy(bag: Bag) -> set[int]:
    """Blocks of which it is not known that much lies between what is looked at: that was seen long ago, or never
    (R4)."""
    now_ms = bag.clock.now().monotonic_ms
    return {
        number for number, block in enumerate(bag.view.blocks) if now_ms - block.crowded_ms >= limits.BAG_CROWDED_MS
    }
