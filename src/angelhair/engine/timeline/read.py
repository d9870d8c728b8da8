"""Read: rows beyond the cursor, up to the mark, into the window of the shard's holder (R8).

Nothing is given that was read before the mark was above it. Up to the mark no row that its producer was told of can
come any more, so what has been read up to there is all there is, and the cursor goes on. The mark is raised ahead with
every touch where producers write far enough ahead; elsewhere when a look has found something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.engine.schema import is_whole
from angelhair.engine.store import Row, Slice, Span
from angelhair.engine.timeline import index, lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import after, bound, time_of
from angelhair.engine.timeline.window import Held

KEYS_ONLY = ("due", "void")
WAITING = ("due", "enqueued_at", "void")
"""What it takes to say for how long a message has waited."""


class Stretch(NamedTuple):
    """A run of a shard's time: behind `first`, up to `top_ms`."""

    lane: int
    first: str
    top_ms: int
    limit: int


def waiting_since_ms(line: Line, row: Row) -> int:
    """Since it could first be delivered: since it was due, or since the producer delay was over, if that was later."""
    here_ms = time_of(str(row.key))
    due_ms, put_ms = row.values.get("due"), row.values.get("enqueued_at")
    times = [due_ms] if isinstance(due_ms, int) else []
    if isinstance(put_ms, int):
        # The producer delay may have been shorter when it was put: then its row lies sooner.
        times.append(max(put_ms, min(put_ms + line.settings.producer_delay_ms, here_ms)))
    return max(times, default=here_ms)


class Rows(NamedTuple):
    rows: list[Row]
    cursor: str
    """What lies up to here is among them."""


def part_behind(line: Line, place: str) -> int:
    """The first part in which something may lie behind this key or bound: of a part that is read to its end, nothing.
    A look that found that part again, and no other, would come no further."""
    part = line.part_of(time_of(place))
    return part + (place >= bound(line.end_of(part)))


async def read_stretches(
    line: Line, stretches: Sequence[Stretch], columns: tuple[str, ...] | None = None, more: Sequence[Span] = ()
) -> tuple[list[Rows], list[Slice]]:
    """The rows of each stretch, in order, and whatever else is to be read with them."""
    plans: list[tuple[Stretch, index.Found]] = []
    spans: list[Span] = []
    for stretch in stretches:
        first, last = part_behind(line, stretch.first), line.part_of(stretch.top_ms)
        found = await index.parts_between(line, stretch.lane, first, last, limits.TIMELINE_INDEX_PARTS)
        plans.append((stretch, found))
        for part in found.parts:
            begin = after(stretch.first) if part == first else None
            spans.append(
                Span(line.dues(stretch.lane, part), begin, bound(stretch.top_ms), stretch.limit, columns)
            )
    slices = await line.store.read([*spans, *more]) if spans or more else []
    answers = []
    place = 0
    for stretch, found in plans:
        joined = _joined(line, stretch, found, slices[place : place + len(found.parts)])
        if columns is None:
            # A part of a put that nobody has confirmed yet is not there: its producer looks at the mark, as any other.
            joined = joined._replace(rows=[row for row in joined.rows if is_whole(row.values)])
        answers.append(joined)
        place += len(found.parts)
    return answers, slices[place:]


def _joined(line: Line, stretch: Stretch, found: index.Found, slices: Sequence[Slice]) -> Rows:
    rows: list[Row] = []
    for slice_ in slices:
        rows += slice_.rows
        if slice_.more or len(rows) >= stretch.limit:
            rows = rows[: stretch.limit]
            return Rows(rows, str(rows[-1].key))
    end_ms = stretch.top_ms if found.reached is None else min(stretch.top_ms, line.end_of(found.reached))
    return Rows(rows, max(stretch.first, bound(end_ms)))


async def fill(line: Line, helds: Sequence[Held]) -> bool:
    """Reads on in these shards as far as their windows have room, and looks at their locks. True when there is more to
    read. Raises `QueueGone`."""
    now_ms = await line.time_ms()
    await _raise_marks(line, [held for held in helds if held.mark_ms < now_ms and held.room], now_ms)
    reading = [held for held in helds if not held.lost]
    stretches = []
    for held in reading:
        limit = min(held.room, portion(line, held.lane))
        top_ms = min(now_ms, held.mark_ms)
        if limit and bound(top_ms) > held.cursor:
            stretches.append(Stretch(held.lane, held.cursor, top_ms, limit))
    found, shards = await read_stretches(line, stretches, more=[Span(line.shard(held.lane)) for held in reading])
    for held, part in zip(reading, shards, strict=True):
        row = lock.row_of(part)
        if (row.get("holder"), row.get("fence")) != (held.holder, held.fence):
            lock.lose(line, held)
    for stretch, rows in zip(stretches, found, strict=True):
        current = line.held(stretch.lane)
        # Somebody else may have read it meanwhile, for the same holder.
        if current is not None and current.cursor == stretch.first:
            _add(line, current, rows)
    return any(rows.cursor < bound(stretch.top_ms) for stretch, rows in zip(stretches, found, strict=True))


def portion(line: Line, lane: int) -> int:
    """How many rows of a shard to read at once, by how large they have been."""
    row_bytes = line.view(lane).row_bytes or limits.FIRST_BODY_BYTES
    return max(1, limits.PORTION_BYTES // row_bytes)


def _add(line: Line, held: Held, found: Rows) -> None:
    size = 0
    for key, values in found.rows:
        if values.get("void"):
            continue
        body = values.get("body")
        size += len(body) if isinstance(body, bytes) else 0
        entry = held.add(str(key), values)
        place = (held.lane, entry.key)
        if place in line.sessions.done or place in line.sessions.aside:
            # Acked where it lay before; or it lies elsewhere, durably, and the checkpoint had not passed it yet.
            line.sessions.done.pop(place, None)
            held.settle(entry, None)
        elif (until_ms := line.sessions.extended.pop(place, 0)) > line.clock.now().monotonic_ms:
            held.ready.remove(entry)
            held.hide(entry, until_ms)
    if found.rows:
        line.view(held.lane).row_bytes = max(1, size // len(found.rows))
    held.cursor = found.cursor
    held.look_ms = None
    held.advance()


async def _raise_marks(line: Line, helds: Sequence[Held], now_ms: int) -> None:
    """Raises the marks of shards in which something waits above them; for few messages not too often."""
    if not helds:
        return
    stretches = [
        Stretch(held.lane, max(held.cursor, bound(held.mark_ms)), now_ms, limits.TIMELINE_RAISE_ROWS) for held in helds
    ]
    found, _ = await read_stretches(line, stretches, KEYS_ONLY)
    now = line.clock.now()
    raising = []
    for held, rows in zip(helds, found, strict=True):
        if not rows.rows:
            continue
        rested = held.raised_ms is None or now.monotonic_ms - held.raised_ms >= limits.TIMELINE_RAISE_MS
        if rested or len(rows.rows) >= limits.TIMELINE_RAISE_ROWS:
            raising.append(held)
        else:
            held.look_ms = (held.raised_ms or 0) + limits.TIMELINE_RAISE_MS
    if raising:
        await lock.keep(line, raising, now_ms + line.lead_ms)
