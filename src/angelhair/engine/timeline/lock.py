"""The lock of a shard, its mark and its checkpoint: one row, changed conditionally (R8, W5, W6, W9).

Every change expects the holder, the fence and the beat that it knows, and raises the beat: so a change that lands late
finds the row as it left it or not at all, and whoever has a change confirmed knows the row whole. A lock has no TTL.
Whoever has watched the same beat for its duration *on its own monotonic clock* may take it, with the next fence (R5).

A holder believes in its lock for a shorter time, counted from before it sent the last touch that was confirmed. When
that is over it gives nothing and moves nothing until it has taken the shard anew (W9). Of what came back unknown it
believes nothing; when it turns out to have landed, it is found in the row. Up to a mark that was only found there it
does not read: that a change was seen to be there is less than that it is confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, ChangeOutcome, Refused, RowChange, Slice, Value, Values
from angelhair.engine.timeline.lane import Line, Session
from angelhair.engine.timeline.window import Held

FREE = ""
"""The holder of a lock that nobody has."""


def row_of(found: Slice) -> Values:
    """A shard's row. Raises `QueueGone` if the shard is gone."""
    return _living(found.rows[0].values if found.rows else {})


def _living(row: Values) -> Values:
    if row.get("deleted") or not isinstance(row.get("fence"), int):
        raise QueueGone("the timeline, or this shard of it, is gone")
    return row


def watch(line: Line, lane: int, row: Values, now: Moment) -> int:
    """For how long the row has been seen as it is, on our own clock, in milliseconds."""
    view = line.view(lane)
    seen = (str(row.get("holder")), _whole(row, "fence"), _whole(row, "beat"))
    if view.watched != seen:
        view.watched, view.watched_since_ms = seen, now.monotonic_ms
    return now.monotonic_ms - view.watched_since_ms


def takeable(session: Session, asked: bool, row: Values, watched_ms: int) -> bool:
    """Free, lapsed, or ours."""
    return row.get("holder") == FREE or is_ours(session, asked, row) or watched_ms >= _whole(row, "duration")


def is_ours(session: Session, asked: bool, row: Values) -> bool:
    """Held by us under a fence that we did not learn of; or by the same consumer on another server, if it asks us: it
    has come over. What runs by itself takes nothing back from where its consumer went."""
    return row.get("holder") == session.holder or (asked and row.get("consumer") == session.consumer)


async def take(line: Line, session: Session, rows: dict[int, Values]) -> list[Held]:
    """Takes the locks of these shards, as their rows were seen; those that we have now."""
    now = line.clock.now()
    changes = [_taking(line, session, lane, row, now) for lane, row in rows.items()]
    taken = []
    for (lane, row), outcome in zip(rows.items(), await change_settled(line.store, changes), strict=True):
        fence, beat = _whole(row, "fence") + 1, _whole(row, "beat") + 1
        if not _ours(outcome, session.holder, fence, beat):
            continue
        last, mark_ms = str(row["last"]), _whole(row, "mark")
        # Found in the row and not confirmed, it is ours; but what others see of it, only the next change makes sure.
        sure_ms = mark_ms if isinstance(outcome, Applied) else 0
        held = Held(
            lane, session.holder, session.consumer, fence, beat, sure_ms, mark_ms, last, line.settings.lock_ms,
            now.monotonic_ms, last, last,
        )
        before = line.held(lane)
        if before is not None:
            lose(line, before)
        line.view(lane).held = held
        taken.append(held)
    return taken


def _taking(line: Line, session: Session, lane: int, row: Values, now: Moment) -> Change:
    fence, beat = _whole(row, "fence"), _whole(row, "beat")
    values: Values = {
        "holder": session.holder,
        "consumer": session.consumer,
        "fence": fence + 1,
        "beat": beat + 1,
        "duration": line.settings.lock_ms,
        "taken_at": now.wall_ms,
        "touched_at": now.wall_ms,
    }
    return _change(line, lane, str(row.get("holder")), fence, beat, values)


