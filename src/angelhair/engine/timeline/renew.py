"""Renewing: nothing expires that nobody has worked off. Rows that the checkpoint has not passed, of whose life after
their time half is over, are written again, whole, with a life as long as a new one's.

In steady state the checkpoint is far ahead and this reads one row a minute. Two servers at once write the same.

Of two writes under one key that counts which has the later date, and a clock that has just jumped may have dated the
first in the future: then it keeps its life, whatever is written later. So the rows are read again. One that is as old
as before is put anew, under another key, and void where it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.engine.settling import must_write, read_surely
from angelhair.engine.store import Row, Span, Value, Values, Write
from angelhair.engine.timeline import index, lock
from angelhair.engine.timeline.aside import again
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import bound, time_of
from angelhair.engine.timeline.put import put
from angelhair.engine.timeline.read import Stretch, portion, read_stretches
from angelhair.engine.timeline.voiding import NOTHING
from angelhair.model import MessageId


def look_every_ms(expire_ms: int) -> int:
    """Four times in the half of a life that is left."""
    return min(limits.TIMELINE_LOOK_MS, expire_ms // 8)


async def renew(line: Line, lane: int) -> bool:
    """One portion of a shard's rows; True when there is more. Raises `QueueGone`."""
    expire_ms = line.settings.expire_after_ms
    view, now = line.view(lane), line.clock.now()
    if expire_ms is None or not line.trusts_clock(now):
        # What is dated by a wrong clock may come to nothing, and would tell others that it is done (R5).
        return False
    if view.renewed is None and view.looked_ms is not None:
        if now.monotonic_ms - view.looked_ms < look_every_ms(expire_ms):
            return False
    (shard,) = await line.store.read([Span(line.shard(lane))])
    last = str(lock.row_of(shard)["last"])
    now_ms = await line.time_ms()
    old_ms = now_ms - expire_ms // 2
    first = max(last, view.renewed or "")
    view.renewed = None
    if bound(old_ms) > first:
        limit = min(limits.TIMELINE_RENEWED_ROWS, portion(line, lane))
        (found,), _ = await read_stretches(line, [Stretch(lane, first, old_ms, limit)])
        old = [row for row in found.rows if _old(row.values, old_ms)]
        await _write_again(line, lane, old, now_ms, expire_ms)
        await _put_anew(line, lane, await _unmoved(line, lane, old, old_ms), now_ms, expire_ms)
        if found.cursor < bound(old_ms):
            view.renewed = found.cursor
            return True
    view.looked_ms = now.monotonic_ms
    return False


def _old(values: Values, old_ms: int) -> bool:
    renewed = values.get("renewed")
    if values.get("void"):
        return False
    return not isinstance(renewed, int) or renewed <= old_ms


async def _write_again(line: Line, lane: int, rows: list[Row], now_ms: int, expire_ms: int) -> None:
    by_part: dict[int, list[Row]] = {}
    for row in rows:
        values: dict[str, Value] = {name: value for name, value in row.values.items() if value is not None}
        values["renewed"] = now_ms
        by_part.setdefault(line.part_of(time_of(str(row.key))), []).append(Row(row.key, values))
    entries = [
        entry for part in by_part for entry in index.needed(line, lane, part, now_ms + expire_ms, now_ms)
    ]
    # The way to them first: it would be the first to go.
    if entries:
        await must_write(line.store, list({entry.name: entry.write for entry in entries}.values()))
        for entry in entries:
            line.view(lane).remember(entry.group, entry.bit)
    writes = [Write(line.dues(lane, part), group, _life_seconds(expire_ms)) for part, group in by_part.items()]
    if writes:
        await must_write(line.store, writes)


def _life_seconds(expire_ms: int) -> int:
    return -(-expire_ms // 1_000)


async def _unmoved(line: Line, lane: int, rows: Sequence[Row], old_ms: int) -> list[Row]:
    """Those that are as old as they were, though they were written again."""
    keys: dict[int, list[str]] = {}
    for row in rows:
        keys.setdefault(line.part_of(time_of(str(row.key))), []).append(str(row.key))
    spans = [Span(line.dues(lane, part), min(there), max(there)) for part, there in keys.items()]
    found = await read_surely(line.store, spans) if spans else []
    wanted = {key for there in keys.values() for key in there}
    return [row for part in found for row in part.rows if row.key in wanted and _old(row.values, old_ms)]


async def _put_anew(line: Line, lane: int, rows: Sequence[Row], now_ms: int, expire_ms: int) -> None:
    if not rows:
        return
    outcomes = await put(line, [again(str(row.key), row.values, now_ms, _deliveries(row)) for row in rows])
    void = []
    for row, outcome in zip(rows, outcomes, strict=True):
        if isinstance(outcome, MessageId):
            due_ms = time_of(str(row.key))
            emptied = Row(row.key, {**NOTHING, "due": due_ms, "void": 1})
            void.append(Write(line.dues(lane, line.part_of(due_ms)), [emptied], _life_seconds(expire_ms)))
    if void:
        await must_write(line.store, void)


def _deliveries(row: Row) -> int:
    deliveries = row.values.get("deliveries")
    return deliveries if isinstance(deliveries, int) else 0
