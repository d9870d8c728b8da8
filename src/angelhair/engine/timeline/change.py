"""Change: extends or releases deliveries. Longer than a lock lasts, a message is set aside to then: it must not hang on
the memory of one server for so long, nor hold up the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.clock import Moment
from angelhair.engine.timeline.ack import AckOutcome, SetAside, find, say_why
from angelhair.engine.timeline.aside import set_aside
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.receipts import Receipt
from angelhair.engine.timeline.window import Entry, Held
from angelhair.errors import InvalidRequest, NotInFlight, StaleReceipt
from angelhair.model import WantedChange


async def change(line: Line, group: Sequence[tuple[Receipt, WantedChange]]) -> list[AckOutcome]:
    """None for each that was changed, or what is wrong. Raises `QueueGone`."""
    now, wall_ms = line.clock.now(), await line.time_ms()
    outcomes: list[AckOutcome] = []
    later: list[tuple[int, tuple[Held, Entry, int, int]]] = []
    for receipt, wanted in group:
        outcome = _change(line, receipt, wanted, now)
        if isinstance(outcome, tuple):
            held, entry = outcome
            later.append((len(outcomes), (held, entry, wall_ms + (wanted.visibility_ms or 0), entry.delivery)))
            outcomes.append(None)
        else:
            outcomes.append(outcome)
    await say_why(line, [receipt for receipt, _ in group], outcomes)
    if later:
        await set_aside(line, [item for _, item in later])
        for place, (held, entry, _, _) in later:
            if not entry.settled:
                # It stays in the window, hidden for as long.
                entry.changed = True
                held.hide(entry, now.monotonic_ms + (group[place][1].visibility_ms or 0))
    return outcomes


def _change(line: Line, receipt: Receipt, wanted: WantedChange, now: Moment) -> AckOutcome | tuple[Held, Entry]:
    if wanted.body is not None:
        return InvalidRequest("body", "a timeline's rows are never changed")
    try:
        held, entry = find(line, receipt, now)
    except SetAside as aside:
        return _extend_aside(line, aside.place, wanted, now)
    except StaleReceipt as error:
        return error
    if entry is None:
        return StaleReceipt("the message was settled")
    if wanted.in_flight and entry.hidden_until_ms <= now.monotonic_ms:
        return NotInFlight("the time-out of this delivery has passed")
    if wanted.visibility_ms is None:
        return None
    if wanted.visibility_ms > line.settings.lock_ms:
        return held, entry
    entry.changed = True
    held.hide(entry, now.monotonic_ms + wanted.visibility_ms)
    return None


def _extend_aside(line: Line, place: tuple[int, str], wanted: WantedChange, now: Moment) -> AckOutcome:
    """More time for what was set aside already: this server hides it when it comes to it."""
    until_ms = now.monotonic_ms + (wanted.visibility_ms or 0)
    held = line.held(place[0]) if place[0] in line.states else None
    entry = None if held is None else held.window.get(place[1])
    if held is None or not held.believed(now):
        return StaleReceipt("the message was set aside to a shard that is not held here: it is delivered again")
    if entry is None:
        line.sessions.extend(place, until_ms)
    elif entry.given or entry.settled:
        return StaleReceipt("the message was delivered again since")
    else:
        if entry in held.ready:
            held.ready.remove(entry)
        held.hide(entry, until_ms)
    return None
