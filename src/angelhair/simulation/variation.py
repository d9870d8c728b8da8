"""What a seed varies beside the faults: the queue's settings, the load, and the engine's own bounds.

The bounds of `limits` are hints about sizes and patience, none of them is needed for a promise. Drawing small ones
makes a short run meet what a long one meets: pages that end in the middle, portions, retries that run out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from angelhair import limits
from angelhair.model import QueueSettings
from angelhair.simulation.themes import PLAIN, Theme

VARIED: dict[str, tuple[int, ...]] = {
    "CHANGE_ROWS": (1, 3, 500),
    "PREFETCH_MESSAGES": (1, 4, 128),
    "EXAMINED_BUCKETS": (1, 4),
    "OPEN_BUCKETS": (1, 2, 8),
    "GAP_RUNS": (1, 8),
    "CLOSE_PATIENCE_MS": (0, 50, 2_000),
    "WAKE_PERIOD_SLOTS": (3, 60, 600),
    "WAKE_ENTRIES": (1, 4, 512),
    "WAKE_PERIODS": (2, 64),
    "WAKE_VISITS": (1, 64),
    "FINAL_BUCKETS": (1, 3, 32),
    "LOW_BUCKETS": (1, 8),
    "FULL_BUCKETS": (1, 1_024),
    "COUNTING_LOOKS": (1, 4),
    "FINISHED_BUCKETS": (1, 256),
    "DROP_BUCKETS": (1, 32),
    "MOVES": (1, 100),
    "PUT_GROUPS_WRITING": (1, 4),
    "BATCH_MESSAGES": (12, 1_000),
    "CATALOG_AGE_MS": (500, 5_000),
    "LEASE_MS": (3_000, 10_000),
    "STEP_MS": (1_000,),
    "DELAY_LINE_MS": (600, 4_000, 900_000),
    "DELAY_LINE_MESSAGES": (1, 256),
    "DELAY_LINE_LOCK_MS": (1_000, 10_000),
}

PATIENCE: dict[str, int] = {
    "WAKE_STEP_MS": 5_000,
    "LOOK_AGAIN_MS": 10_000,
    "LOOK_AGAIN_MAXIMUM_MS": 60_000,
    "LEASE_BEAT_MS": 1_000,
}
"""Shorter than in production, so that a drain takes virtual minutes and not hours."""


MANNERS = ("ack", "ack", "slow", "twice", "forget", "late", "extend", "release", "rewrite")
"""What a consumer may do with a delivery; see `Clients`."""


@dataclass(frozen=True, slots=True)
class Variation:
    settings: QueueSettings
    servers: int
    producers: int
    consumers: int
    messages: int
    put_sizes: tuple[int, ...]
    keyed_share: float
    """How many of the single puts carry a key. Buckets with keys are not dropped while a seed plays."""
    keys_in_runs: bool
    """Whether messages of runs may have keys, too."""
    delays_ms: tuple[int, ...]
    rest_ms: int
    operator_rest_ms: int
    manners: tuple[str, ...]
    deeds: tuple[str, ...]
    flush: bool
    """What is still on its way when the faults end lands then, and not hours later."""
    ending: str
    """What happens to the servers when the faults end: nothing, a reboot of all, or the loss of one for good."""
    bounds: dict[str, int]
    joins: bool
    """The store makes a put in one step."""
    groups: int = 1
    """Message groups, of a fifo queue."""
    runs_in_order: bool = False
    """Of a fifo queue: some of its messages are put in runs."""
    tenants: int = 0
    """Of a fair queue: so many send messages, of any priority."""
    calm: bool = False
    """Nothing goes wrong, and one thing happens after the other."""

    @classmethod
    def draw(cls, source: random.Random, theme: Theme = PLAIN) -> Variation:
        def draw(name: str, *otherwise: Any) -> Any:
            return theme.draw(source, name, otherwise)

        dead = draw("dead", True, True, False, False, False)
        settings = QueueSettings(
            bucket_size=draw("bucket_size", 1, 2, 5, 10, 20, 50),
            lanes=draw("lanes", 1, 1, 1, 2, 3),
            visibility_timeout_ms=draw("visibility_timeout_ms", 500, 2_000, 10_000, 30_000),
            repair_timeout_ms=draw("repair_timeout_ms", 100, 1_000, 8_000),
            # Longer than any seed plays: only a clock that is wrong could make anything expire.
            retention_ms=draw("retention_ms", None, 86_400_000),
            max_deliveries=draw("max_deliveries", 1, 2, 5) if dead else None,
            dead_letter_queue="dead" if dead else None,
            history_ms=draw("history_ms", 0, 0, 5_000, 86_400_000),
            dedup_window_ms=30 * 86_400_000,
        )
        deeds = [deed for deed in ("lanes", "look", "move back", "redrive") if source.random() < 0.3]
        if source.random() < 0.08:
            deeds.append(source.choice(("purge", "delete")))
        rest_ms = draw("rest_ms", 5, 50, 200, 1_000)
        return cls(
            settings=settings,
            servers=draw("servers", 1, 2, 3, 3),
            producers=draw("producers", 1, 2, 3, 4),
            consumers=draw("consumers", 1, 2, 3, 4),
            messages=draw("messages", 100, 150, 250, 400),
            put_sizes=draw("put_sizes", (1, 1, 1, 1, 2, 3, 5, 12)),
            keyed_share=draw("keyed_share", 0, 0.1, 0.3),
            keys_in_runs=theme.keys_in_runs,
            delays_ms=draw("delays_ms", (0,), (0, 0, 0, 0, 0, 0, 700, 5_000, 40_000)),
            rest_ms=rest_ms,
            operator_rest_ms=draw("operator_rest_ms", 10 * rest_ms + 500),
            manners=draw("manners", tuple(source.sample(MANNERS, source.randint(2, len(MANNERS))))),
            deeds=draw("deeds", tuple(deeds)),
            flush=source.random() < 0.6,
            ending=draw("ending", "", "", "reboot", "loss"),
            bounds=PATIENCE | {name: draw(name, *choices) for name, choices in VARIED.items()},
            joins=draw("joins", False, False, True),
        )


@contextmanager
def bounds_in_force(bounds: dict[str, int]) -> Iterator[None]:
    """The engine with these bounds, for the time of one seed."""
    before = {name: getattr(limits, name) for name in bounds}
    try:
        for name, value in bounds.items():
            setattr(limits, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(limits, name, value)
