"""A finished run with a timeline, as the checkers see it."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair.simulation.outcome import Outcome
from angelhair.simulation.timeline_history import TimelineHistory
from angelhair.simulation.timeline_variation import TimelineVariation


@dataclass(slots=True, kw_only=True)
class TimelineOutcome(Outcome):
    history: TimelineHistory
    played: TimelineVariation
    node_skew_us: int = 0
    """How far the store's own nodes may be from true time."""
