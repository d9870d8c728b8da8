"""A finished run with a databag, as the checkers see it."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair.simulation.databag_history import DatabagHistory
from angelhair.simulation.outcome import Outcome


@dataclass(slots=True, kw_only=True)
class DatabagOutcome(Outcome):
    history: DatabagHistory
    node_skew_us: int = 0
    """How far the store's own nodes may be from true time."""
