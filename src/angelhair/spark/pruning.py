"""Which buckets a filter leaves, and of a databag which epochs: coarse, as Spark tests every row of those that are read
anyway."""

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

from angelhair.engine.databag.lane import LANE
from angelhair.errors import InvalidRequest
from angelhair.model import MessageId
from angelhair.spark.columns import ACKED, DELAYED, EXPIRED, IN_FLIGHT, MOVING, PURGED, WAITING
from angelhair.spark.planning import QueueShape, Run
from angelhair.spark.points import Times
from angelhair.spark.reading.bags import Piece

UNSETTLED = frozenset((WAITING, DELAYED, IN_FLIGHT, MOVING))
"""States that no message of a finished bucket has."""

IN_FINISHED_EPOCH, IN_OTHER_EPOCH = frozenset((ACKED, EXPIRED, PURGED)), frozenset((WAITING, IN_FLIGHT, ACKED, EXPIRED))
"""States that messages of a databag can have."""


def narrowed(runs: Iterable[Run], shape: QueueShape, filters: Sequence[Filter]) -> list[Run]:
    """What of the runs may hold a row that passes all filters."""
    runs = list(runs)
    for test in filters:
        column: tuple[str, ...] = getattr(test, "attribute", ())
        narrow = _BY_COLUMN.get(column[0]) if len(column) == 1 else None
        if narrow is not None:
            runs = [left for run in runs if (left := narrow(run, shape, test)).end > left.first]
    return runs


def narrowed_piece(piece: Piece, open_epoch: int, is_finished: bool, filters: Sequence[Filter]) -> Piece | None:
    """What of an epoch of a databag may hold a row that passes all filters; None: nothing. `open_epoch`: of its
    block."""
    states = IN_FINISHED_EPOCH if is_finished else IN_OTHER_EPOCH
    same = {"lane": LANE, "bucket": piece.bucket}
    for test in filters:
        column: tuple[str, ...] = getattr(test, "attribute", ())
        name = column[0] if len(column) == 1 else ""
        if name in same and not _passes(same[name], test):
            return None
        if name == "state" and (values := _values(test)) is not None and states.isdisjoint(values):
            return None
        if name in ("id", "number"):
            piece = _ids_left(piece, open_epoch, name, test)
            if piece.last < piece.first:
                return None
    return piece


def _ids_left(piece: Piece, open_epoch: int, name: str, test: Filter) -> Piece:
    values = _values(test)
    if values is not None:
        wanted = values if name == "number" else _numbers(values, LANE)
        there = [number for number in wanted if number is not None and piece.may_hold(number, open_epoch)]
        first, last = min(there, default=1), max(there, default=0)
    elif name == "number":
        run = _between(Run(LANE, piece.first, piece.last + 1), test, lambda number: (number, number + 1))
        first, last = run.first, run.end - 1
    else:
        return piece
    return piece._replace(first=max(piece.first, first), last=min(piece.last, last))


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
    return run if _passes(run.lane, test) else _nothing_of(run)


def _passes(value: int, test: Filter) -> bool:
    """Of a column that has one value in all that is looked at: the comparison is as good as done."""
    values = _values(test)
    if values is not None:
        return value in values
    compared = _between(Run(0, value, value + 1), test, lambda each: (each, each + 1))
    return compared.end > compared.first


def _by_id(run: Run, _: QueueShape, test: Filter) -> Run:
    values = _values(test)
    if values is None:
        return run
    numbers = _numbers(values, run.lane)
    if not numbers:
        return _nothing_of(run)
    return run._replace(first=max(run.first, min(numbers)), end=min(run.end, max(numbers) + 1))


def _numbers(values: Sequence[Any], wanted_lane: int) -> list[int]:
    """Of those values that are ids of messages in the lane."""
    numbers = []
    for text in values:
        try:
            lane, number = MessageId.parse(text)
        except (InvalidRequest, AttributeError):
            continue
        if lane == wanted_lane:
            numbers.append(number)
    return numbers


def _by_state(run: Run, shape: QueueShape, test: Filter) -> Run:
    values = _values(test)
    if values is None or not UNSETTLED.issuperset(values):
        return run
    unfinished = next(lane.repair for lane in shape.lanes if lane.number == run.lane) * shape.bucket_size
    return run._replace(first=max(run.first, unfinished))


_BY_COLUMN: dict[str, Callable[[Run, QueueShape, Filter], Run]] = {
    "number": _by_number, "bucket": _by_bucket, "lane": _by_lane, "id": _by_id, "state": _by_state,
}
