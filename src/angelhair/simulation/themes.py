"""Themes: seeds that lay stress on one thing. Chance alone seldom brings together what a rare order of events takes.

A theme gives some faults a rate of its own and narrows some choices of the variation; all else stays as it was drawn.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from angelhair.simulation import faults as kinds
from angelhair.simulation.faults import FaultPlan, log_uniform

PLAIN_SHARE = 0.4
"""Share of the seeds without a theme."""

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Theme:
    name: str
    rates: Mapping[str, Range] = field(default_factory=dict)
    """Between which bounds the rate of a fault is drawn, whatever the plan had."""
    without: tuple[str, ...] = ()
    """Faults that would hide what the theme is about."""
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """What may be drawn for a setting, a trait of the load or a bound."""
    true_clocks: bool = False
    """Every clock is right, so that a message that is visible a moment too early shows."""
    keys_in_runs: bool = False
    """Messages of runs may have keys, too."""

    def sharpen(self, plan: FaultPlan, source: random.Random) -> FaultPlan:
        rates = {kind: rate for kind, rate in plan.rates.items() if kind not in self.without}
        rates.update((kind, log_uniform(source, *bounds)) for kind, bounds in self.rates.items())
        return replace(plan, rates=rates, skewed=plan.skewed and not self.true_clocks)

    def draw(self, source: random.Random, name: str, otherwise: tuple[Any, ...]) -> Any:
        return source.choice(self.choices.get(name, otherwise))


PLAIN = Theme("plain")

SLEEPERS = Theme(
    "sleepers",
    # Servers stop between any two calls while the others close, settle, finish and drop what they were at.
    rates={kinds.PAUSE: (5, 20), kinds.WRITE_DELAYED: (0.03, 0.2), kinds.CHANGE_DELAYED: (0.002, 0.05)},
    without=(kinds.OUTAGE, kinds.CRASH, kinds.SLOW),
    choices={
        "bucket_size": (1, 2, 3), "repair_timeout_ms": (100,), "history_ms": (0, 0, 2_000), "keyed_share": (0, 0, 0.1),
        "CLOSE_PATIENCE_MS": (0, 50), "STEP_MS": (200,), "servers": (3,), "producers": (3, 4), "consumers": (2, 3, 4),
        "messages": (150, 250), "rest_ms": (200, 500),
        "visibility_timeout_ms": (500, 2_000), "lanes": (1,), "put_sizes": ((1,), (1, 1, 3)),
    },
)
HELD_UP = Theme(
    "held up",
    # Writes and changes arrive seconds after they were sent, in any order, while buckets end as fast as they can.
    rates={kinds.WRITE_DELAYED: (0.2, 0.4), kinds.CHANGE_DELAYED: (0.01, 0.06)},
    without=(kinds.OUTAGE, kinds.CRASH, kinds.CRASH_AFTER_CALL, kinds.CRASH_BEFORE_CALL, kinds.CUT_OFF, kinds.SLOW),
    choices={
        "bucket_size": (1, 1, 2), "repair_timeout_ms": (100,), "history_ms": (0,), "keyed_share": (0, 0, 0.1),
        "CLOSE_PATIENCE_MS": (0,),
        "FINAL_BUCKETS": (32,), "LOW_BUCKETS": (8,), "FINISHED_BUCKETS": (256,), "DROP_BUCKETS": (32,),
        "STEP_MS": (200,), "servers": (2, 3), "producers": (6,), "consumers": (4, 6), "messages": (150,),
        "rest_ms": (100,), "visibility_timeout_ms": (2_000,), "lanes": (1,), "put_sizes": ((1,),), "dead": (False,),
        "manners": (("forget", "forget", "ack"), ("ack",)),
    },
)
LATE_STORE = Theme(
    "late store",
    # Whatever has an unknown outcome lands later, while everybody goes on.
    rates={kinds.CHANGE_LATE: (0.02, 0.1), kinds.WRITE_LATE: (0.02, 0.1), kinds.CHANGE_UNDECIDED: (0.02, 0.1),
           kinds.REFUSAL_READ_LATER: (0.1, 0.5)},
    choices={
        "bucket_size": (1, 2, 5), "repair_timeout_ms": (100, 1_000), "history_ms": (0,), "keyed_share": (0, 0, 0.1),
        "servers": (2, 3),
        "visibility_timeout_ms": (500, 2_000), "rest_ms": (50, 200),
    },
)
DEATHS = Theme(
    "deaths",
    # Servers die at their store calls and leave everything half done; in the end one never comes back. Little is put
    # and all of it is soon consumed: nothing but a claim itself makes anybody look into its bucket again.
    rates={kinds.CRASH_AFTER_CALL: (2, 10), kinds.CRASH_BEFORE_CALL: (1, 5)},
    without=(kinds.PAUSE, kinds.SUSPEND, kinds.OUTAGE, kinds.CUT_OFF),
    choices={
        "bucket_size": (20, 50, 200), "visibility_timeout_ms": (500,), "messages": (40, 60), "producers": (1,),
        "consumers": (3,), "rest_ms": (600, 1_200), "servers": (2,), "lanes": (1,), "put_sizes": ((1,),),
        "delays_ms": ((0,),), "manners": (("ack", "ack", "forget"), ("ack", "late")), "dead": (False,),
        "ending": ("reboot", "loss", "loss", "loss"),
    },
)
DEAD_LETTERS = Theme(
    "dead letters",
    # Most messages are moved, by servers that die and sleep on the way, while late consumers still ack them.
    rates={kinds.CRASH_AFTER_CALL: (5, 40), kinds.PAUSE: (5, 20), kinds.SLOW: (0.005, 0.05)},
    choices={
        "dead": (True,), "max_deliveries": (1, 1, 2), "visibility_timeout_ms": (500,), "servers": (2, 3),
        "manners": (("late", "forget"), ("ack", "late", "late"), ("late", "twice", "forget")), "rest_ms": (50, 200),
        "messages": (100, 150), "put_sizes": ((1,), (1, 1, 3)),
    },
)
RUSH = Theme(
    "rush",
    # Many servers hand out the same few messages again and again; some of their calls take long.
    rates={kinds.REFUSAL_READ_LATER: (0.1, 0.5), kinds.CHANGE_UNCONFIRMED: (0.01, 0.1), kinds.SLOW: (0.01, 0.05)},
    without=(kinds.OUTAGE, kinds.CUT_OFF, kinds.SUSPEND, kinds.CLOCK_JUMP, kinds.CLOCK_LEAP),
    true_clocks=True,
    choices={
        "bucket_size": (5, 20, 50), "visibility_timeout_ms": (500,), "servers": (3,), "consumers": (4, 6),
        "manners": (("late", "forget"), ("forget", "twice", "release"), ("ack", "late", "late", "extend")),
        "rest_ms": (50, 100), "messages": (150,), "lanes": (1,), "dead": (False,),
    },
)
LANES = Theme(
    "lanes",
    # Lanes are sealed, ended and made while servers remember the old ones.
    rates={kinds.PAUSE: (5, 20)},
    choices={
        "deeds": (("lanes",), ("lanes", "lanes", "look"), ("lanes", "move back")), "bucket_size": (1, 2, 5),
        "repair_timeout_ms": (100, 1_000), "history_ms": (0, 0, 86_400_000), "servers": (2, 3), "rest_ms": (100, 300),
        "CATALOG_AGE_MS": (5_000,), "operator_rest_ms": (500, 1_500), "lanes": (2, 3), "messages": (100, 150),
        "put_sizes": ((1,), (1, 1, 3)),
    },
)
REMADE = Theme(
    "remade",
    # The queue is deleted and made again under servers that remember the old one.
    rates={kinds.PAUSE: (5, 20)},
    choices={
        "deeds": (("delete",),), "servers": (2, 3), "rest_ms": (100, 300), "CATALOG_AGE_MS": (5_000,),
        "operator_rest_ms": (1_500, 4_000), "messages": (100, 150), "put_sizes": ((1,), (1, 1, 3)),
    },
)
CLOCKS = Theme(
    "clocks",
    # Wall clocks are wrong by minutes and years, and servers die before they can look after what they claimed.
    rates={kinds.CLOCK_LEAP: (5, 20), kinds.CLOCK_JUMP: (5, 20), kinds.CRASH: (1, 6)},
    choices={
        "servers": (2, 3), "rest_ms": (100, 300), "visibility_timeout_ms": (500, 2_000, 10_000),
        "bucket_size": (2, 10, 50), "messages": (100, 150), "put_sizes": ((1,), (1, 1, 3)),
    },
)

VOIDED = Theme(
    "voided",
    # Messages with keys and of runs are purged, or meet finished buckets, while some of their writers sleep.
    rates={
        kinds.PAUSE: (5, 20), kinds.WRITE_DELAYED: (0.03, 0.2), kinds.CHANGE_DELAYED: (0.002, 0.05),
        kinds.CRASH_AFTER_CALL: (1, 6),
    },
    without=(kinds.OUTAGE, kinds.SLOW),
    choices={
        "deeds": (("purge",), ("purge", "lanes"), ("lanes",), ("purge", "move back")), "keyed_share": (0.6, 0.9),
        "bucket_size": (1, 2, 3, 10), "repair_timeout_ms": (100, 1_000),
        "history_ms": (0, 0, 2_000, 86_400_000), "operator_rest_ms": (800, 2_500), "rest_ms": (100, 300),
        "servers": (2, 3), "messages": (100, 150), "put_sizes": ((1, 1, 3, 5),), "visibility_timeout_ms": (500, 2_000),
        "lanes": (1, 2),
    },
    keys_in_runs=True,
)

EVERY_VOIDED = 12
"""One seed of so many has this last theme, by its number: the others stay what they were before there was one."""

THEMES = (SLEEPERS, HELD_UP, LATE_STORE, DEATHS, DEAD_LETTERS, RUSH, LANES, REMADE, CLOCKS)


def draw_theme(seed: int, source: random.Random) -> Theme:
    if seed % EVERY_VOIDED == 7:
        return VOIDED
    return PLAIN if source.random() < PLAIN_SHARE else source.choice(THEMES)
