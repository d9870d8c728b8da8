"""A finished run, as the checkers see it."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair.model import MessageId, QueueSettings
from angelhair.simulation.history import History, Put


@dataclass(slots=True)
class Outcome:
    seed: int
    queue: str
    dead_letter_queue: str
    settings: QueueSettings
    history: History
    faults: dict[str, int]
    steps: int
    redriven: bool
    """Whether dead letters may have been sent back, under new ids."""
    floors: dict[int, int]
    """By lane: the first id that had not been dropped in the end."""

    def may_be_cleared(self, put: Put) -> bool:
        """Whether a purge or a deletion may have taken the message: a repeated put is as old as the first."""
        if not self.history.cleared:
            return False
        started_us = min(other.started_us for other in self.history.puts if other.body == put.body)
        return any(
            cleared.queue == put.queue and (cleared.ended_us is None or started_us <= cleared.ended_us)
            for cleared in self.history.cleared
        )

    def dropped_ids(self, ids: set[str]) -> bool:
        """Whether one of these ids lies in a bucket that was dropped, or in a lane that is gone altogether."""
        parsed = [MessageId.parse(text) for text in ids]
        return any(
            message.lane not in self.floors or message.number < self.floors[message.lane] for message in parsed
        )
