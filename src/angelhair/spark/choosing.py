"""What a batch reads: which ids of each lane, and whether from the queue or from its lake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql.datasource import Filter

from angelhair.engine.store import Store
from angelhair.spark import missing
from angelhair.spark.holding import Held, held
from angelhair.spark.looking import Looking
from angelhair.spark.options import ReadOptions
from angelhair.spark.planning import LaneShape, QueueShape, Run, look
from angelhair.spark.points import Point, Times
from angelhair.spark.pruning import narrowed, times_of


class Choice(NamedTuple):
    shape: QueueShape
    held: Held
    runs: list[Run]
    window: Times
    """When what the filters leave was put; only to read less, as Spark tests the rows."""


def chosen(looking: Looking, options: ReadOptions, filters: Sequence[Filter]) -> Choice:
    window = times_of(filters)
    shape = looking.run(lambda store: look(store, options.account, options.queue))
    kept = held(options.lake, shape)
    if options.fail_on_data_loss:
        _check(options, shape, kept)

    async def runs(store: Store) -> list[Run]:
        archived = await _of_lake(store, options, shape, kept, window)
        return [*archived, *await _of_queue(store, options, shape, kept, window)]

    return Choice(shape, kept, narrowed(looking.run(runs), shape, filters), window)


async def _of_queue(store: Store, options: ReadOptions, shape: QueueShape, kept: Held, window: Times) -> list[Run]:
    starts, ends = await _between(store, options.start, options.end, shape, options.isolation)
    later, earlier = await _between(store, *_points(window), shape, options.isolation)
    runs = []
    for lane in shape.lanes:
        number = lane.number
        first = max(shape.start_of(lane), kept.border(number), starts[number], later[number])
        runs.append(Run(number, first, min(shape.end_of(lane, options.isolation), ends[number], earlier[number])))
    return [run for run in runs if run.end > run.first]


async def _of_lake(store: Store, options: ReadOptions, shape: QueueShape, kept: Held, window: Times) -> list[Run]:
    """As if nothing had been dropped. Times are found in the files, not in the queue."""
    whole = shape._replace(lanes=tuple(lane._replace(floor=0) for lane in shape.lanes))
    start, end = (point if point.time_ms is None else None for point in (options.start, options.end))
    starts, ends = await _between(store, start, end, whole, options.isolation)
    times = window.and_within(options.times)
    runs = []
    for lane in whole.lanes:
        number = lane.number
        limit = min(kept.border(number), whole.end_of(lane, options.isolation))
        run = Run(number, max(starts[number], kept.first(number) or 0), min(ends[number], limit))
        if run.end > run.first:
            runs.append(await kept.put_between(run, times, shape))
    return [run for run in runs if run.end > run.first]


async def _between(
    store: Store, start: Point | None, end: Point | None, shape: QueueShape, isolation: str
) -> tuple[dict[int, int], dict[int, int]]:
    """By lane. Without a point, all that there is."""
    firsts = {lane.number: shape.start_of(lane) for lane in shape.lanes}
    ends = {lane.number: shape.end_of(lane, isolation) for lane in shape.lanes}
    if start is not None:
        firsts = await start.ids_in(store, shape, isolation, last=False)
    if end is not None:
        ends = await end.ids_in(store, shape, isolation, last=True)
    return firsts, ends


def _points(window: Times) -> tuple[Point | None, Point | None]:
    first, end = (None if time_ms is None else Point(time_ms=time_ms) for time_ms in window)
    return first, end


def _check(options: ReadOptions, shape: QueueShape, kept: Held) -> None:
    """That there is what was asked for by its ids. Raises `DataLost`."""
    starts, ends = dict(options.start.ids), dict(options.end.ids)
    for lane in shape.lanes:
        number = lane.number
        asked = max(starts.get(number, 0), ends.get(number, 0))
        if asked > lane.next_id:
            raise missing.never_written(Run(number, lane.next_id, asked))
        run = Run(number, starts.get(number, 0), ends.get(number, lane.next_id))
        _check_dropped(run, shape, lane, kept, number in starts)


def _check_dropped(run: Run, shape: QueueShape, lane: LaneShape, kept: Held, named: bool) -> None:
    """Where a read begins with what there is, only a hole between lake and queue is a loss."""
    floor, border = shape.start_of(lane), kept.border(lane.number)
    earliest = kept.first(lane.number) if border else None
    if named and run.first < (gone := floor if earliest is None else min(floor, earliest)) and run.end > run.first:
        raise missing.dropped(run._replace(end=min(run.end, gone)), lane.purged)
    hole = Run(lane.number, max(run.first, border), min(run.end, floor))
    if border and hole.end > hole.first:
        raise missing.unarchived(hole)
