"""W3–W9, R8: what is due is processed, none of it too early, by one holder of a shard at a time; nothing is passed."""

from __future__ import annotations

from collections import defaultdict

from angelhair import limits
from angelhair.simulation.checkers.drains import drains
from angelhair.simulation.checkers.incarnations import incarnations
from angelhair.simulation.checkers.total_queue import total_queue
from angelhair.simulation.checkers.unique_receipts import unique_receipts
from angelhair.simulation.history import CONFIRMED, REFUSED, Settled
from angelhair.simulation.timeline_history import Given, Shard, Taken
from angelhair.simulation.timeline_outcome import TimelineOutcome

MILLISECOND_US = 1_000
DRIFT = 1_000
"""Monotonic clocks are wrong by less than one part in so many."""

BELIEVED_US = 2 * limits.CLOCK_ERROR_MS * MILLISECOND_US
"""How far ahead of the store's a wall clock may be that its server believes (R5): so far when it was last compared, and
as much that it has jumped since."""


def due_times(outcome: TimelineOutcome) -> list[str]:
    """Nothing is given before it is due, within what the clock of the server that gave it was ever wrong by, as far as
    that may be believed; and any clock, if a server reckoned the due time: one that was suspended is behind, and cannot
    know before it compares again."""
    history = outcome.history
    due_us = {
        put.body: put.due_us - (history.largest_skew_us if put.by_delay else 0) for put in history.due_puts()
    }
    return [
        f"{given.id}: {given.body} was given at {given.answered_us} us and is due at {due_us[given.body]} us"
        for given in history.given()
        if given.body in due_us
        and given.answered_us + min(given.skew_us, BELIEVED_US) + outcome.node_skew_us + MILLISECOND_US
        < due_us[given.body]
    ]


def shard_rows(outcome: TimelineOutcome) -> list[str]:
    """W6: fence, mark and checkpoint of a shard only rise; only who names the current fence moves the checkpoint."""
    return list(outcome.history.shard_faults)


def checkpoints(outcome: TimelineOutcome) -> list[str]:
    """W6: what a checkpoint passes was acked, or is safe elsewhere. What was not confirmed there was put again."""
    history = outcome.history
    confirmed = {put.id for put in history.puts if put.outcome == CONFIRMED}
    acked = _first_acks(outcome)
    return [
        f"the checkpoint of shard {passed.shard[1]} passed {passed.id}, {passed.body}, at {passed.at_us} us"
        for passed in history.passed
        if (passed.id in confirmed or passed.deliveries or passed.sent_back)
        and acked.get(passed.body, passed.at_us + 1) > passed.at_us
    ]


def sent_back(outcome: TimelineOutcome) -> list[str]:
    """R7: a dead letter is crossed off when it is in the timeline again, and not before; or was acked there by then."""
    acked = _first_acks(outcome)
    return [
        f"the dead letter {sent.id}, {sent.body}, was crossed off at {sent.at_us} us and is in no timeline"
        for sent in outcome.history.sent_back
        if acked.get(sent.body, sent.at_us + 1) > sent.at_us
    ]


def window(outcome: TimelineOutcome) -> list[str]:
    """What is given of a shard beyond its checkpoint is bounded, and so is what each change of hands has done twice:
    what one holder has heard to be done it does not give again."""
    history = outcome.history
    done: dict[tuple[Shard, str], list[tuple[int, int]]] = defaultdict(list)
    by_receipt = {given.receipt: given for given in history.given()}
    for ack in history.acks:
        if ack.outcome == CONFIRMED and (given := by_receipt.get(ack.receipt)):
            done[given.shard, given.id].append((ack.ended_us, given.fence))
    violations = list(history.windows)
    again: dict[tuple[Shard, int], set[str]] = defaultdict(set)
    for given in history.given():
        before = [fence for ended_us, fence in done.get((given.shard, given.id), ()) if ended_us < given.asked_us]
        if given.fence in before:
            violations.append(f"{given.id} was acked under fence {given.fence} and given again under it")
        elif before:
            again[given.shard, given.fence].add(given.id)
    return violations + [
        f"shard {shard[1]}: {len(ids)} messages were done before fence {fence} and again under it"
        for (shard, fence), ids in again.items()
        if len(ids) > outcome.played.base.bounds["TIMELINE_WINDOW"]
    ]


