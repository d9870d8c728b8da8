"""What a seed varies for a fifo queue: as for a bucketed one, within what a fifo queue can do."""

from __future__ import annotations

import random
from dataclasses import replace

from angelhair.model import BY_GROUP, BY_QUEUE, FIFO, QueueSettings
from angelhair.simulation.themes import Theme
from angelhair.simulation.variation import Variation

FIFO_VARIED: dict[str, tuple[int, ...]] = {
    "LOOK_AHEAD_MESSAGES": (15, 120_000, 120_000),
    "LOG_ROWS": (1, 5, 10_000),
    "LOG_BYTES": (1, 1_048_576),
    "GROUP_TOUCHED": (2, 1_000),
    "GROUP_ACKED": (1, 100),
    "EPOCH_READ_ROWS": (3, 20_000, 20_000),
    "EPOCH_ROWS": (1, 4, 10_000),
    "GROUPS_AGE_MS": (0, 200),
    "LOW_LOOK_MS": (500, 5_000),
    "EPOCH_LOOK_MS": (1_000, 60_000),
}

LONG_WINDOW_MS = 3_600_000
"""Longer than any try of a put may be late in a seed: then one key is one message, whatever happens."""
SHORT_WINDOW_MS = 2_000
"""So short that buckets are dropped while a seed plays. Then every key is put once."""


def draw_fifo(source: random.Random, theme: Theme) -> Variation:
    base = Variation.draw(source, theme)
    repeated = source.random() < 0.5
    lanes = source.choice((1, 1, 1, 2))
    settings = replace(
        base.settings,
        kind=FIFO,
        lanes=lanes,
        delay_ms=source.choice((0, 0, 0, 700)),
        repair_timeout_ms=QueueSettings().repair_timeout_ms,
        dedup_window_ms=LONG_WINDOW_MS if repeated else SHORT_WINDOW_MS,
        dedup_scope=BY_GROUP if lanes > 1 else source.choice((BY_QUEUE, BY_GROUP)),
    )
    return replace(
        base,
        settings=settings,
        messages=min(base.messages, 200),
        keyed_share=0.3 if repeated else 0.0,
        delays_ms=(0,),
        manners=tuple(manner for manner in base.manners if manner != "rewrite") or ("ack",),
        deeds=tuple(deed for deed in base.deeds if deed not in ("lanes", "move back")),
        groups=source.choice((1, 2, 4, 12)),
        bounds=base.bounds | {name: source.choice(choices) for name, choices in FIFO_VARIED.items()},
        # Drawn last, and only where keys are known for long: other seeds play as they did without it.
        runs_in_order=repeated and source.random() < 0.5,
    )
