"""What a queue holds, at a bounded number of reads.

Exact as long as the unfinished buckets are few; beyond the bound the rest is estimated from those that were read,
and `exact` says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.examine import Findings, examine
from angelhair.engine.bucketed.lane import Lane, read_marks
from angelhair.engine.counts import Stats
from angelhair.engine.marks import Marks


async def lane_stats(lane: Lane, now: Moment, expiring: bool, most: int = limits.STATS_BUCKETS) -> Stats:
    marks = await read_marks(lane)
    stats = Stats()
    if lane.settings.archive:
        stats.archived, stats.unarchived = marks.archived, max(0, marks.repair - marks.archived)
    if marks.next_id == 0:
        return stats
    last = lane.bucket_of(marks.next_id - 1)
    below = [bucket for bucket in range(marks.repair, min(marks.reader, last + 1)) if bucket not in lane.view.finished]
    above = list(range(max(marks.reader, marks.repair), last + 1))
    read_below, read_above = _chosen(below, above, most)
    seen_below, seen_above = Stats(), Stats()
    for bucket in read_below:
        _count(seen_below, await examine(lane, marks, bucket, expiring), now)
    for bucket in read_above:
        _count(seen_above, await examine(lane, marks, bucket, expiring), now)
    if len(read_below) < len(below):
        _stretch(seen_below, len(below) / len(read_below))
    if len(read_above) < len(above):
        seen_above.exact = False
        seen_above.visible += _unread_ids(lane, marks, read_above[-1] + 1 if read_above else above[0])
    stats.add(seen_below)
    stats.add(seen_above)
    return stats


def _chosen(below: Sequence[int], above: Sequence[int], most: int) -> tuple[Sequence[int], Sequence[int]]:
    """All, if there are no more than `most`. Otherwise it is an estimate however many are read: of those from which
    messages were handed out some here and there, and of those that wait behind each other the first few."""
    if len(below) + len(above) <= most:
        return below, above
    read_above = above[: min(most // 2, limits.STATS_WAITING_BUCKETS)]
    some = min(len(below), most - len(read_above))
    return [below[place * len(below) // some] for place in range(some)], read_above


def _count(stats: Stats, findings: Findings, now: Moment) -> None:
    if findings.flags.get("finished") is not None:
        return
    stats.visible += len(findings.visible) + len(findings.exhausted)
    stats.delayed += sum(wait.delayed for wait in findings.waiting)
    stats.in_flight += sum(not wait.delayed for wait in findings.waiting) + len(findings.moving)
    stats.dead += findings.dead
    for candidate in findings.visible:
        if candidate.enqueued_at:
            stats.oldest_age_ms = max(stats.oldest_age_ms or 0, now.wall_ms - candidate.enqueued_at)


def _stretch(stats: Stats, factor: float) -> None:
    stats.exact = False
    stats.visible = round(stats.visible * factor)
    stats.in_flight = round(stats.in_flight * factor)
    stats.delayed = round(stats.delayed * factor)
    stats.dead = round(stats.dead * factor)


def _unread_ids(lane: Lane, marks: Marks, first_bucket: int) -> int:
    return max(0, marks.next_id - max(lane.first_of(first_bucket), marks.purged))
