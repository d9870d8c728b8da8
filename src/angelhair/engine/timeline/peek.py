"""Peek and count: what lies beyond the checkpoints, at a bounded number of reads.

What of that is acked or in flight is known to the shard's holder alone. Of a shard that another server holds, what is
due may be either: it is shown, and counted as visible, and then the counts are not exact.
"""

from __future__ import annotations

from typing import NamedTuple

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.engine.schema import is_whole
from angelhair.engine.store import Row, Span
from angelhair.engine.timeline import index, lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import after, number_of, time_of
from angelhair.engine.timeline.read import WAITING, waiting_since_ms
from angelhair.model import DueId, Peeked


async def peek(line: Line, most: int) -> list[Peeked]:
    """Messages that are not processed, those first that are due first."""
    found: list[tuple[str, Peeked]] = []
    for lane in line.lanes:
        rows = (await _beyond(line, lane, most, None)).rows
        found += [(str(row.key), _peeked(lane, row)) for row in rows if not _settled(line, lane, str(row.key))]
    found.sort(key=lambda item: item[0])
    return [peeked for _, peeked in found[:most]]


async def stats(line: Line, most: int) -> Stats:
    """`visible`: due and with nobody; `delayed`: not due yet. Beyond `most` rows of a shard they are not counted, and
    `exact` says so; also where somebody else has what is due."""
    now_ms, now = await line.time_ms(), line.clock.now()
    total = Stats()
    for lane in line.lanes:
        beyond = await _beyond(line, lane, most, WAITING)
        held = line.held(lane)
        for row in beyond.rows:
            key = str(row.key)
            if beyond.elsewhere and (time_of(key) <= now_ms or row.values.get("due") != time_of(key)):
                # What lies at its due time and is not due was never given; what was set aside may be acked by now.
                total.exact = False
            entry = None if held is None else held.window.get(key)
            if (entry is not None and entry.settled) or _settled(line, lane, key):
                continue
            if time_of(key) > now_ms:
                total.delayed += 1
            elif entry is not None and entry.given and entry.hidden_until_ms > now.monotonic_ms:
                total.in_flight += 1
            else:
                total.visible += 1
                total.oldest_age_ms = max(total.oldest_age_ms or 0, now_ms - waiting_since_ms(line, row))
        total.exact = total.exact and beyond.complete
    return total


def _settled(line: Line, lane: int, key: str) -> bool:
    held = line.held(lane)
    return held is not None and (key <= held.reached or (lane, key) in line.sessions.done)


class _Beyond(NamedTuple):
    """Rows behind a checkpoint."""

    rows: list[Row]
    complete: bool
    elsewhere: bool
    """Whether the shard is held, and not here."""


async def _beyond(line: Line, lane: int, most: int, columns: tuple[str, ...] | None) -> _Beyond:
    (shard,) = await line.store.read([Span(line.shard(lane))])
    row = lock.row_of(shard)
    last, held, holder = str(row["last"]), line.held(lane), (row.get("holder"), row.get("fence"))
    is_ours = held is not None and held.believed(line.clock.now()) and (held.holder, held.fence) == holder
    elsewhere = row.get("holder") != lock.FREE and not is_ours
    first = here = line.part_of(time_of(last))
    rows: list[Row] = []
    while len(rows) < most:
        found = await index.parts_between(line, lane, first, None, limits.TIMELINE_INDEX_PARTS)
        for part in found.parts:
            if len(rows) <= most:
                span = Span(line.dues(lane, part), after(last) if part == here else None, None, most + 1, columns)
                (slice_,) = await line.store.read([span])
                # A part of a put that nobody has confirmed yet is not there.
                rows += [
                    row
                    for row in slice_.rows
                    if not row.values.get("void") and (columns is not None or is_whole(row.values))
                ]
        if found.reached is None:
            break
        first = found.reached + 1
    else:
        return _Beyond(rows[:most], False, elsewhere)
    return _Beyond(rows[:most], len(rows) <= most, elsewhere)


def _peeked(lane: int, row: Row) -> Peeked:
    values = row.values
    body, attributes, origin = values.get("body"), values.get("attributes"), values.get("origin")
    deliveries, enqueued_at, due = values.get("deliveries"), values.get("enqueued_at"), values.get("due")
    return Peeked(
        DueId(lane, number_of(str(row.key))),
        body if isinstance(body, bytes) else b"",
        attributes if isinstance(attributes, str) else None,
        deliveries if isinstance(deliveries, int) else 0,
        enqueued_at if isinstance(enqueued_at, int) else 0,
        origin if isinstance(origin, str) else None,
        due_ms=due if isinstance(due, int) else None,
    )
