"""A finished run, as the checkers see it."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair.model import QueueSettings
from angelhair.simulation.history import History, Put
from angelhair.simulation.variation import Variation


@dataclass(slots=True)
class Outcome:
    seed: int
    queue: str
    dead_letter_queue: str
    settings: QueueSettings
    history: History
    faults: dict[str, int]
    steps: int
    redriven: frozenset[str] = frozenset()
    """Bodies of dead letters that were sent back, rightly under new ids."""
    variation: Variation | None = None
    """What was played."""

    def may_be_cleared(self, put: Put, deleted: bool = False) -> bool:
        """Whether a purge or a deletion may have taken the message: a repeated put is as old as the first.
        `deleted`: a deletion, and nothing less."""
        found = [cleared for cleared in self.history.cleared if cleared.deleted or not deleted]
        if not found:
            return False
        started_us = min(other.started_us for other in self.history.puts if other.body == put.body)
        return any(
            cleared.queue == put.queue and (cleared.ended_us is None or started_us <= cleared.ended_us)
            for cleared in found
        )
