"""Read: a log forward, without its bodies, and the bodies of what was claimed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from angelhair import limits
from angelhair.engine.fifo.lane import Lane, marks_of
from angelhair.engine.marks import Marks
from angelhair.engine.schema import LOG_LIGHT, is_whole
from angelhair.engine.settling import have_land
from angelhair.engine.store import Change, RowChange, Slice, Span, Values


async def read_on(lane: Lane) -> Marks:
    """The lane's marks, and what its log has gained behind what is known."""
    index = lane.view.index
    index.trim()
    end = index.end
    spans = [Span(lane.sequence), Span(lane.pointers)]
    room = limits.LOOK_AHEAD_MESSAGES - len(index)
    lane.view.log_ended = False
    if room > 0:
        spans.append(_ahead(lane, end, room))
    sequence, pointers, *ahead = await lane.store.read(spans)
    # The rows first: they follow what was known, and what the marks have passed then goes.
    for found in ahead:
        _take_in(lane, found)
    return marks_of(lane, sequence, pointers)


async def read_ahead(lane: Lane) -> bool:
    """More of the log, if there is room to know of it. Whether anything was new."""
    index = lane.view.index
    index.trim()
    room = limits.LOOK_AHEAD_MESSAGES - len(index)
    if room <= 0:
        return False
    (found,) = await lane.store.read([_ahead(lane, index.end, room)])
    return _take_in(lane, found) > 0


def _take_in(lane: Lane, found: Slice) -> int:
    """How many rows were new. What is known of their groups already may say that they are settled."""
    index, states = lane.view.index, lane.view.states
    new = index.add_rows(found.rows)
    for group in dict.fromkeys(index.group_of(number) for number in range(index.end - new, index.end)):
        if group is not None and group in states:
            index.settle_below(group, states[group].done)
    # At the first number of a bucket nobody has looked whether there is one.
    lane.view.log_ended = not found.more and index.end != lane.first_of(lane.bucket_of(index.end))
    return new


def _ahead(lane: Lane, end: int, room: int) -> Span:
    return Span(lane.log(lane.bucket_of(end)), end, None, min(room, limits.LOG_ROWS), LOG_LIGHT)


async def bodies_of(lane: Lane, numbers: Sequence[int]) -> dict[int, Values]:
    """The rows of these messages, by number. One that is missing was dropped."""
    if not numbers:
        return {}
    rows = await _whole_rows(lane, numbers)
    if unseen := [number for number in numbers if number not in rows]:
        await _have_land(lane, unseen)
        rows.update(await _whole_rows(lane, unseen))
    return rows


async def _whole_rows(lane: Lane, numbers: Sequence[int]) -> dict[int, Values]:
    spans = [
        Span(lane.log(lane.bucket_of(first)), first, last) for first, last in _stretches(lane, sorted(numbers))
    ]
    found = await lane.store.read(spans)
    return {int(row.key): row.values for part in found for row in part.rows if is_whole(row.values)}


async def _have_land(lane: Lane, numbers: Sequence[int]) -> None:
    """What was seen without its body has landed in part."""
    by_bucket = {lane.bucket_of(number): number for number in numbers}
    tests = [
        Change(lane.log(bucket), [RowChange(number, {"body": None}, {})]) for bucket, number in by_bucket.items()
    ]
    await have_land(lane.store, tests)


def _stretches(lane: Lane, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Numbers of one bucket that follow each other, as first and last."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1 or lane.bucket_of(number) != lane.bucket_of(first):
            yield first, last
            first = number
        last = number
    yield first, last
