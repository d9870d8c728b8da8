"""A timeline's background work on one server: it keeps the locks of the consumers that it speaks for, lets go of those
that it hears nothing of, and sees to what stands in the way of a checkpoint."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.timeline import consumer
from angelhair.engine.timeline.aside import set_aside
from angelhair.engine.timeline.lane import Line, Session
from angelhair.engine.timeline.window import Entry, Held


async def keep_sessions(line: Line) -> None:
    """Raises `QueueGone`."""
    for session in list(line.sessions.by_name.values()):
        now = line.clock.now()
        if session.left:
            continue
        if now.monotonic_ms - session.heard_ms >= line.settings.lock_ms and not session.touching:
            await _let_go(line, session)
        else:
            if consumer.touch_due(line, session, now):
                await consumer.touch(line, session, asked=False)
            await consumer.release_idle(line, session)
    # A goodbye passes over what is being changed just then.
    here = {session.holder for session in line.sessions.by_name.values()}
    left = [held for held in line.all_held() if held.holder not in here]
    await consumer.part_with(line, left, goodbye=True)


async def _let_go(line: Line, session: Session) -> None:
    """Nobody has asked in its name for as long as a lock lasts: others may have its shards at once."""
    for held in line.held_by(session):
        held.leave(line.clock.now())
    await consumer.part_with(line, line.held_by(session))
    await consumer.leave(line, session)


async def make_way(line: Line) -> None:
    """Sets aside what stands in the way of checkpoints whose windows are half full. Raises `QueueGone`."""
    now, wall_ms = line.clock.now(), await line.time_ms()
    items: list[tuple[Held, Entry, int, int]] = []
    for held in line.all_held():
        if not held.believed(now) or held.room > limits.TIMELINE_WINDOW // 2:
            continue
        for entry in list(held.window.values()):
            if entry.settled:
                continue
            hidden = entry.hidden_until_ms > now.monotonic_ms
            if (held.room and hidden) or not (entry.given or hidden):
                # There is room to wait for it; or it has not had its chance. Not given and hidden is what was set aside
                # before, and whose consumer asked for more time since.
                break
            if now.monotonic_ms - entry.first_given_ms < line.settings.lock_ms:
                break
            wait_ms = max(0, entry.hidden_until_ms - now.monotonic_ms)
            items.append((held, entry, wall_ms + wait_ms, entry.delivery))
    if items:
        await set_aside(line, items)


def pause_ms(line: Line) -> int:
    if not line.sessions.by_name:
        return limits.STEP_MS
    return min(limits.TIMELINE_STEP_MS, line.settings.lock_ms // (2 * limits.TIMELINE_TOUCHES))
