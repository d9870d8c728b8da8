"""Repair: settles which ids of a closed bucket exist, admits the late ones, finishes what is done (A6, A7, A8, R1).

For every closed bucket, in order, once it is full or has been closed for the queue's repair time-out:

    1. set its `final` flag; from now on nothing is delivered there for the first time without being admitted
    2. raise the mark `final` over it; from now on a put into it must admit its own message
    3. read the bodies; admit each that has no state row
    4. raise the mark `settled` over it

A put that did not see step 2 was written before it, so step 3 finds it. Ids that step 3 does not find are void. All
of it may be done twice, by two workers at once, or resumed by another: every step is conditional or idempotent.

A bucket is finished when it is settled and none of its messages is left to deliver. The repair mark passes finished
buckets only.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.admit import Arrival, admit
from angelhair.engine.bucketed.erase import overwrite
from angelhair.engine.bucketed.examine import MOVING, Findings, examine, is_over
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.marks import Marks, raise_mark
from angelhair.engine.schema import BODY_DATES
from angelhair.engine.settling import change_one, change_settled, have_land
from angelhair.engine.store import Applied, Change, Refused, Slice, Span, Value, Values
from angelhair.errors import StoreError


class LowBucket(NamedTuple):
    due_ms: int
    pause_ms: int
    settled: int
    """Messages that were settled at the last look: as long as their number grows, looking often pays."""
    looks: int


@dataclass(slots=True)
class RepairMemory:
    """What this server has watched on its own clock, whoever held the lease meanwhile (R5).

    Marks only rise, so that what it saw once stays true; what another worker saw is not its to count.
    """

    closed_since_ms: OrderedDict[int, int] = field(default_factory=OrderedDict)
    """By value of the reader mark: since when, on our own clock, it has stood there or above."""
    low: dict[int, LowBucket] = field(default_factory=dict)
    """The lowest unfinished buckets, and when to look into each again."""


async def make_final(lane: Lane, marks: Marks, memory: RepairMemory, now: Moment) -> bool:
    """Steps 1 to 4 for the buckets that are ready. True when more are."""
    if marks.reader not in memory.closed_since_ms:
        memory.closed_since_ms[marks.reader] = now.monotonic_ms
    while memory.closed_since_ms and next(iter(memory.closed_since_ms)) <= marks.final:
        memory.closed_since_ms.popitem(last=False)
    waited = marks.final
    for reader, since in memory.closed_since_ms.items():
        if now.monotonic_ms - since >= lane.settings.repair_timeout_ms:
            waited = max(waited, reader)
    last = min(marks.reader, marks.settled + limits.FINAL_BUCKETS)
    ready = max(marks.settled, min(waited, last))
    if ready < last:
        ready = await _full_up_to(lane, max(ready, marks.final), last)
    if ready <= marks.settled:
        return False
    buckets = range(marks.settled, ready)
    await _set_flags(lane, buckets)
    if ready > marks.final and not await raise_mark(lane, "final", marks.final, ready):
        return False
    for bucket in buckets:
        await _admit_missing(lane, marks, bucket, now)
    return await raise_mark(lane, "settled", marks.settled, ready) and ready < marks.reader


async def close_expired(lane: Lane, marks: Marks, now: Moment, trusted: bool) -> bool:
    """Closes the bucket at the reader mark when nobody reads it and all of it has expired or was purged.

    Without this a queue that nobody consumes would keep what its retention says must go.
    """
    if lane.first_of(marks.reader + 1) > marks.next_id:
        return False
    # An empty bucket may be being written; it is as old as the first message after it.
    last = min(lane.bucket_of(marks.next_id - 1), marks.reader + limits.OPEN_BUCKETS)
    buckets = range(marks.reader, last + 1)
    heads = await lane.store.read([Span(lane.bodies(bucket), limit=1, columns=BODY_DATES) for bucket in buckets])
    first = next((bucket for bucket, head in zip(buckets, heads, strict=True) if head.rows), None)
    if first is None:
        return False
    rows = heads[first - marks.reader].rows
    if first == marks.reader and is_over(lane, marks, int(rows[0].key), rows[0].values, now, trusted):
        (whole,) = await lane.store.read([Span(lane.bodies(first), columns=BODY_DATES)])
        rows = whole.rows
    if not all(is_over(lane, marks, int(row.key), row.values, now, trusted) for row in rows):
        return False
    return await raise_mark(lane, "reader", marks.reader, marks.reader + 1)


async def _full_up_to(lane: Lane, first: int, last: int) -> int:
    """The first bucket from `first` on that has an id missing: the full ones before it need no patience."""
    unknown = [bucket for bucket in range(first, last) if bucket not in lane.view.full]
    if not unknown:
        return last
    size = lane.settings.bucket_size
    found = await lane.store.read([Span(lane.bodies(bucket), columns=BODY_DATES) for bucket in unknown])
    for bucket, bodies in zip(unknown, found, strict=True):
        if len(bodies.rows) < size:
            return bucket
        if all(row.values.get("keyed") is None for row in bodies.rows):
            lane.view.remember_full(bucket)
    return last


async def _set_flags(lane: Lane, buckets: range) -> None:
    changes = [Change(lane.states(bucket), expect_flags={"final": None}, set_flags={"final": 1}) for bucket in buckets]
    for outcome in await change_settled(lane.store, changes):
        if isinstance(outcome, StoreError):
            raise outcome


async def _admit_missing(lane: Lane, marks: Marks, bucket: int, now: Moment) -> None:
    """Step 3; also arms the bucket, so that somebody looks into it as long as it is not finished."""
    await wake.arm(lane, [(limits.LOOK_AGAIN_MS, bucket)])
    if bucket in lane.view.full:
        size = lane.settings.bucket_size
        if lane.view.acked.get(bucket) == size or len((await _settlements(lane, bucket)).rows) == size:
            return
    findings = await examine(lane, marks, bucket, expiring=False)
    arrivals = [Arrival(*item) for item in findings.unadmitted]
    if arrivals:
        await admit(lane, bucket, arrivals, now)


async def finish_low(lane: Lane, marks: Marks, memory: RepairMemory, now: Moment, expiring: bool) -> bool:
    """Looks into the lowest unfinished buckets, finishes what is done and moves the repair mark. True for more."""
    repair, busy = await _pass_finished(lane, marks, memory)
    for bucket in [bucket for bucket in memory.low if bucket < repair]:
        del memory.low[bucket]
    looked = 0
    bucket = repair
    while bucket < marks.settled and looked < limits.LOW_BUCKETS:
        if bucket not in lane.view.finished:
            looked += 1
            last = memory.low.get(bucket)
            if last is None or now.monotonic_ms >= last.due_ms:
                findings, finished = await _look_into(lane, marks, memory, bucket, now, expiring)
                memory.low[bucket] = _next_look(last, findings, now)
                busy = busy or (finished and bucket == repair)
        bucket += 1
    return busy


def _next_look(last: LowBucket | None, findings: Findings, now: Moment) -> LowBucket:
    """Often while consumers settle messages there, ever less often while nothing happens."""
    if last is None or findings.settled > last.settled:
        pause_ms = limits.STEP_MS
    else:
        pause_ms = min(2 * last.pause_ms, limits.LOW_PAUSE_MAXIMUM_MS)
    return LowBucket(now.monotonic_ms + pause_ms, pause_ms, findings.settled, 1 if last is None else last.looks + 1)


async def _pass_finished(lane: Lane, marks: Marks, memory: RepairMemory) -> tuple[int, bool]:
    """Moves the repair mark over finished buckets, a bounded number at a time."""
    repair = marks.repair
    last = min(marks.settled, repair + limits.FINISHED_BUCKETS)
    # Those that were visited are known; the others may have been finished by an earlier worker, many at a time.
    known = memory.low.keys() | lane.view.finished.keys()
    unknown = [bucket for bucket in range(repair, last) if bucket not in known][: limits.LOW_BUCKETS]
    if unknown:
        found = await lane.store.read([Span(lane.states(bucket), -1, -1) for bucket in unknown])
        for bucket, part in zip(unknown, found, strict=True):
            if part.flags.get("finished") is not None:
                lane.view.remember_finished(bucket)
    while repair < last and repair in lane.view.finished:
        repair += 1
    if repair == marks.repair:
        return repair, False
    if not await raise_mark(lane, "repair", marks.repair, repair):
        return marks.repair, False
    for bucket in range(marks.repair, repair):
        lane.view.finished.pop(bucket, None)
    return repair, True


async def _look_into(
    lane: Lane, marks: Marks, memory: RepairMemory, bucket: int, now: Moment, expiring: bool
) -> tuple[Findings, bool]:
    """A visit, or less: while consumers settle what a full bucket holds, counting how far they are will do."""
    last = memory.low.get(bucket)
    if bucket in lane.view.full and (last is None or last.looks % limits.COUNTING_LOOKS):
        size = lane.settings.bucket_size
        findings = await _settled(lane, bucket, size)
        if findings.settled == size:
            return findings, await _finish_if_done(lane, marks, bucket, findings, now, expiring)
        if last is None or findings.settled > last.settled:
            return findings, False
    return await visit(lane, marks, bucket, now, expiring)


async def _settled(lane: Lane, bucket: int, size: int) -> Findings:
    """Of a full bucket: its flags, and how many of its messages are settled."""
    if lane.view.acked.get(bucket) == size:
        (head,) = await lane.store.read([Span(lane.states(bucket), -1, -1)])
        return Findings(head.flags, settled=size)
    states = await _settlements(lane, bucket)
    settled = [int(row.key) for row in states.rows if row.values.get("settled") not in (None, MOVING)]
    for number in settled if lane.view.watched else ():
        lane.view.watched.pop(number, None)
    erased = [int(row.key) for row in states.rows if row.values.get("erased_at") is not None]
    return Findings(states.flags, settled=len(settled), erased=erased)


async def _settlements(lane: Lane, bucket: int) -> Slice:
    (states,) = await lane.store.read([Span(lane.states(bucket), columns=("delivery", "settled", "erased_at"))])
    return states


async def visit(lane: Lane, marks: Marks, bucket: int, now: Moment, expiring: bool) -> tuple[Findings, bool]:
    """Looks into a bucket and does what is to be done there; says whether it is finished."""
    findings = await examine(lane, marks, bucket, expiring)
    note(lane, bucket, findings, now)
    if findings.flags.get("final") is not None and findings.flags.get("finished") is None and findings.unadmitted:
        # Written after everybody had looked, by a put that was never confirmed: it is delivered all the same (A6).
        await admit(lane, bucket, [Arrival(*item) for item in findings.unadmitted], now)
        return findings, False
    if _is_done(lane, marks, bucket, findings) and findings.flags.get("admitted") is not None:
        if not await _have_admitted_land(lane, bucket, findings):
            return findings, False
        findings = await examine(lane, marks, bucket, expiring)
        if findings.unadmitted:
            return findings, False
    return findings, await _finish_if_done(lane, marks, bucket, findings, now, expiring)


def _is_done(lane: Lane, marks: Marks, bucket: int, findings: Findings) -> bool:
    """Whether it is settled, not finished, and nothing in it is left to deliver."""
    return findings.flags.get("finished") is None and bucket < marks.settled and not findings.unsettled


async def _have_admitted_land(lane: Lane, bucket: int, findings: Findings) -> bool:
    """Whoever admits raises a flag, which may be seen before the message's own row is. What is found beside the flag
    that was seen once that has landed is all that was admitted under it."""
    flags: Values = {"final": 1, "finished": None, "admitted": findings.flags.get("admitted")}
    (outcome,) = await have_land(lane.store, [Change(lane.states(bucket), expect_flags=flags)])
    return isinstance(outcome, Applied)


async def _finish_if_done(
    lane: Lane, marks: Marks, bucket: int, findings: Findings, now: Moment, trusted: bool
) -> bool:
    """Sets `finished` when the bucket is settled and nothing in it is left to deliver."""
    if findings.flags.get("finished") is not None:
        lane.view.remember_finished(bucket)
        return True
    if not _is_done(lane, marks, bucket, findings):
        return False
    # The history of a bucket counts from here: a clock that is a year ahead must not keep it for a year (R5).
    finished_at = now.wall_ms if trusted else await lane.store.time_ms()
    flags: dict[str, Value] = {"finished": 1, "finished_at": finished_at}
    if findings.keyed:
        flags["keyed"] = findings.keyed
    if findings.bodiless:
        # A body that was there is gone: the store is damaged. The bucket ends all the same, and tells what it can.
        flags["keyed"] = max(findings.keyed, finished_at + lane.settings.dedup_window_ms)
    if findings.erased:
        # A writer that slept may have brought it back, and died before it saw.
        await overwrite(lane, bucket, findings.erased)
    outcome = await change_one(
        lane.store,
        Change(
            lane.states(bucket),
            expect_flags={"final": 1, "finished": None, "admitted": findings.flags.get("admitted")},
            set_flags=flags,
        ),
    )
    if isinstance(outcome, StoreError):
        raise outcome
    if isinstance(outcome, Applied) or (isinstance(outcome, Refused) and outcome.flags.get("finished") is not None):
        lane.view.remember_finished(bucket)
        return True
    return False


def note(lane: Lane, bucket: int, findings: Findings, now: Moment) -> None:
    """What the worker found is also of use to the receives of its own server."""
    view = lane.view
    view.exhausted.update(findings.exhausted)
    view.moving.update(dict.fromkeys(findings.moving))
    if findings.visible:
        view.schedule(bucket, now.monotonic_ms)
    elif findings.waiting:
        view.schedule(bucket, now.monotonic_ms + min(wait.remaining_ms for wait in findings.waiting))
