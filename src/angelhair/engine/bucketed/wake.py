"""The wake index: when to look into which bucket (R3, R4).

A row says "look into this bucket once this slot of time has begun". It is written *before* the claim or the
confirmation that it serves; a row too many costs one look. Every server that receives reads the rows as their time
comes, and serves what it finds. The elected worker keeps the index itself in order:

  * it raises `wake_raised` to now, and only then reads the rows up to there. Who writes a row reads `wake_raised`
    afterwards and, if the row lies at or below it, writes it again above. So no row is ever behind the worker unseen.
  * a bucket that is not finished gets a new row before `wake_done` passes the old one: soon if it has messages to
    deliver, else after a pause that doubles from visit to visit. So an unfinished bucket that was ever claimed from
    always has a row ahead of it, even if a suspended server's claim lands long after its own row was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.marks import Marks, pointer_marks
from angelhair.engine.settling import must_write, read_surely
from angelhair.engine.store import Row, Slice, Span, Write
from angelhair.errors import Unavailable


class WakeRow(NamedTuple):
    slot: int
    bucket: int
    server: str
    patience_ms: int


def entries(lane: Lane, rows: Iterable[tuple[int, int, int]]) -> list[Write]:
    """The blind writes for rows of (slot, bucket, patience_ms)."""
    by_period: dict[int, list[Row]] = {}
    for slot, bucket, patience_ms in rows:
        row = Row(places.wake_row(slot, bucket, lane.server), {"patience": patience_ms})
        by_period.setdefault(places.wake_period(slot), []).append(row)
    return [Write(places.wakes(lane.incarnation, lane.number, period), rows) for period, rows in by_period.items()]


async def index_time_ms(lane: Lane) -> int:
    """Now, as rows of the index count it: our own wall clock, or the store's when ours is known to be wrong.

    A server whose clock is a year ahead must not put its rows a year ahead, where nobody would look for them (R5).
    """
    now = lane.clock.now()
    return now.wall_ms if lane.trusts_clock(now) else await lane.store.time_ms()


async def arm(lane: Lane, waits: Iterable[tuple[int, int]]) -> None:
    """Makes sure that for each (milliseconds from now, bucket) somebody will look; returns once that is durable.

    For what this server will look into by itself at that very time: it remembers having written the rows.
    """
    armed = lane.view.armed
    waits = list(waits)
    if not waits:
        return
    begin_ms = await index_time_ms(lane)
    # Our clock may be behind the marks by its allowed error: of what lies nearer than that nobody knows whether the
    # marks have passed it since it was written.
    sure = places.wake_slot(begin_ms + limits.CLOCK_ERROR_MS)
    missing = {(places.wake_slot(begin_ms + wait_ms), bucket) for wait_ms, bucket in waits}
    missing = {pair for pair in missing if pair not in armed or pair[0] <= sure}
    if not missing:
        return
    for pair in await _write_ahead(lane, [(slot, bucket, limits.LOOK_AGAIN_MS) for slot, bucket in sorted(missing)]):
        armed[pair] = None
    while len(armed) > limits.WATCHED_ROWS:
        armed.popitem(last=False)


async def arm_again(lane: Lane, rows: Sequence[tuple[int, int, int]]) -> None:
    """The worker's own rows (slot, bucket, patience_ms), into which every server looks, this one too."""
    await _write_ahead(lane, rows)


async def _write_ahead(lane: Lane, rows: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Writes rows, and again above `wake_raised` if it had passed them; returns where they came to stand."""
    placed: list[tuple[int, int]] = []
    for _ in range(limits.WAKE_ROUNDS):
        await must_write(lane.store, entries(lane, rows))
        (pointers,) = await read_surely(lane.store, [Span(lane.pointers)])
        raised = pointer_marks(pointers).wake_raised
        placed += [(slot, bucket) for slot, bucket, _ in rows if slot > raised]
        rows = [(raised + 1, bucket, patience) for slot, bucket, patience in rows if slot <= raised]
        if not rows:
            return placed
    raise Unavailable("the wake marks moved faster than an entry could be written")


async def look_for_due(lane: Lane, marks: Marks, now: Moment) -> None:
    """Reads the rows whose time has come since the last look and schedules their buckets."""
    view = lane.view
    last = now.wall_ms // limits.WAKE_SLOT_MS
    first = marks.wake_done + 1
    if view.index_read_to is not None:
        if now.monotonic_ms - view.index_read_ms < limits.WAKE_SLOT_MS:
            return
        # Others' clocks are behind ours by up to the allowed error, or, if ours is wrong, by anything: what they
        # write now may lie behind what we have read. So the last slots are read again, each row of them once.
        read_to = min(view.index_read_to, last)
        read_to = read_to if lane.trusts_clock(now) else min(read_to, marks.wake_raised)
        overlap = limits.WAKE_OVERLAP_SLOTS if view.index_caught_up else 0
        first = max(first, read_to + 1 - overlap)
    reached, rows = await read_rows(lane, first, last)
    seen, view.index_seen = view.index_seen, set(rows)
    for row in rows:
        if row in seen:
            continue
        # Our own claims are scheduled to the millisecond already.
        own = row.server == lane.server and (row.slot, row.bucket) in view.armed
        if not own and row.bucket >= marks.repair and row.bucket not in view.finished:
            view.schedule(row.bucket, now.monotonic_ms)
    view.index_read_to = reached
    view.index_caught_up = reached >= last
    view.index_read_ms = now.monotonic_ms if reached >= last else now.monotonic_ms - limits.WAKE_SLOT_MS


async def read_rows(lane: Lane, first: int, last: int) -> tuple[int, list[WakeRow]]:
    """The rows from slot `first` on, as many as one look may read; and the last slot that is whole among them."""
    if first > last:
        return last, []
    newest_period = min(places.wake_period(last), places.wake_period(first) + limits.WAKE_PERIODS - 1)
    last = min(last, (newest_period + 1) * limits.WAKE_PERIOD_SLOTS - 1)
    low, high = places.slot_rows(first, last)
    periods = range(places.wake_period(first), newest_period + 1)
    partitions = [places.wakes(lane.incarnation, lane.number, period) for period in periods]
    slices = await lane.store.read([Span(partition, low, high, limits.WAKE_ENTRIES) for partition in partitions])
    rows: list[WakeRow] = []
    for found in slices:
        rows.extend(_rows_of(found))
        if found.more:
            # The slot that the limit cut through is read again from its beginning.
            cut = rows[-1].slot
            if cut > first:
                return cut - 1, [row for row in rows if row.slot < cut]
            return await _read_one_slot(lane, first)
    return last, rows


async def _read_one_slot(lane: Lane, slot: int) -> tuple[int, list[WakeRow]]:
    """A single slot with very many buckets is read whole: it cannot be cut."""
    low, high = places.slot_rows(slot, slot)
    partition = places.wakes(lane.incarnation, lane.number, places.wake_period(slot))
    (found,) = await lane.store.read([Span(partition, low, high)])
    return slot, _rows_of(found)


def _rows_of(found: Slice) -> list[WakeRow]:
    rows = []
    for row in found.rows:
        slot, bucket, server = places.read_wake_row(str(row.key))
        patience = row.values.get("patience")
        rows.append(WakeRow(slot, bucket, server, patience if isinstance(patience, int) else limits.LOOK_AGAIN_MS))
    return rows
