"""What a seed varies for a timeline: what it varies for other queues, due times, and the tempers of its consumers."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from angelhair.model import DAY_MS, TIMELINE, QueueSettings
from angelhair.simulation.themes import Theme
from angelhair.simulation.variation import Variation

TIMELINE_VARIED: dict[str, tuple[int, ...]] = {
    "TIMELINE_WINDOW": (2, 8, 40, 512),
    "TIMELINE_CHECKPOINT": (1, 4, 256),
    "TIMELINE_SPAN_PARTS": (2, 64, 4_096),
    "TIMELINE_SPAN_LIFE_PARTS": (2, 256),
    "TIMELINE_DIRECT_PARTS": (0, 1, 3),
    "TIMELINE_INDEX_PARTS": (1, 2, 16),
    "TIMELINE_INDEX_ROWS": (1, 3, 256),
    "TIMELINE_INDEX_KNOWN": (1, 1_024),
    "TIMELINE_RAISE_MS": (0, 250),
    "TIMELINE_RAISE_ROWS": (1, 64),
    "TIMELINE_LEAD_MS": (1, 100),
    "TIMELINE_SECOND_MESSAGES": (1, 1_000),
    "TIMELINE_SECONDS": (1, 256),
    "TIMELINE_ASIDE": (1, 10_000),
    "TIMELINE_TAKE_ROUNDS": (1, 3),
    "TIMELINE_LOOK_MS": (5_000, 60_000),
    "TIMELINE_ACKED": (1, 1_024),
    "TIMELINE_RENEWED_ROWS": (1, 1_000),
}
"""The engine's own bounds of timelines."""

MESSAGES_MOST = 200
REST_LEAST_MS = 100
"""Slower than others are: a load should outlive some locks."""
SECOND_MS, HOUR_MS, YEAR_MS = 1_000, 3_600_000, 365 * DAY_MS

LATE, NOW, SOON, HOURS, YEARS = "late", "now", "soon", "hours", "years"
DUES = (
    (NOW, NOW, NOW, SOON),
    (NOW, SOON, SOON, LATE),
    (LATE, NOW),
    (SOON,),
    (NOW, NOW, NOW, NOW, NOW, SOON, SOON, SOON, LATE, LATE, HOURS),
    (NOW, NOW, NOW, NOW, NOW, NOW, NOW, SOON, SOON, SOON, SOON, LATE, HOURS, YEARS),
)
"""When the messages of a seed may be due."""

TEMPERS = (
    "ack", "ack", "ack", "slow", "twice", "forget", "late", "hang", "freeze", "die", "extend", "release", "aside",
)
"""What a consumer may do with a delivery; see `TimelineClients`."""

REDRIVE_SHARE = 0.7
"""Of the seeds with dead letters, those in which messages die often and an operator sends them back."""
FAILING = ("forget", "forget", "release")
"""What their consumers do beside all else."""
LINGER_MS = 45_000
"""For so long they go on when all is put: a message takes some deliveries to die, and some more to die again."""

SHORT_LIFE_MS = 2 * HOUR_MS
"""The shortest time after which rows expire: several times what a seed's faults and its load last."""
NEGLECT_SHARE = 0.06
"""Seeds in which nobody consumes for several times that long: what is not processed must not expire."""


@dataclass(frozen=True, slots=True)
class TimelineVariation:
    base: Variation
    named: int
    """Consumers with a name; the others have their server work for them."""
    dues: tuple[str, ...]
    tempers: tuple[str, ...]
    wandering: float
    """How often a consumer goes to another server without a reason."""
    lives: float
    """How often a consumer, after a round, says goodbye or is gone without a word."""
    neglected: bool
    drainers: str
    """Who works off what is left: `all` servers, or `one` of them, or `named` consumers."""
    linger_ms: int
    """For how long consumers and operator go on when all is put."""

    @property
    def settings(self) -> QueueSettings:
        return self.base.settings


def draw_timeline(source: random.Random, theme: Theme) -> TimelineVariation:
    def draw(name: str, *otherwise: Any) -> Any:
        return theme.draw(source, name, otherwise)

    base = Variation.draw(source, theme)
    before = base.settings
    neglected = source.random() < NEGLECT_SHARE
    settings = QueueSettings(
        kind=TIMELINE,
        lanes=draw("shards", 1, 1, 2, 3, 6),
        granularity=draw("granularity", "minute", "minute", "hour", "day"),
        producer_delay_ms=draw("producer_delay_ms", 0, 0, 50, 1_000, 5_000, 60_000),
        expire_after_ms=SHORT_LIFE_MS if neglected else source.choice((SHORT_LIFE_MS, 30 * DAY_MS, 30 * DAY_MS, None)),
        lock_ms=draw("lock_ms", 1_000, 2_000, 10_000),
        visibility_timeout_ms=before.visibility_timeout_ms,
        max_deliveries=before.max_deliveries,
        dead_letter_queue=before.dead_letter_queue,
    )
    consumers = base.consumers + source.choice((0, 0, 1, 3))
    deeds = [deed for deed in base.deeds if deed in ("lanes", "look", "delete")]
    redriving = settings.dead_letter_queue is not None and source.random() < REDRIVE_SHARE
    if redriving:
        deeds += ["redrive"] * source.choice((1, 3))
        settings = replace(
            settings,
            max_deliveries=source.choice((1, 1, 2)),
            visibility_timeout_ms=source.choice((500, 2_000)),
            producer_delay_ms=min(settings.producer_delay_ms, 1_000),
        )
    return TimelineVariation(
        base=replace(
            base,
            settings=settings,
            consumers=consumers,
            messages=min(base.messages, MESSAGES_MOST),
            rest_ms=max(base.rest_ms, REST_LEAST_MS),
            keyed_share=0.0,
            deeds=tuple(deeds),
            bounds=base.bounds | {name: source.choice(choices) for name, choices in TIMELINE_VARIED.items()},
        ),
        named=source.choice((0, consumers, consumers, consumers // 2)),
        dues=source.choice(DUES),
        tempers=(*source.sample(TEMPERS, source.randint(2, len(TEMPERS))), *(FAILING if redriving else ())),
        wandering=source.choice((0.0, 0.0, 0.02, 0.2)),
        lives=source.choice((0.0, 0.02, 0.1)),
        neglected=neglected,
        drainers=source.choice(("all", "one", "named")),
        linger_ms=LINGER_MS if redriving else 0,
    )
