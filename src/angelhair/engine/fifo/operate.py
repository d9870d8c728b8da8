"""What an operator asks of a lane: its marks, how many messages wait, and that they be gone."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.engine.fifo.epoch import look
from angelhair.engine.fifo.judge import present, remaining
from angelhair.engine.fifo.lane import Lane, marks_of, tail_of
from angelhair.engine.fifo.read import read_ahead, read_on
from angelhair.engine.fifo.state import State
from angelhair.engine.marks import Marks, QueueGone, raise_mark
from angelhair.engine.store import Span


async def marks(lane: Lane) -> Marks:
    """As every kind has them. The log has no gaps: what is below its last bucket is final."""
    sequence, pointers = await lane.store.read([Span(lane.sequence), Span(lane.pointers)])
    tail = tail_of(lane, sequence)
    found = marks_of(lane, sequence, pointers)
    (log,) = await lane.store.read([Span(lane.log(tail.bucket), -1, -1)])
    next_id = log.flags.get("next")
    if log.flags.get("opened") != tail.token or not isinstance(next_id, int) or log.flags.get("deleted"):
        raise QueueGone(lane.queue)
    return found._replace(next_id=next_id, reader=tail.bucket, final=tail.bucket, settled=tail.bucket)


async def purge(lane: Lane) -> None:
    """All that was put before this is gone."""
    found = await marks(lane)
    while found.purged < found.next_id and not await raise_mark(lane, "purged", found.purged, found.next_id):
        found = await marks(lane)


async def lane_stats(lane: Lane) -> Stats:
    """Exact within the look-ahead; what is beyond counts as visible."""
    end = (await marks(lane)).next_id
    read = await read_on(lane)
    while lane.view.index.end < end and await read_ahead(lane):
        continue
    await look(lane)
    at = await present(lane, read)
    index, stats = lane.view.index, Stats()
    oldest: int | None = None
    for group in index.in_order():
        state = lane.view.states.get(group, State())
        for number in index.waiting.get(group, ()):
            entry = state.touched.get(number)
            due_at = index.date_of(number) + lane.settings.delay_ms
            if number < at.purged or state.settled(number):
                continue
            if entry is not None and (entry.settled is not None or remaining(lane, group, entry, at) > 0):
                stats.in_flight += 1
            elif at.over_before is not None and due_at <= at.over_before:
                continue
            elif entry is None and due_at > at.now_ms:
                stats.delayed += 1
            else:
                stats.visible += 1
                oldest = min(index.date_of(number), oldest or index.date_of(number))
    if oldest is not None:
        stats.oldest_age_ms = max(0, at.now_ms - oldest)
    beyond = max(0, end - max(index.end, at.purged))
    stats.visible += beyond
    stats.exact = not beyond and lane.view.rows < limits.EPOCH_READ_ROWS
    return stats
