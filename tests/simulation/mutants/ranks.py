"""Mutants of ranks: tenants, priorities, and the turns of their lanes."""

from angelhair.simulation.fair_variation import FAIR
from tests.simulation.mutants.patching import Mutant, Patch

RANKS = (
    Mutant(
        "flood taken for quiet",
        "No tenant is ever noisy: the messages of the others wait behind all of the flood.",
        "R11",
        (Patch("tenants.Tenants.put", "tenant.noisy = own >= least and", "tenant.noisy = own < 0 and"),),
        ("turns",),
        kind=FAIR,
    ),
    Mutant(
        "lowest rank first",
        "Lanes are read from the least urgent on.",
        "R11",
        (
            Patch(
                "memory.Memory._ranks_in_turn",
                "ranks = list(dict.fromkeys((queue.rank_of(lane) for lane in lanes)))",
                "ranks = list(dict.fromkeys((queue.rank_of(lane) for lane in reversed(lanes))))",
            ),
        ),
        ("turns",),
        kind=FAIR,
    ),
    Mutant(
        "priority left behind in the dead letters",
        "What comes back from the dead letters is as urgent as they are, and no longer what it was.",
        "R7, R11",
        (
            Patch(
                "moves._redrive_found",
                "lane.rank if origin_lane is None else to.rank_of(origin_lane)",
                "lane.rank",
            ),
        ),
        ("turns",),
        kind=FAIR,
    ),
    Mutant(
        "ranks of new lanes not written down",
        "A lane that was made for a priority or for a flood is a plain one to everybody who reads the catalog.",
        "R11",
        (
            Patch(
                "ranks.worth_keeping", "lane in lanes or (rank.priority and settings.priorities > 1)",
                "lane not in lanes",
            ),
        ),
        ("turns",),
        kind=FAIR,
    ),
)
