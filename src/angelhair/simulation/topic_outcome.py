"""A finished run with topics, as the checkers see it."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair.simulation.topic_history import TopicHistory


@dataclass(slots=True)
class TopicOutcome:
    history: TopicHistory
    fifo: bool
    """The topic's kind."""
    queues: tuple[str, ...]
    fifo_queues: tuple[str, ...]
    outlived_keys: bool
    """The world lasted longer than keys are remembered: what is spread again then may be there again."""
