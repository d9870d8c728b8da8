"""`spark.readStream.format("angelhair")`: what comes to a queue, batch after batch, each message in one batch only.

An offset is an id for each lane: what is below has been read. Of final buckets ids and bodies are settled, so a batch
that is read again after a crash is the same batch. A stream takes nothing away and moves no mark; Spark's checkpoint is
all that knows how far it has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from angelhair.clock import SystemClock
from angelhair.engine import places
from angelhair.engine.store import Span, Store
from angelhair.spark import missing
from angelhair.spark.lagging import lag
from angelhair.spark.looking import Looking
from angelhair.spark.options import ReadOptions
from angelhair.spark.planning import QueueShape, Run, look
from angelhair.spark.refusals import DataLost
from angelhair.spark.source import planned, read_partition

INCARNATION = "incarnation"
"""Beside the ids by lane: a queue that was made again under its name begins at 0, and is another."""

SAMPLE_MESSAGES = 100
"""Whose size is taken for that of all, where a batch is limited in bytes."""

LAG = "lag"
"""Beside the latest offset in a query's progress, and nowhere else."""

Offset = dict[str, Any]


class _Seen(NamedTuple):
    """How far the queue was at one look."""

    end: Offset
    """What may be read, by the isolation."""
    next_ids: dict[str, int]


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._looking = Looking(options.place)
        self._target: _Seen | None = None
        """Where a query with the trigger `availableNow` ends."""
        self._taken: Offset | None = None
        """Where the newest batch ends."""
        self._waiting_since: float | None = None

    # --- offsets ------------------------------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802 - the names are Spark's, here and below
        options = self._options

        async def begin(store: Store) -> Offset:
            shape = await look(store, options.account, options.queue)
            return _offset(shape, await options.start.ids_in(store, shape, options.isolation, last=False))

        return self._looking.run(begin)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        seen = self._target or self._seen()
        self._same_queue(start, seen.end[INCARNATION])
        begin = {lane: self._known(start.get(lane, 0), int(lane), seen.next_ids[lane]) for lane in _lanes(seen.end)}
        waiting = {lane: max(0, seen.end[lane] - begin[lane]) for lane in begin}
        self._taken = start
        if isinstance(limit, ReadMinRows) and self._target is None and self._wait_for(sum(waiting.values()), limit):
            return start
        most = self._most(start, limit)
        taken = waiting if most is None else shares(waiting, most)
        ids = {lane: begin[lane] + taken[lane] for lane in waiting}
        self._taken = {INCARNATION: seen.end[INCARNATION], **ids}
        return self._taken

    def _known(self, number: int, lane: int, next_id: int) -> int:
        """Where a lane goes on. A store that was put back to an earlier state has never heard of some ids."""
        if number > next_id and self._options.fail_on_data_loss:
            raise missing.never_written(Run(lane, next_id, number))
        return min(number, next_id)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        options = self._options
        if options.max_messages is not None:
            return ReadMaxRows(options.max_messages)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        return ReadAllAvailable() if options.min_messages is None else ReadMinRows(options.min_messages)

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """What there is, whatever a batch may take: the lag in a query's progress is the true one."""
        options, taken = self._options, self._taken

        async def report(store: Store) -> Offset:
            shape = await look(store, options.account, options.queue)
            latest = _seen_in(shape, options.isolation).end
            if taken is None:
                return latest
            ids = {int(lane): taken[lane] for lane in _lanes(taken)}
            behind = await lag(store, shape, options.isolation, ids, SystemClock().now().wall_ms)
            return {**latest, LAG: {"name": options.progress_name, **behind}}

        return self._looking.run(report)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._seen()

    def _seen(self) -> _Seen:
        options = self._options
        shape = self._looking.run(lambda store: look(store, options.account, options.queue))
        return _seen_in(shape, options.isolation)

    def _same_queue(self, offset: Offset, incarnation: str) -> None:
        if offset[INCARNATION] != incarnation:
            raise DataLost(
                f"the queue {self._options.queue} was deleted and made again: what this query has read was another "
                "queue's. A new checkpoint begins with the queue that there is now"
            )

    def _wait_for(self, waiting: int, limit: ReadMinRows) -> bool:
        """Whether it is better to wait for more; not for ever."""
        now = monotonic()
        if waiting >= limit.min_rows or not waiting:
            self._waiting_since = None
            return waiting == 0
        if self._waiting_since is None:
            self._waiting_since = now
        if now - self._waiting_since < self._options.max_trigger_delay_seconds:
            return True
        self._waiting_since = None
        return False

    def _most(self, start: Offset, limit: ReadLimit) -> int | None:
        if isinstance(limit, ReadMaxRows):
            return limit.max_rows
        if isinstance(limit, ReadMaxBytes):
            return max(1, limit.max_bytes // self._typical_bytes(start))
        return None

    def _typical_bytes(self, start: Offset) -> int:
        """Of the messages that come next, in the first lane that has any."""
        options = self._options

        async def sample(store: Store) -> int:
            shape = await look(store, options.account, options.queue)
            for lane in shape.lanes:
                first = start.get(str(lane.number), 0)
                partition = places.bodies(shape.incarnation, lane.number, first // shape.bucket_size)
                (found,) = await store.read([Span(partition, first, None, SAMPLE_MESSAGES)])
                sizes = [len(body) for row in found.rows if isinstance(body := row.values.get("body"), bytes)]
                if sizes:
                    return max(1, sum(sizes) // len(sizes))
            return 1

        return self._looking.run(sample)

    # --- batches ------------------------------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        options = self._options
        shape = self._looking.run(lambda store: look(store, options.account, options.queue))
        self._same_queue(start, shape.incarnation)
        self._same_queue(end, shape.incarnation)
        wanted = [Run(int(lane), start.get(lane, 0), end[lane]) for lane in _lanes(end)]
        return planned(options, shape, [run for run in wanted if run.end > run.first])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)

    def commit(self, end: Offset) -> None:
        """Nothing: Spark's checkpoint knows. It calls this late, and for the last batch perhaps never."""

    def stop(self) -> None:
        self._looking.close()


def _offset(shape: QueueShape, ids: dict[int, int]) -> Offset:
    return {INCARNATION: shape.incarnation, **{str(lane): number for lane, number in sorted(ids.items())}}


def _seen_in(shape: QueueShape, isolation: str) -> _Seen:
    end = _offset(shape, {lane.number: shape.end_of(lane, isolation) for lane in shape.lanes})
    return _Seen(end, {str(lane.number): lane.next_id for lane in shape.lanes})


def _lanes(offset: Offset) -> list[str]:
    return [name for name in offset if name != INCARNATION]


def shares(waiting: dict[str, int], most: int) -> dict[str, int]:
    """Out of what waits in each lane so many in all, as evenly as it goes: no lane waits for another to be empty."""
    taken = dict.fromkeys(waiting, 0)
    left = most
    while left > 0 and (hungry := [lane for lane in waiting if taken[lane] < waiting[lane]]):
        share = max(1, left // len(hungry))
        for lane in hungry:
            more = min(share, waiting[lane] - taken[lane], left)
            taken[lane] += more
            left -= more
    return taken
