"""What goes: parts that are worked off, of a timeline whose rows do not expire (R9); and shards that take no more puts
once nothing is left in them (R8)."""

from __future__ import annotations

from typing import NamedTuple

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.marks import pointer_marks, raise_mark
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, Partition, RowChange, Span, Store
from angelhair.engine.timeline import index, lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import after, time_of
from angelhair.engine.timeline.read import KEYS_ONLY
from angelhair.errors import StoreError

_LOOK_ROWS = 64
"""Rows of a part among which one is looked for that is a message: copies that were left behind are not."""


class _Marked(NamedTuple):
    store: Store
    pointers: Partition


async def drop_worked_off(line: Line, lane: int, all_of_it: bool = False) -> bool:
    """Drops some parts below the checkpoint's; True when there are more. `all_of_it`: its own too, as nothing comes
    after. Up to the checkpoint nothing is read and nothing confirmed is put."""
    if line.settings.expire_after_ms is not None:
        return False
    pointers = places.pointers(line.incarnation, lane)
    shard, marked = await line.store.read([Span(line.shard(lane)), Span(pointers)])
    end = line.part_of(time_of(str(lock.row_of(shard)["last"]))) + all_of_it
    dropped = pointer_marks(marked).repair
    if dropped >= end:
        return False
    found = await index.parts_between(line, lane, dropped, end - 1, limits.TIMELINE_INDEX_PARTS)
    reached = end if found.reached is None else found.reached + 1
    gone = [line.dues(lane, part) for part in found.parts]
    gone += [line.parts(lane, span) for span in await _spans_below(line, lane, dropped, reached)]
    for outcome in await line.store.drop(gone) if gone else []:
        if outcome is not None:
            raise outcome
    await raise_mark(_Marked(line.store, pointers), "repair", dropped, reached)
    return reached < end


async def _spans_below(line: Line, lane: int, first: int, end: int) -> list[int]:
    """Spans of which all parts are gone once those from `first` up to `end` are."""
    size = limits.TIMELINE_SPAN_PARTS
    if first // size == end // size:
        return []
    last = f"{end // size - 1:010d}.~"
    span = Span(line.spans(lane), f"{first // size:010d}", last, limits.TIMELINE_INDEX_ROWS)
    (found,) = await line.store.read([span])
    return list(dict.fromkeys(int(str(row.key).partition(".")[0]) for row in found.rows))


async def is_drained(line: Line, lane: int) -> bool:
    """Whether nothing is left in a shard that takes no more puts. It is sealed in its own row first: whoever has put
    something there without hearing of that has written it before, so that it is found here. Raises `QueueGone`."""
    row = RowChange(places.SEQUENCE_ROW, {"deleted": None, "next": 0}, {"sealed": 1})
    outcome = await change_one(line.store, Change(line.sequence(lane), [row]))
    if isinstance(outcome, StoreError):
        raise outcome
    if not isinstance(outcome, Applied):
        return False
    (shard,) = await line.store.read([Span(line.shard(lane))])
    last = str(lock.row_of(shard)["last"])
    here = line.part_of(time_of(last))
    first: int | None = here
    while first is not None:
        found = await index.parts_between(line, lane, first, None, limits.TIMELINE_INDEX_PARTS)
        spans = [
            Span(line.dues(lane, part), after(last) if part == here else None, None, _LOOK_ROWS, KEYS_ONLY)
            for part in found.parts
        ]
        for slice_ in await line.store.read(spans) if spans else []:
            if slice_.more or not all(row.values.get("void") for row in slice_.rows):
                return False
        first = None if found.reached is None else found.reached + 1
    return True
