"""Receive: whole runs of a group if possible, then the next group, the one that has waited longest first.

One group of receives costs one read of the lane's marks and of what is new in its log, one conditional write for all
claims, and one read of the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import receipts
from angelhair.engine.fifo.edit import Edit, edit
from angelhair.engine.fifo.epoch import enter, look
from angelhair.engine.fifo.judge import Present, judge, present, remaining
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.read import bodies_of, read_ahead, read_on
from angelhair.engine.fifo.state import Entry, State
from angelhair.engine.store import Values
from angelhair.engine.waiting import Waiting
from angelhair.errors import StoreError
from angelhair.model import Delivery, MessageId


class Pick(NamedTuple):
    """A group, and how many of its messages whom they are for wants."""

    waiting: Waiting
    wanted: int


async def receive(lane: Lane, group: Sequence[Waiting]) -> None:
    """Serves the group from this lane as far as it goes. Raises only what concerns the whole group."""
    view = lane.view
    marks = await read_on(lane)
    await enter(lane)
    looked = False
    rounds = limits.RECEIVE_ROUNDS
    given: set[str] = set()
    while rounds and any(waiting.missing > 0 for waiting in group) and _room(group):
        at = await present(lane, marks)
        picks = _choose(lane, group, at, given)
        wanted = sum(waiting.missing for waiting in group)
        if sum(pick.wanted for pick in picks.values()) < wanted and not view.log_ended and await read_ahead(lane):
            continue
        if not picks:
            age_ms = None if view.read_ms is None else lane.clock.now().monotonic_ms - view.read_ms
            if looked or (age_ms is not None and age_ms < limits.GROUPS_AGE_MS):
                break
            # What holds the groups up may have been settled elsewhere.
            looked = True
            await look(lane)
            continue
        if not await _serve(lane, picks, at):
            break
        given.update(picks)
        rounds -= sum(waiting.missing for waiting in group) == wanted


def _room(group: Sequence[Waiting]) -> bool:
    """Whether what was found so far leaves room in memory for more."""
    return sum(len(delivery.body) for waiting in group for delivery in waiting.deliveries) < limits.RECEIVE_BYTES


def _choose(lane: Lane, waitings: Sequence[Waiting], at: Present, given: set[str]) -> dict[str, Pick]:
    """Each group goes to one receive only: messages of one group in two hands could be done in any order."""
    view = lane.view
    picks: dict[str, Pick] = {}
    wanting = [waiting for waiting in waitings if waiting.missing > 0 and waiting.error is None]
    missing = [waiting.missing for waiting in wanting]
    soonest_ms: int | None = None
    turn = 0
    for group in view.index.in_order():
        if turn >= len(wanting) or len(picks) >= limits.CHANGE_ROWS:
            break
        if group in given:
            continue
        state = view.states.get(group, State())
        judged = judge(lane, group, state, at, missing[turn])
        if judged.exhausted is not None:
            view.exhausted[group] = judged.exhausted
        if judged.remaining_ms is not None:
            soonest_ms = min(judged.remaining_ms, soonest_ms or judged.remaining_ms)
        if judged.deliverable:
            picks[group] = Pick(wanting[turn], len(judged.deliverable))
            missing[turn] -= len(judged.deliverable)
            turn += missing[turn] <= 0
    view.due_ms = None if soonest_ms is None else at.now.monotonic_ms + soonest_ms
    return picks


async def _serve(lane: Lane, picks: dict[str, Pick], at: Present) -> bool:
    """Claims what was picked and hands it out. False when that met an error."""
    claimed: dict[str, list[Entry]] = {}

    def claiming(group: str, pick: Pick) -> Edit:
        def claim(state: State) -> State | None:
            ask, late = pick.waiting.ask, at.later(lane.clock.now())
            judged = judge(lane, group, state, late, pick.wanted)
            if judged.exhausted is not None:
                lane.view.exhausted[group] = judged.exhausted
            visibility_ms = lane.settings.visibility_timeout_ms if ask.visibility_ms is None else ask.visibility_ms
            entries = {}
            for number in judged.deliverable:
                before = state.touched.get(number)
                entries[number] = Entry(
                    number,
                    before.delivery + 1 if before else 1,
                    late.now_ms + visibility_ms,
                    visibility_ms,
                    before.first_delivered_at if before and before.delivery else late.now_ms,
                    attempt=ask.attempt,
                )
            claimed[group] = list(entries.values())
            return state.changed(entries, judged.settled_below) if entries else None

        return claim

    try:
        outcomes = await edit(lane, {group: claiming(group, pick) for group, pick in picks.items()}, sure=False)
        won = [group for group, outcome in outcomes.items() if isinstance(outcome, State)]
        bodies = await bodies_of(lane, [entry.number for group in won for entry in claimed[group]])
    except StoreError as error:
        # Nothing was handed out. What may have been claimed comes back after its time-out.
        for pick in picks.values():
            pick.waiting.error = error
        return False
    failed = False
    for group, pick in picks.items():
        outcome = outcomes[group]
        if isinstance(outcome, StoreError):
            pick.waiting.error, failed = outcome, True
        elif outcome is not None:
            hand_out(lane, group, pick.waiting, claimed[group], bodies)
            back_ms = at.now.monotonic_ms + min(entry.duration for entry in claimed[group])
            lane.view.due_ms = min(back_ms, lane.view.due_ms or back_ms)
    return not failed


def hand_out(lane: Lane, group: str, waiting: Waiting, entries: Sequence[Entry], bodies: dict[int, Values]) -> None:
    for entry in entries:
        row = bodies.get(entry.number)
        if row is not None:
            waiting.deliveries.append(_delivery(lane, group, entry, row))


def _delivery(lane: Lane, group: str, entry: Entry, row: Values) -> Delivery:
    body, attributes, origin, enqueued_at = (
        row.get(name) for name in ("body", "attributes", "origin", "enqueued_at")
    )
    return Delivery(
        MessageId(lane.number, entry.number),
        receipts.encode(lane.incarnation, lane.secret, lane.number, entry.number, entry.delivery),
        body if isinstance(body, bytes) else b"",
        attributes if isinstance(attributes, str) else None,
        entry.delivery,
        enqueued_at if isinstance(enqueued_at, int) else 0,
        entry.first_delivered_at,
        entry.visible_at,
        origin if isinstance(origin, str) else None,
        group,
    )


async def replay(lane: Lane, waiting: Waiting) -> bool:
    """Gives once more what a receive with the same attempt was given, while all of it is hidden and untouched. The
    receipts are the same; the time-out begins anew."""
    attempt = waiting.ask.attempt
    marks = await read_on(lane)
    await look(lane)
    at = await present(lane, marks)
    visibility_ms = waiting.ask.visibility_ms
    if visibility_ms is None:
        visibility_ms = lane.settings.visibility_timeout_ms
    given: dict[str, list[Entry]] = {}

    def renewing(group: str) -> Edit:
        def renew(state: State) -> State | None:
            late = at.later(lane.clock.now())
            mine = [entry for entry in state.touched.values() if entry.attempt == attempt and entry.settled is None]
            if not mine or any(remaining(lane, group, entry, late) <= 0 for entry in mine):
                return None
            fresh = {
                entry.number: entry._replace(visible_at=late.now_ms + visibility_ms, duration=visibility_ms)
                for entry in mine
            }
            given[group] = list(fresh.values())
            return state.changed(fresh)

        return renew

    groups = [
        group
        for group, state in lane.view.states.items()
        if any(entry.attempt == attempt for entry in state.touched.values())
    ]
    outcomes = await edit(lane, {group: renewing(group) for group in groups}, sure=False)
    won = [group for group, outcome in outcomes.items() if isinstance(outcome, State)]
    bodies = await bodies_of(lane, [entry.number for group in won for entry in given[group]])
    for group in won:
        hand_out(lane, group, waiting, given[group], bodies)
    return bool(won)
