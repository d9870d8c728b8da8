"""Inspect: a run of buckets as an operator wants to see them. Takes nothing, changes nothing."""

from __future__ import annotations

from typing import Literal, NamedTuple

from angelhair import limits
from angelhair.engine.bucketed.examine import Findings, examine
from angelhair.engine.bucketed.lane import Lane, read_marks
from angelhair.engine.marks import Marks

State = Literal["open", "closed", "final", "settled", "finished", "dropped"]


class BucketSeen(NamedTuple):
    """One bucket. `messages` is the sum of the four counts behind it."""

    bucket: int
    state: State
    messages: int = 0
    settled: int = 0
    """Acked, dead, moved, purged or expired."""
    visible: int = 0
    in_flight: int = 0
    delayed: int = 0
    """Not visible yet for the first time; those that came late and wait for repair to admit them are among them."""


async def inspect(lane: Lane, first: int | None, count: int) -> list[BucketSeen]:
    """Up to `count` buckets from `first` on, or from the first that is kept; none beyond the last that has an id."""
    marks = await read_marks(lane)
    start = marks.floor if first is None else first
    end = lane.bucket_of(marks.next_id - 1) + 1 if marks.next_id else 0
    seen = []
    for bucket in range(start, min(end, start + min(count, limits.STATS_BUCKETS))):
        if bucket < marks.floor:
            # Nothing reads there (R14): its rows may be going away right now.
            seen.append(BucketSeen(bucket, "dropped"))
        else:
            seen.append(_seen(bucket, marks, await examine(lane, marks, bucket, expiring=True)))
    return seen


def _seen(bucket: int, marks: Marks, findings: Findings) -> BucketSeen:
    final = findings.flags.get("final") is not None
    settled = findings.settled + findings.expired
    visible = len(findings.visible) + len(findings.exhausted)
    in_flight = sum(not wait.delayed for wait in findings.waiting) + len(findings.moving)
    # Before a bucket is final, what was not admitted is counted among the visible and the waiting already.
    delayed = sum(wait.delayed for wait in findings.waiting) + (len(findings.unadmitted) if final else 0)
    return BucketSeen(
        bucket,
        _state(bucket, marks, findings, final),
        settled + visible + in_flight + delayed,
        settled,
        visible,
        in_flight,
        delayed,
    )


def _state(bucket: int, marks: Marks, findings: Findings, final: bool) -> State:
    """How far the bucket has come; the marks are raised over several buckets at once, a flag says it of one."""
    if findings.flags.get("finished") is not None:
        return "finished"
    if bucket < marks.settled:
        return "settled"
    if final or bucket < marks.final:
        return "final"
    return "closed" if bucket < marks.reader else "open"
