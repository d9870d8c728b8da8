"""Keep: the elected worker keeps the wake index in order. The rules are in wake.py."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.examine import Findings
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.bucketed.repair import visit
from angelhair.engine.marks import Marks, raise_mark


@dataclass(slots=True)
class KeepMemory:
    kept_ms: int | None = None


async def keep_index(lane: Lane, marks: Marks, memory: KeepMemory, now: Moment, expiring: bool) -> bool:
    """Raises the mark, visits the buckets of the rows behind it, gives the unfinished ones new rows. True for more."""
    done, raised = marks.wake_done, marks.wake_raised
    if done == raised:
        if memory.kept_ms is not None and now.monotonic_ms - memory.kept_ms < limits.WAKE_STEP_MS:
            return False
        # The store's clock, not ours: a mark that a fast clock had raised would push every row into the future.
        target = await lane.store.time_ms() // limits.WAKE_SLOT_MS
        if target <= raised or not await raise_mark(lane, "wake_raised", raised, target):
            return False
        memory.kept_ms = now.monotonic_ms
        raised = target
    reached, rows = await wake.read_rows(lane, done + 1, raised)
    reached, visits = _portion(lane, marks, rows, reached)
    again: list[tuple[int, int, int]] = []
    for bucket, patience_ms in visits.items():
        findings, finished = await visit(lane, marks, bucket, now, expiring)
        if not finished:
            again.append(_row_again(findings, bucket, patience_ms, raised))
    if again:
        await wake.arm_again(lane, again)
    if not await raise_mark(lane, "wake_done", done, reached):
        return False
    await _drop_passed(lane, marks, reached)
    return reached < raised


def _portion(lane: Lane, marks: Marks, rows: list[wake.WakeRow], reached: int) -> tuple[int, dict[int, int]]:
    """As many whole slots as one step may visit buckets; each bucket once, with its shortest pause."""
    visits: dict[int, int] = {}
    slot = None
    for row in rows:
        if row.slot != slot and len(visits) >= limits.WAKE_VISITS:
            return row.slot - 1, visits
        slot = row.slot
        if row.bucket >= marks.repair and row.bucket not in lane.view.finished:
            visits[row.bucket] = min(visits.get(row.bucket, row.patience_ms), row.patience_ms)
    return reached, visits


def _row_again(findings: Findings, bucket: int, patience_ms: int, raised: int) -> tuple[int, int, int]:
    look_ms = findings.next_look_ms
    if look_ms == 0 or findings.unadmitted:
        return raised + 1, bucket, limits.LOOK_AGAIN_MS
    longer_ms = min(patience_ms * 2, limits.LOOK_AGAIN_MAXIMUM_MS)
    pause_ms = patience_ms if look_ms is None else min(patience_ms, look_ms)
    # From the mark on, which follows the store's clock: ours may be wrong.
    return raised + max(1, places.wake_slot(pause_ms)), bucket, longer_ms


async def _drop_passed(lane: Lane, marks: Marks, reached: int) -> None:
    """Whole partitions of the index go once the mark has left them."""
    period = places.wake_period(reached)
    last = min(period, marks.wake_dropped + limits.WAKE_PERIODS)
    if last <= marks.wake_dropped:
        return
    gone = [places.wakes(lane.incarnation, lane.number, old) for old in range(marks.wake_dropped, last)]
    if all(outcome is None for outcome in await lane.store.drop(gone)):
        await raise_mark(lane, "wake_dropped", marks.wake_dropped, last)
