"""D3, D5, R15: locks on slices are honoured, what is given was locked, deleted is deleted, no epoch ends too soon."""

from __future__ import annotations

from angelhair import limits
from angelhair.simulation.checkers.dedup import dedup
from angelhair.simulation.checkers.drains import drains
from angelhair.simulation.checkers.incarnations import incarnations
from angelhair.simulation.checkers.total_queue import total_queue
from angelhair.simulation.databag_outcome import DatabagOutcome
from angelhair.simulation.history import CONFIRMED

MILLISECOND_US = 1_000
DRIFT = 1_000
"""Monotonic clocks are wrong by less than one part in so many."""

BELIEVED_US = 2 * limits.CLOCK_ERROR_MS * MILLISECOND_US
"""How far from the store's a wall clock may be that its server believes (R5): so far when it was last compared, and as
much that it has jumped since."""


def slice_locks(outcome: DatabagOutcome) -> list[str]:
    """D3, R15: nobody locks slices that are locked, whatever partitions it believes in, within what clocks were ever
    wrong by, as far as that may be believed."""
    history = outcome.history
    allowed_us = min(history.largest_skew_us, BELIEVED_US) + outcome.node_skew_us + 2 * MILLISECOND_US
    return [
        f"slices {early.slices} were locked anew at {early.at_us} us, {early.early_us} us early"
        for early in history.early
        if early.early_us > allowed_us + early.duration_ms * MILLISECOND_US // DRIFT
    ]


def given_locked(outcome: DatabagOutcome) -> list[str]:
    """D3: what is given was named in a lock that took effect while it was asked for."""
    history = outcome.history
    return [
        f"{given.id} was given at {given.answered_us} us, and no lock was taken for it since {given.asked_us} us"
        for given in history.deliveries
        if not any(
            given.asked_us <= at_us <= given.answered_us
            for at_us in history.locked.get(int(given.id.partition("-")[2]), ())
        )
    ]


def deleted_for_good(outcome: DatabagOutcome) -> list[str]:
    """D5: no delivery that was asked for after the message's delete had been confirmed. A server that slept while its
    queue was made again may have written the delete to the old one."""
    history = outcome.history
    if any(cleared.deleted for cleared in history.cleared):
        return []
    deleted: dict[str, int] = {}
    for ack in history.acks:
        if ack.outcome == CONFIRMED:
            deleted[ack.receipt] = min(deleted.get(ack.receipt, ack.ended_us), ack.ended_us)
    return [
        f"{given.id} was deleted at {deleted[given.id]} us and asked for at {given.asked_us} us"
        for given in history.deliveries
        if given.asked_us > deleted.get(given.id, given.asked_us)
    ]


def epochs(outcome: DatabagOutcome) -> list[str]:
    """R1, R14: an epoch ends when all that was confirmed in it is deleted; it is sealed, finished, dropped in turn."""
    history = outcome.history
    return [
        *history.epoch_faults,
        *(
            f"{put.body} was confirmed as {put.id}, and not deleted when its epoch ended at "
            f"{history.ended_with[put.id]} us"
            for put in history.puts
            if put.outcome == CONFIRMED and put.id in history.ended_with and not outcome.may_be_cleared(put)
        ),
    ]


def unique_ids(outcome: DatabagOutcome) -> list[str]:
    """A1: no two messages have one id: one would be written in the place of the other."""
    if any(cleared.deleted for cleared in outcome.history.cleared):
        return []
    bodies: dict[str, set[str]] = {}
    for put in outcome.history.puts:
        if put.outcome == CONFIRMED and put.id is not None:
            bodies.setdefault(put.id, set()).add(put.body)
    return [f"{identity} is the id of {sorted(found)}" for identity, found in bodies.items() if len(found) > 1]


def fairness(outcome: DatabagOutcome) -> list[str]:
    """D3: no partition twice before another that had messages once, where nothing goes wrong."""
    return list(outcome.history.passed_over)


def duplicates(outcome: DatabagOutcome) -> list[str]:
    """D7: every duplicate that the store can show is counted, and none besides where nothing goes wrong. What is purged
    or deleted shows nothing any more."""
    history = outcome.history
    counted, shown = history.counted_duplicates, history.shown_duplicates
    calm = outcome.variation is not None and outcome.variation.calm
    if history.cleared or counted == shown or (counted > shown and not calm):
        return []
    return [f"the store has shown {shown}, and {counted} were counted"]


DATABAG_CHECKERS = (
    total_queue, drains, dedup, incarnations, slice_locks, given_locked, deleted_for_good, epochs, unique_ids, fairness,
    duplicates,
)