def emergency_stop(outcome: TimelineOutcome) -> list[str]:
    """W9: who was asked when its lock had lapsed and gone to another gives nothing. A machine that was suspended cannot
    know, and one that is halted may answer what it had decided before."""
    lapsed: dict[Shard, list[Taken]] = defaultdict(list)
    for taken in outcome.history.taken:
        if taken.lapsed:
            lapsed[taken.shard].append(taken)
    return [
        f"{given.id} was given by {given.server} under fence {given.fence}, asked at {given.asked_us} us, "
        f"though fence {taken.fence} was taken at {taken.at_us} us"
        for given in outcome.history.given()
        if given.steady
        for taken in lapsed[given.shard]
        if taken.fence > given.fence and taken.at_us < given.asked_us
    ]


def shard_order(outcome: TimelineOutcome) -> list[str]:
    """R8: under one fence, what was confirmed where it lies is given first in the order of time: a holder that has
    passed it has missed it, as one that skips the rest of a minute would."""
    confirmed = {put.id for put in outcome.history.puts if put.outcome == CONFIRMED}
    firsts: dict[tuple[Shard, int], list[Given]] = defaultdict(list)
    for given in outcome.history.given():
        if given.number == 1 and given.id in confirmed:
            firsts[given.shard, given.fence].append(given)
    violations = []
    for (shard, fence), found in firsts.items():
        found.sort(key=lambda given: given.answered_us)
        highest: list[tuple[int, str]] = []
        for given in found:
            # The latest key among answers that were over before this one was asked for.
            while highest and len(highest) > 1 and highest[1][0] < given.asked_us:
                highest.pop(0)
            key = given.id.partition("-")[2]
            if highest and highest[0][0] < given.asked_us and key < highest[0][1]:
                violations.append(
                    f"shard {shard[1]}, fence {fence}: {given.id} was given at {given.answered_us} us, after "
                    f"{highest[0][1]}, which is later"
                )
            highest.append((given.answered_us, max(key, highest[-1][1] if highest else key)))
    return violations


def hidden(outcome: TimelineOutcome) -> list[str]:
    """A2: one holder gives a message again only when its time-out is over, or it was given back. And what is given is
    given no more often than allowed."""
    history, most = outcome.history, outcome.settings.max_deliveries
    changed = {change.receipt for change in history.changes if change.outcome != REFUSED}
    violations = []
    last: dict[tuple[Shard, int, str], Given] = {}
    for given in sorted(history.given(), key=lambda given: (given.shard, given.fence, given.id, given.number)):
        if most is not None and given.number > most:
            violations.append(f"{given.id} was delivered {given.number} times")
        place = (given.shard, given.fence, given.id)
        before = last.get(place)
        last[place] = given
        if before is None or before.receipt in changed:
            continue
        hidden_us = before.visibility_ms * MILLISECOND_US
        until_us = before.asked_us + hidden_us - hidden_us // DRIFT - 2 * MILLISECOND_US
        if given.answered_us < until_us:
            violations.append(f"{given.id}: hidden until {until_us} us, delivered again at {given.answered_us} us")
    return violations


def _first_acks(outcome: TimelineOutcome) -> dict[str, int]:
    """By body, when the first ack of it began that was not refused; or only because the queue was deleted meanwhile:
    then it may have come before that."""
    history = outcome.history
    bodies = {delivery.receipt: delivery.body for delivery in history.deliveries}
    deleted = [cleared for cleared in history.cleared if cleared.deleted]
    first: dict[str, int] = {}
    for ack in history.acks:
        meanwhile = any(
            cleared.queue == ack.queue
            and cleared.started_us < ack.ended_us
            and (cleared.ended_us is None or cleared.ended_us > ack.started_us)
            for cleared in deleted
        )
        if (ack.outcome != REFUSED or meanwhile) and ack.receipt in bodies:
            _earlier(first, bodies[ack.receipt], ack)
    return first


def _earlier(first: dict[str, int], body: str, ack: Settled) -> None:
    first[body] = min(first.get(body, ack.started_us), ack.started_us)


TIMELINE_CHECKERS = (
    total_queue, unique_receipts, incarnations, drains, due_times, shard_rows, checkpoints, sent_back, window,
    emergency_stop, shard_order, hidden,
)
