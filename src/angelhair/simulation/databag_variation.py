"""What a seed varies for a databag: what it varies for other queues, the number of partitions, and its own bounds.

A share of the seeds is calm: no fault, one server, one consumer. Then it can be told who was passed over by whom.
"""

from __future__ import annotations

import random
from dataclasses import replace

from angelhair.model import DATABAG, QueueSettings
from angelhair.simulation.themes import Theme
from angelhair.simulation.variation import PATIENCE, Variation

DATABAG_VARIED: dict[str, tuple[int, ...]] = {
    "BAG_SERIALS": (1, 7, 65_536),
    "BAG_PUT_MESSAGES": (1, 3, 20),
    "BAG_EPOCH_MESSAGES": (1, 3, 10, 4_096),
    "BAG_MESSAGE_BYTES": (4, 4_096),
    "BAG_EPOCHS_MANY": (1, 16),
    "BAG_EPOCH_AGE_MS": (1_000, 10_000, 600_000),
    "BAG_STATE_AGE_MS": (50, 1_000),
    "BAG_LOOK_ROWS": (1, 3, 64),
    "BAG_LOOK_MOST_ROWS": (16, 1_024),
    "BAG_LOOK_EPOCHS": (1, 16, 256),
    "BAG_GAP_BYTES": (1, 8_192),
    "BAG_CROWDED_MS": (500, 30_000),
    "BAG_GROUP_PARTITIONS": (4, 256),
    "BAG_ROUNDS": (4, 12),
    "BAG_FINISH_EPOCHS": (1, 2, 10),
    "BAG_FINISH_ROWS": (1, 3, 1_000),
    "BAG_FINISH_PAGES": (2, 8),
    "BAG_STEP_MS": (200, 1_000),
    "BAG_TEND_MS": (0, 5_000),
    "BAG_SYNC_MS": (500, 5_000, 30_000),
    "BAG_DELETED": (1, 10_000),
}
"""The engine's own bounds of databags."""

MANNERS = ("ack", "ack", "slow", "twice", "forget", "late")
MESSAGES_MOST = 250
CALM_SHARE = 0.15
OLD_EPOCHS_MS = 20_000
"""In the drain every epoch with something in it is sealed after so long: it has to go."""


NO_WINDOW_MS = 1_000


def draw_databag(source: random.Random, theme: Theme, calm: bool) -> Variation:
    base = Variation.draw(source, theme)
    least = source.choice((1, 2, 16, 30, 64))
    settings = QueueSettings(
        kind=DATABAG,
        min_partitions=least,
        max_partitions=least if calm else source.choice((least, 2 * least, 200)),
        visibility_timeout_ms=base.settings.visibility_timeout_ms,
        retention_ms=base.settings.retention_ms,
        history_ms=base.settings.history_ms,
        # Where keys are put their window lasts longer than the seed: no epoch is dropped, and no key comes again.
        dedup_window_ms=base.settings.dedup_window_ms if base.keyed_share else NO_WINDOW_MS,
    )
    bounds = base.bounds | {name: source.choice(choices) for name, choices in DATABAG_VARIED.items()}
    if calm:
        settings = replace(settings, dedup_window_ms=NO_WINDOW_MS)
        return replace(
            base, settings=replace(settings, visibility_timeout_ms=source.choice((500, 2_000))), servers=1, producers=1,
            consumers=1, messages=150, put_sizes=(1, 3, 12), keyed_share=0, delays_ms=(0,), rest_ms=50,
            manners=source.choice((("ack", "slow"), ("forget",), ("ack", "forget"))), deeds=(), ending="", calm=True,
            bounds=PATIENCE | bounds,
        )
    deeds = [deed for deed in base.deeds if deed in ("look", "delete", "purge")]
    deeds += ["bounds"] * source.choice((0, 1, 2))
    return replace(
        base,
        settings=settings,
        messages=min(base.messages, MESSAGES_MOST),
        delays_ms=(0,),
        manners=tuple(source.sample(MANNERS, source.randint(2, len(MANNERS)))),
        deeds=tuple(deeds),
        bounds=bounds,
    )
