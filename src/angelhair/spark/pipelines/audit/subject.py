"""What is audited: a queue with its marks, and what its settings allow."""

from __future__ import annotations

from typing import NamedTuple

from angelhair import limits
from angelhair.engine import catalog
from angelhair.engine.catalog import Reading
from angelhair.errors import QueueNotFound
from angelhair.spark.pipelines.audit.accounting import LaneFacts, Short
from angelhair.spark.planning import LaneShape, QueueShape, look


class Subject(NamedTuple):
    shape: QueueShape
    archive: bool
    most_deliveries: int | None
    """None where nothing keeps a message from being delivered again."""
    judged_since_ms: int
    """What was put before may have been delivered and have expired by other settings."""

    def facts(self, lane: LaneShape, floor: int, first: int, end: int, short: tuple[Short, ...]) -> LaneFacts:
        """`floor`: in buckets, as it is after the queue was read. `first`, `end`: the lane's ids in the lake."""
        size = self.shape.bucket_size
        # Since archiving began, a queue with `archive` on drops only what its mark has passed.
        kept_until = floor if self.archive and end else lane.archived
        return LaneFacts(
            lane.number, lane.next_id, min(lane.next_id, floor * size), min(lane.next_id, lane.settled * size),
            first, end, max(kept_until, lane.archived) * size, short,
        )


async def survey(store: Reading, account: str, name: str) -> Subject:
    shape = await look(store, account, name)
    queue = await catalog.load(store, account, name)
    if queue is None:
        raise QueueNotFound(account, name)
    settings = queue.settings
    changed = queue.changed_at_ms > queue.created_at_ms
    most = settings.max_deliveries
    if settings.dead_letter_queue is None or await catalog.load(store, account, settings.dead_letter_queue) is None:
        # Nowhere to go: what has used up its deliveries is delivered on (A1).
        most = None
    since_ms = queue.changed_at_ms + 2 * limits.CLOCK_ERROR_MS if changed else 0
    return Subject(shape, settings.archive, most, since_ms)
