"""Every checker can speak: a history with one planted violation is noticed by the checker that it is meant for, by no
other, and a clean history by none."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from angelhair.model import QueueSettings
from angelhair.simulation.checkers import CHECKERS
from angelhair.simulation.fair_variation import draw_fair
from angelhair.simulation.history import CONFIRMED, REFUSED, UNKNOWN, Changed, Cleared, Delivered, History, Put, Settled
from angelhair.simulation.outcome import Outcome
from angelhair.simulation.themes import PLAIN

SECOND_US = 1_000_000
VISIBILITY_MS = 10_000
SETTINGS = QueueSettings(
    bucket_size=10, visibility_timeout_ms=VISIBILITY_MS, max_deliveries=3, dead_letter_queue="dead", history_ms=0
)
TENANTS = replace(draw_fair(random.Random(0), PLAIN, calm=True), settings=SETTINGS, calm=False)
"""What was played, with tenants: so that every checker looks."""


def put(number: int, at_s: float, outcome: str = CONFIRMED, key: str | None = None, delay_ms: int = 0) -> Put:
    start_us = int(at_s * SECOND_US)
    identity = f"0-{number}" if outcome == CONFIRMED else None
    return Put("work", f"m{number}", key, delay_ms, start_us, start_us + 1_000, outcome, identity)


def delivered(number: int, at_s: float, times: int = 1, queue: str = "work", identity: str | None = None) -> Delivered:
    start_us = int(at_s * SECOND_US)
    identity = identity or f"0-{number}"
    receipt = f"incarnation0.{queue}.{identity}.{times}"
    origin = f"account/work/0-{number}" if queue == "dead" else ""
    return Delivered(
        queue, "server-1", identity, f"m{number}", times, receipt, start_us, start_us + 1_000, VISIBILITY_MS, origin
    )


def acked(delivery: Delivered, at_s: float, outcome: str = CONFIRMED) -> Settled:
    start_us = int(at_s * SECOND_US)
    return Settled(delivery.queue, delivery.receipt, start_us, start_us + 1_000, outcome)


def extension(delivery: Delivered, at_s: float, outcome: str = CONFIRMED) -> Changed:
    """For as long again as a delivery hides a message."""
    return Changed(delivery.queue, delivery.receipt, VISIBILITY_MS, int(at_s * SECOND_US), outcome)


def note_ack(history: History, ack: Settled) -> None:
    """As the store saw it: what was confirmed happened."""
    history.asked_acks[ack.receipt] += 1
    if ack.outcome == CONFIRMED:
        history.true_acks.add(ack.receipt)


def clean() -> History:
    """Messages of every fate: acked at once, at the second delivery, twice, after an extension, moved, unheard of."""
    history = History(operations=20)
    history.puts = [
        put(1, 1), put(2, 1), put(3, 1), put(4, 1), put(5, 1, key="k5"), put(5, 2, key="k5"),
        put(6, 1, UNKNOWN), put(7, 1, REFUSED), put(8, 1, delay_ms=5_000), put(9, 1, UNKNOWN),
    ]
    once, again, late = delivered(1, 2), delivered(2, 2), delivered(2, 13, 2)
    extended = delivered(3, 2)
    dead = [delivered(4, 2 + 11 * round_number, round_number + 1) for round_number in range(3)]
    moved = delivered(4, 40, queue="dead", identity="0-0")
    keyed, unknown, delayed = delivered(5, 3), delivered(6, 3), delivered(8, 6.5)
    history.deliveries = [once, again, late, extended, *dead, moved, keyed, unknown, delayed]
    history.changes = [extension(extended, 3)]
    history.acks = [
        acked(once, 2.5), acked(once, 2.6), acked(late, 13.5), acked(again, 14, REFUSED), acked(extended, 15),
        acked(moved, 41), acked(keyed, 4), acked(unknown, 4, UNKNOWN), acked(delayed, 7),
    ]
    for ack in history.acks:
        note_ack(history, ack)
    history.heard = {(delivery.queue, delivery.body) for delivery in history.deliveries}
    return history


def outcome_of(history: History) -> Outcome:
    return Outcome(0, "work", "dead", SETTINGS, history, {}, 0, variation=TENANTS)


def speaking(outcome: Outcome) -> list[str]:
    return [checker.__name__ for checker in CHECKERS if checker(outcome)]


def lost(history: History) -> None:
    history.puts.append(put(20, 1))


def lost_on_its_way(history: History) -> None:
    history.heard.discard(("work", "m1"))


def undone(history: History) -> None:
    history.deliveries.append(delivered(7, 3))


def unexpected(history: History) -> None:
    history.deliveries.append(delivered(30, 3))


def receipt_twice(history: History) -> None:
    history.deliveries.append(replace(history.deliveries[0], server="server-2"))


def stale_receipt_wins(history: History) -> None:
    history.acks.append(acked(history.deliveries[1], 14))
    note_ack(history, history.acks[-1])


def delivered_after_its_ack(history: History) -> None:
    history.deliveries.append(delivered(1, 30, 2))


def visible_too_early(history: History) -> None:
    history.deliveries.append(delivered(6, 11, 2))


def visible_in_spite_of_an_extension(history: History) -> None:
    history.changes.append(extension(history.deliveries[1], 7))


def visible_too_early_though_rewritten(history: History) -> None:
    visible_too_early(history)
    first = next(delivery for delivery in history.deliveries if delivery.body == "m6")
    history.changes.append(replace(extension(first, 4), visibility_ms=None))


def moved_while_hidden(history: History) -> None:
    """The last of three deliveries was at 24 s, the dead letter came at 40 s."""
    history.changes.append(extension(history.deliveries[6], 33))


def delivered_before_its_delay(history: History) -> None:
    history.deliveries[-1] = delivered(8, 5)


def mark_fell(history: History) -> None:
    history.mark_faults.append("lane 0: reader fell from 3 to 2")


def never_drained(history: History) -> None:
    history.undrained.append("m1")


def never_dropped(history: History) -> None:
    history.leftovers.append("lane 0: 3 buckets are full and settled, 2 are dropped")


def key_confirmed_twice(history: History) -> None:
    history.puts.append(replace(put(5, 3, key="k5"), id="0-15"))


def key_delivered_twice(history: History) -> None:
    history.deliveries.append(delivered(5, 3, identity="0-15"))


def delivered_too_often(history: History) -> None:
    history.deliveries.append(delivered(4, 35, 4))


def arrived_twice(history: History) -> None:
    history.deliveries.append(delivered(4, 60, queue="dead", identity="0-1"))


def acked_and_moved(history: History) -> None:
    history.acks.append(acked(history.deliveries[6], 39))
    note_ack(history, history.acks[-1])


def called_invalid(history: History) -> None:
    history.bad_receipts.append("a receipt that was issued")


def confirmed_and_never_done(history: History) -> None:
    history.true_acks.discard(history.acks[0].receipt)


def denied_and_done(history: History) -> None:
    delivery = delivered(9, 3)
    history.deliveries.append(delivery)
    history.heard.add(("work", "m9"))
    history.acks.append(replace(acked(delivery, 4, REFUSED), denied=True))
    note_ack(history, history.acks[-1])
    history.true_acks.add(delivery.receipt)


def from_the_deleted_queue(history: History) -> None:
    history.cleared.append(Cleared("work", 50 * SECOND_US, 51 * SECOND_US, deleted=True))
    history.deliveries.append(replace(delivered(6, 60), body="m1", id="0-1", receipt="incarnation1.work.0-1.1"))


def overtaken(history: History) -> None:
    """Of one group, the later one was delivered and the earlier one after it."""
    history.puts += [put(20, 1), put(21, 1)]
    history.deliveries += [replace(delivered(21, 50), group="g"), replace(delivered(20, 52), group="g")]
    history.heard.update({("work", "m20"), ("work", "m21")})


def delivered_as_more_urgent_than_it_is(history: History) -> None:
    history.deliveries[0] = replace(history.deliveries[0], priority=1)


PLANTED: list[tuple[Callable[[History], None], str]] = [
    (lost, "total_queue"),
    (lost_on_its_way, "total_queue"),
    (undone, "total_queue"),
    (unexpected, "total_queue"),
    (receipt_twice, "unique_receipts"),
    (stale_receipt_wins, "one_winner"),
    (delivered_after_its_ack, "ack_finality"),
    (visible_too_early, "visibility"),
    (visible_in_spite_of_an_extension, "visibility"),
    (visible_too_early_though_rewritten, "visibility"),
    (delivered_before_its_delay, "visibility"),
    (mark_fell, "marks"),
    (never_drained, "drains"),
    (never_dropped, "drains"),
    (key_confirmed_twice, "dedup"),
    (key_delivered_twice, "dedup"),
    (delivered_too_often, "dead_letters"),
    (arrived_twice, "dead_letters"),
    (acked_and_moved, "dead_letters"),
    (moved_while_hidden, "dead_letters"),
    (from_the_deleted_queue, "incarnations"),
    (called_invalid, "unique_receipts"),
    (confirmed_and_never_done, "true_acks"),
    (denied_and_done, "true_acks"),
    (overtaken, "group_order"),
    (delivered_as_more_urgent_than_it_is, "turns"),
]

OF_FIFO = {"run_order"}
"""Silent about all other queues: what it has to notice is planted in test_fifo_checkers.py."""


def test_a_clean_history_leaves_every_checker_silent() -> None:
    assert speaking(outcome_of(clean())) == []


@pytest.mark.parametrize(("plant", "checker"), PLANTED, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_violation_is_noticed_by_its_checker_alone(plant: Callable[[History], None], checker: str) -> None:
    history = clean()
    plant(history)
    assert speaking(outcome_of(history)) == [checker]


def test_every_checker_has_a_violation_that_it_notices() -> None:
    assert {checker for _, checker in PLANTED} | OF_FIFO == {checker.__name__ for checker in CHECKERS}


def purged(history: History) -> None:
    """A purge may have taken what was put before it."""
    history.puts.append(put(20, 1))
    history.cleared.append(Cleared("work", 50 * SECOND_US, None, deleted=False))


def redelivered_within_the_clocks_error(history: History) -> None:
    history.largest_skew_us = SECOND_US
    history.deliveries.append(delivered(6, 11.5, 2))


def asked_for_before_the_ack(history: History) -> None:
    """A delivery that was under way when the ack came in."""
    history.deliveries.append(replace(delivered(1, 2.5, 2), visibility_ms=0))
    history.deliveries[0] = replace(history.deliveries[0], visibility_ms=0)


def denied_once_and_done_by_another_try(history: History) -> None:
    denied_and_done(history)
    history.asked_acks[history.acks[-1].receipt] += 1


def extended_perhaps(history: History) -> None:
    visible_in_spite_of_an_extension(history)
    history.changes[-1].outcome = UNKNOWN


def extended_and_released(history: History) -> None:
    moved_while_hidden(history)
    history.changes.append(replace(extension(history.deliveries[6], 34), visibility_ms=0))


EXPLAINED = [
    purged, redelivered_within_the_clocks_error, asked_for_before_the_ack, denied_once_and_done_by_another_try,
    extended_perhaps, extended_and_released,
]


@pytest.mark.parametrize("plant", EXPLAINED)
def test_what_a_fault_explains_is_no_violation(plant: Callable[[History], None]) -> None:
    history = clean()
    plant(history)
    assert speaking(outcome_of(history)) == []


@pytest.mark.parametrize(
    ("ended_s", "outcome", "accused"),
    [
        pytest.param(60, CONFIRMED, False, id="confirmed after it: the message may be in both queues"),
        pytest.param(0, UNKNOWN, False, id="never answered: its server may still be about it"),
        pytest.param(40, CONFIRMED, True, id="confirmed before it"),
        pytest.param(40, UNKNOWN, True, id="answered before it, if with an unknown outcome"),
    ],
)
def test_a_put_that_outlasts_a_deletion_may_be_in_both_queues(ended_s: int, outcome: str, accused: bool) -> None:
    history = clean()
    acked_and_moved(history)
    (place,) = [place for place, put in enumerate(history.puts) if put.body == history.deliveries[6].body]
    history.puts[place] = replace(history.puts[place], ended_us=ended_s * SECOND_US, outcome=outcome)
    history.cleared.append(Cleared("work", 50 * SECOND_US, 51 * SECOND_US, deleted=True))
    assert ("dead_letters" in speaking(outcome_of(history))) is accused
