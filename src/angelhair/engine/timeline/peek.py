"""Peek and count: what lies beyond the checkpoints, at a bounded number of reads."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.engine.store import Row, Span
from angelhair.engine.timeline import index, lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import after, number_of, time_of
from angelhair.engine.timeline.read import KEYS_ONLY
from angelhair.model import DueId, Peeked


async def peek(line: Line, most: int) -> list[Peeked]:
    """Messages that are not processed, those first that are due first."""
    found: list[tuple[str, Peeked]] = []
    for lane in line.lanes:
        rows, _ = await _beyond(line, lane, most, None)
        found += [(str(row.key), _peeked(lane, row)) for row in rows if not _settled(line, lane, str(row.key))]
    found.sort(key=lambda item: item[0])
    return [peeked for _, peeked in found[:most]]


async def stats(line: Line, most: int) -> Stats:
    """`visible`: due and with nobody; `delayed`: not due yet. Beyond `most` rows of a shard they are not counted, and
    `exact` says so."""
    now_ms, now = await line.time_ms(), line.clock.now()
    total = Stats()
    for lane in line.lanes:
        rows, complete = await _beyond(line, lane, most, KEYS_ONLY)
        held = line.held(lane)
        for row in rows:
            key = str(row.key)
            entry = None if held is None else held.window.get(key)
            due = row.values.get("due")
            if (entry is not None and entry.settled) or _settled(line, lane, key):
                continue
            if time_of(key) > now_ms:
                total.delayed += 1
            elif entry is not None and entry.given and entry.hidden_until_ms > now.monotonic_ms:
                total.in_flight += 1
            else:
                total.visible += 1
                age_ms = now_ms - (due if isinstance(due, int) else time_of(key))
                total.oldest_age_ms = max(total.oldest_age_ms or 0, age_ms)
        total.exact = total.exact and complete
    return total


def _settled(line: Line, lane: int, key: str) -> bool:
    held = line.held(lane)
    return held is not None and (key <= held.reached or (lane, key) in line.sessions.done)


async def _beyond(line: Line, lane: int, most: int, columns: tuple[str, ...] | None) -> tuple[list[Row], bool]:
    """Rows behind the checkpoint, and whether these are all."""
    (shard,) = await line.store.read([Span(line.shard(lane))])
    last = str(lock.row_of(shard)["last"])
    first = here = line.part_of(time_of(last))
    rows: list[Row] = []
    while len(rows) < most:
        found = await index.parts_between(line, lane, first, None, limits.TIMELINE_INDEX_PARTS)
        for part in found.parts:
            if len(rows) <= most:
                span = Span(line.dues(lane, part), after(last) if part == here else None, None, most + 1, columns)
                (slice_,) = await line.store.read([span])
                rows += [row for row in slice_.rows if not row.values.get("void")]
        if found.reached is None:
            break
        first = found.reached + 1
    else:
        return rows[:most], False
    return rows[:most], len(rows) <= most


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
