"""What there is to read, and how it is cut: a queue's lanes with their marks, and runs of whole buckets.

Final buckets gain no message and finished ones never change, so a mark is all that a reader needs to know of how far it
may go; reading takes nothing away and moves no mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from angelhair.engine import catalog, places
from angelhair.engine.catalog import Queue, Reading
from angelhair.engine.marks import QueueGone, pointer_marks
from angelhair.engine.store import Span
from angelhair.errors import InvalidRequest, QueueNotFound
from angelhair.model import BUCKETED, DATABAG, TIMELINE

COMMITTED, FINAL, FINISHED = "committed", "final", "finished"
ISOLATIONS = (COMMITTED, FINAL, FINISHED)
"""Everything that is there; what gains no message any more; what never changes again."""

WITHOUT_BUCKETS = (TIMELINE, DATABAG)
"""Kinds that have no marks either, by which a stream or a job could go. A batch reads them as they are."""


class LaneShape(NamedTuple):
    number: int
    next_id: int
    floor: int
    """Buckets below are gone."""
    settled: int
    repair: int
    archived: int
    purged: int


class QueueShape(NamedTuple):
    account: str
    name: str
    incarnation: str
    bucket_size: int
    retention_ms: int | None
    lanes: tuple[LaneShape, ...]
    repair_timeout_ms: int = 0

    def end_of(self, lane: LaneShape, isolation: str) -> int:
        """The id that comes after the last that may be read."""
        if isolation == COMMITTED:
            return lane.next_id
        buckets = lane.settled if isolation == FINAL else lane.repair
        return min(lane.next_id, buckets * self.bucket_size)

    def start_of(self, lane: LaneShape) -> int:
        """The first id that may still be there."""
        return min(lane.next_id, lane.floor * self.bucket_size)


class Run(NamedTuple):
    """Ids of one lane, from whole buckets: what one task reads."""

    lane: int
    first: int
    end: int
    """The id after the last."""

    def buckets(self, bucket_size: int) -> range:
        return range(self.first // bucket_size, -(-self.end // bucket_size))


async def found(store: Reading, account: str, name: str) -> Queue:
    """The queue, of whichever kind. Raises `QueueNotFound`."""
    queue = await catalog.load(store, account, name)
    if queue is None or queue.status != catalog.ACTIVE:
        raise QueueNotFound(account, name)
    return queue


async def look(store: Reading, account: str, name: str) -> QueueShape:
    """A bucketed queue as it is now. Raises `QueueNotFound`."""
    queue = await found(store, account, name)
    kind = queue.settings.kind
    if kind in WITHOUT_BUCKETS:
        raise InvalidRequest(
            "queue", f"{name} is a {kind}, which no stream and no job can read: read it by a batch (spark.read), as "
            "often as need be"
        )
    if kind != BUCKETED:
        raise InvalidRequest("queue", f"{name} is a {kind} queue; only bucketed ones can be read")
    numbers = sorted(queue.lanes)
    spans = [Span(places.sequence(queue.incarnation, number)) for number in numbers]
    spans += [Span(places.pointers(queue.incarnation, number)) for number in numbers]
    slices = await store.read(spans)
    lanes = []
    for number, sequence, pointers in zip(numbers, slices, slices[len(numbers) :], strict=False):
        row = sequence.rows[0].values if sequence.rows else {}
        next_id = row.get("next")
        try:
            marks = pointer_marks(pointers)
        except QueueGone:
            raise QueueNotFound(account, name) from None
        if not isinstance(next_id, int) or row.get("deleted"):
            raise QueueNotFound(account, name)
        lanes.append(
            LaneShape(number, next_id, marks.floor, marks.settled, marks.repair, marks.archived, marks.purged)
        )
    settings = queue.settings
    return QueueShape(
        account, name, queue.incarnation, settings.bucket_size, settings.retention_ms, tuple(lanes),
        settings.repair_timeout_ms,
    )


def cut(wanted: Iterable[Run], bucket_size: int, at_least: int, most_buckets: int) -> list[Run]:
    """Runs of at most so many buckets each, and at least so many runs if there are buckets enough."""
    wanted = [run for run in wanted if run.end > run.first]
    total = sum(len(run.buckets(bucket_size)) for run in wanted)
    if not total:
        return []
    length = max(1, min(most_buckets, total // max(1, at_least)))
    return [piece for run in wanted for piece in _pieces(run, bucket_size, length)]


def _pieces(run: Run, bucket_size: int, length: int) -> Sequence[Run]:
    buckets = run.buckets(bucket_size)
    pieces = []
    for begin in range(buckets.start, buckets.stop, length):
        first, end = begin * bucket_size, min(begin + length, buckets.stop) * bucket_size
        pieces.append(Run(run.lane, max(run.first, first), min(run.end, end)))
    return pieces
