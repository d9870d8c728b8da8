"""When the next message of a timeline is due that nobody has processed: for who wants to take no lock before."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.store import Span
from angelhair.engine.timeline.index import parts_between
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.lock import row_of
from angelhair.engine.timeline.parts import after, time_of


async def next_due_in_ms(line: Line) -> int | None:
    """In how many milliseconds, not above 0 if it is due; or when its part of time begins. None: there is nothing, or
    it is further away than a look reaches. Raises `QueueGone`."""
    now_ms = await line.time_ms()
    found = await line.store.read([Span(line.shard(lane)) for lane in line.lanes])
    times = [
        time_ms
        for lane, part in zip(line.lanes, found, strict=True)
        if (time_ms := await _next_of(line, lane, str(row_of(part)["last"]), now_ms)) is not None
    ]
    return min(times) - now_ms if times else None


async def keeps_worked_off(line: Line) -> bool:
    """Whether the part of a checkpoint is over and still holds what is processed: with nothing due behind it, nobody
    moves the checkpoint on. Raises `QueueGone`."""
    now_ms = await line.time_ms()
    found = await line.store.read([Span(line.shard(lane)) for lane in line.lanes])
    lasts = {lane: str(row_of(part)["last"]) for lane, part in zip(line.lanes, found, strict=True)}
    parts = {lane: line.part_of(time_of(last)) for lane, last in lasts.items()}
    over = [line.dues(lane, part) for lane, part in parts.items() if line.end_of(part) < now_ms]
    slices = await line.store.read([Span(part, None, None, 1, ("due",)) for part in over]) if over else []
    return any(part.rows for part in slices)


async def _next_of(line: Line, lane: int, last: str, now_ms: int) -> int | None:
    first = line.part_of(time_of(last))
    parts = (await parts_between(line, lane, first, None, limits.TIMELINE_INDEX_PARTS)).parts
    for part in parts:
        begins_ms = part * line.settings.part_ms
        if begins_ms > now_ms:
            return begins_ms
        (rows,) = await line.store.read([Span(line.dues(lane, part), after(last), None, 1, ("due",))])
        if rows.rows:
            return time_of(str(rows.rows[0].key))
    # Parts that were worked off and are not dropped yet: whoever holds the shard sees what is behind them.
    return now_ms if len(parts) == limits.TIMELINE_INDEX_PARTS else None
