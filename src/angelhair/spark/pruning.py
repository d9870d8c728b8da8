"""Which buckets a filter leaves: coarse, as Spark still tests every row of those that are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from angelhair.errors import InvalidRequest
from angelhair.model import MessageId
from angelhair.spark.columns import DELAYED, IN_FLIGHT, MOVING, WAITING
from angelhair.spark.planning import QueueShape, Run
from angelhair.spark.points import Times

UNSETTLED = frozenset((WAITING, DELAYED, IN_FLIGHT, MOVING))
"""States that no message of a finished bucket has."""


def narrowed(runs: Iterable[Run], shape: QueueShape, filters: Sequence[Filter]) -> list[Run]:
    """What of the runs may hold a row that passes all filters."""
    runs = list(runs)
    for test in filters:
        column: tuple[str, ...] = getattr(test, "attribute", ())
        narrow = _BY_COLUMN.get(column[0]) if len(column) == 1 else None
        if narrow is not None:
            runs = [left for run in runs if (left := narrow(run, shape, test)).end > left.first]
    return runs


def times_of(filters: Sequence[Filter], column: str = "enqueued_at") -> Times:
    """What such a time of a row that passes all filters can be, in whole milliseconds around it."""
    times = Times()
    for test in filters:
        if getattr(test, "attribute", ()) == (column,):
            times = times.and_within(_times(test))
    return times


def _times(test: Filter) -> Times:
    values = _values(test)
    if values is not None:
        moments = [_milliseconds(value) for value in values if isinstance(value, datetime)]
        return Times(min(moments), max(moments) + 1) if moments else Times()
    if isinstance(test, GreaterThan | GreaterThanOrEqual):
        return Times(first_ms=_milliseconds(test.value))
    if isinstance(test, LessThan | LessThanOrEqual):
        return Times(end_ms=_milliseconds(test.value) + 1)
    return Times()


def _milliseconds(time: datetime) -> int:
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _values(test: Filter) -> Sequence[Any] | None:
    """What a column must be one of; None if the filter says something else."""
    if isinstance(test, EqualTo | EqualNullSafe):
        return [test.value]
    return test.value if isinstance(test, In) else None


def _nothing_of(run: Run) -> Run:
    return run._replace(end=run.first)


def _between(run: Run, test: Filter, ids_of: Callable[[int], tuple[int, int]]) -> Run:
    """`ids_of` says which ids, from the first to the one after the last, belong to a value."""
    values = _values(test)
    if values is not None:
        spans = [ids_of(value) for value in values if value is not None]
        if not spans:
            return _nothing_of(run)
        first, end = min(first for first, _ in spans), max(end for _, end in spans)
    elif isinstance(test, GreaterThan):
        first, end = ids_of(test.value)[1], run.end
    elif isinstance(test, GreaterThanOrEqual):
        first, end = ids_of(test.value)[0], run.end
    elif isinstance(test, LessThan):
        first, end = run.first, ids_of(test.value)[0]
    elif isinstance(test, LessThanOrEqual):
        first, end = run.first, ids_of(test.value)[1]
    else:
        return run
    return run._replace(first=max(run.first, first), end=min(run.end, end))


def _by_number(run: Run, _: QueueShape, test: Filter) -> Run:
    return _between(run, test, lambda number: (number, number + 1))


def _by_bucket(run: Run, shape: QueueShape, test: Filter) -> Run:
    size = shape.bucket_size
    return _between(run, test, lambda bucket: (bucket * size, (bucket + 1) * size))


def _by_lane(run: Run, _: QueueShape, test: Filter) -> Run:
    values = _values(test)
    if values is not None:
        return run if run.lane in values else _nothing_of(run)
    # The lane has one value in all of the run: the comparison is as good as done for it.
    compared = _between(Run(0, run.lane, run.lane + 1), test, lambda lane: (lane, lane + 1))
    return run if compared.end > compared.first else _nothing_of(run)


def _by_id(run: Run, _: QueueShape, test: Filter) -> Run:
    values = _values(test)
    if values is None:
        return run
    numbers = []
    for text in values:
        try:
            lane, number = MessageId.parse(text)
        except (InvalidRequest, AttributeError):
            continue
        if lane == run.lane:
            numbers.append(number)
    if not numbers:
        return _nothing_of(run)
    return run._replace(first=max(run.first, min(numbers)), end=min(run.end, max(numbers) + 1))


def _by_state(run: Run, shape: QueueShape, test: Filter) -> Run:
    values = _values(test)
    if values is None or not UNSETTLED.issuperset(values):
        return run
    unfinished = next(lane.repair for lane in shape.lanes if lane.number == run.lane) * shape.bucket_size
    return run._replace(first=max(run.first, unfinished))


_BY_COLUMN: dict[str, Callable[[Run, QueueShape, Filter], Run]] = {
    "number": _by_number, "bucket": _by_bucket, "lane": _by_lane, "id": _by_id, "state": _by_state,
}