def _ours(outcome: ChangeOutcome, holder: str, fence: int, beat: int) -> bool:
    """Whether our change is the one that the row shows: an earlier try of it may be what refused the later one."""
    if isinstance(outcome, Refused):
        row = outcome.rows.get(places.SHARD_ROW, {})
        return (row.get("holder"), row.get("fence"), row.get("beat")) == (holder, fence, beat)
    return isinstance(outcome, Applied)


async def keep(line: Line, helds: Sequence[Held], mark_ms: int | None = None) -> list[Held]:
    """Touches these shards, moves their checkpoints over what is processed and raises their marks, all in one change
    each; those of which that is confirmed. Raises `QueueGone`."""
    helds = [held for held in helds if not held.changing and not held.lost]
    for held in helds:
        held.changing = True
    try:
        return await _keep(line, helds, mark_ms)
    finally:
        for held in helds:
            held.changing = False


async def _keep(line: Line, helds: Sequence[Held], mark_ms: int | None) -> list[Held]:
    now = line.clock.now()
    wanted: list[tuple[Held, int, str, int]] = []
    for held in helds:
        if held.believed(now):
            wanted.append((held, max(held.seen_mark_ms, mark_ms or 0), held.reached, held.passed))
        else:
            # Perhaps nobody took it yet; but only a new fence makes sure that nobody did in between.
            lose(line, held)
    changes = [_touching(line, held, mark, last, now) for held, mark, last, _ in wanted]
    kept = []
    for (held, mark, last, passed), outcome in zip(wanted, await change_settled(line.store, changes), strict=True):
        if _settled(line, held, outcome, mark, last):
            if mark > held.seen_mark_ms:
                held.raised_ms = now.monotonic_ms
            held.beat, held.seen_mark_ms, held.last = held.beat + 1, mark, last
            held.confirmed_ms = now.monotonic_ms
            held.passed -= passed
            if isinstance(outcome, Applied):
                held.mark_ms = mark
            kept.append(held)
    return kept


def _touching(line: Line, held: Held, mark_ms: int, last: str, now: Moment) -> Change:
    values: Values = {
        "beat": held.beat + 1, "mark": mark_ms, "last": last, "duration": held.duration_ms, "touched_at": now.wall_ms,
    }
    return _change(line, held.lane, held.holder, held.fence, held.beat, values)


def _settled(line: Line, held: Held, outcome: ChangeOutcome, mark_ms: int, last: str) -> bool:
    """Whether this very change is in the row. Refused, it may be the earlier one that came back unknown."""
    if isinstance(outcome, Applied):
        return True
    if not isinstance(outcome, Refused):
        return False
    row = outcome.rows.get(places.SHARD_ROW, {})
    if row.get("deleted") or not row:
        lose(line, held)
        raise QueueGone("the timeline, or this shard of it, is gone")
    if (row.get("holder"), row.get("fence")) != (held.holder, held.fence):
        lose(line, held)
        return False
    beat, mark, checkpoint = _whole(row, "beat"), _whole(row, "mark"), str(row.get("last"))
    if (beat, mark, checkpoint) == (held.beat + 1, mark_ms, last):
        return True
    # Ours, and of an earlier time: known again, and the next change is made from here.
    held.beat, held.seen_mark_ms, held.last = beat, mark, checkpoint
    return False


async def release(line: Line, helds: Sequence[Held]) -> None:
    """Gives shards back, checkpoints first, so that others need not wait. What is not known to have been given back
    lapses."""
    now = line.clock.now()
    helds = [held for held in helds if not held.changing]
    changes = []
    for held in helds:
        values: dict[str, Value] = {"holder": FREE, "consumer": None, "beat": held.beat + 1}
        if held.believed(now):
            values["last"] = held.reached
        changes.append(_change(line, held.lane, held.holder, held.fence, held.beat, values))
        lose(line, held)
    await change_settled(line.store, changes)


def lose(line: Line, held: Held) -> None:
    """From now on nothing is given from it and nothing moved (W9)."""
    held.lost = True
    view = line.view(held.lane)
    if view.held is held:
        view.held = None


def _change(line: Line, lane: int, holder: str, fence: int, beat: int, values: Values) -> Change:
    expect: Values = {"holder": holder, "fence": fence, "beat": beat, "deleted": None}
    return Change(line.shard(lane), [RowChange(places.SHARD_ROW, expect, values)])


def _whole(row: Values, name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0
