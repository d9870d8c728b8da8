"""What a seed varies for a bucketed queue with priorities and tenants: all that it varies for others, and these.

A share of the seeds is calm: no fault, one server, one consumer. Then it can be counted who was passed over by whom.
"""

from __future__ import annotations

import random
from dataclasses import replace

from angelhair.simulation.themes import Theme
from angelhair.simulation.variation import PATIENCE, Variation

FAIR = "fair"
"""What to ask for, among kinds of queues; it is a bucketed one."""

CALM_SHARE = 0.3
TO_AND_FRO_SHARE = 0.2
FLOOD = "flood"
"""The tenant that sends most of the messages."""

FAIR_VARIED: dict[str, tuple[int, ...]] = {
    "NOISY_MESSAGES": (2, 5, 30),
    "RANK_SHARE": (2, 3, 8),
    "TENANTS": (1, 3, 1_024),
    "TENANT_RUNS": (2, 64),
}


def draw_fair(source: random.Random, theme: Theme, calm: bool) -> Variation:
    base = Variation.draw(source, theme)
    if calm:
        return _calm(source, base)
    deeds = tuple(deed for deed in ("priorities", "fair") if source.random() < 0.3)
    varied = replace(
        base,
        settings=replace(base.settings, priorities=source.choice((1, 1, 2, 4))),
        tenants=source.choice((2, 5, 20)),
        deeds=(*base.deeds, *deeds),
        bounds=base.bounds | {name: source.choice(choices) for name, choices in FAIR_VARIED.items()},
    )
    return _to_and_fro(varied) if source.random() < TO_AND_FRO_SHARE else varied


def _to_and_fro(base: Variation) -> Variation:
    """Urgent messages go to the dead letters and come back, while their lanes stay what they are."""
    settings = replace(base.settings, priorities=4, max_deliveries=1, dead_letter_queue="dead")
    return replace(
        base, settings=settings, deeds=("redrive",), operator_rest_ms=1_000, manners=("ack", "forget", "release"),
    )


def _calm(source: random.Random, base: Variation) -> Variation:
    """Messages come faster than they go."""
    priorities = source.choice((1, 1, 2, 4))
    settings = replace(
        base.settings, bucket_size=source.choice((20, 50)), lanes=source.choice((1, 2)), priorities=priorities,
        visibility_timeout_ms=30_000, max_deliveries=None, dead_letter_queue=None,
    )
    return replace(
        base,
        settings=settings, servers=1, producers=1, consumers=1, messages=250, put_sizes=(3, 12, 12), keyed_share=0,
        delays_ms=(0,), rest_ms=50, manners=("ack", "slow"), deeds=(), ending="", tenants=40, calm=True,
        bounds=PATIENCE | {"NOISY_MESSAGES": source.choice((5, 30)), "RANK_SHARE": source.choice((4, 8))},
    )
