"""Every checker of timelines can speak: a history with one planted violation is noticed by the checker that it is meant
for, by no other, and a clean history by none."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from angelhair.model import TIMELINE, QueueSettings
from angelhair.simulation.checkers.timelines import TIMELINE_CHECKERS
from angelhair.simulation.history import CONFIRMED, REFUSED, Changed, Cleared, Settled
from angelhair.simulation.themes import PLAIN
from angelhair.simulation.timeline_history import DuePut, Given, Passed, SentBack, Shard, Taken, TimelineHistory
from angelhair.simulation.timeline_outcome import TimelineOutcome
from angelhair.simulation.timeline_variation import draw_timeline

SECOND_US = 1_000_000
HIDDEN_MS = 10_000
WINDOW = 3
SHARD: Shard = ("incarnation0", 0)
SETTINGS = QueueSettings(
    kind=TIMELINE, lanes=1, visibility_timeout_ms=HIDDEN_MS, max_deliveries=3, dead_letter_queue="dead"
)
PLAYED = draw_timeline(random.Random(0), PLAIN)
PLAYED = replace(PLAYED, base=replace(PLAYED.base, settings=SETTINGS, bounds={"TIMELINE_WINDOW": WINDOW}))


def put(number: int, at_s: float, due_s: float | None = None, by_delay: bool = False) -> DuePut:
    start_us = int(at_s * SECOND_US)
    due_us = int((at_s if due_s is None else due_s) * SECOND_US)
    return DuePut(
        "work", f"m{number}", None, 0, start_us, start_us + 1_000, CONFIRMED, f"0-{number}", due_us=due_us,
        by_delay=by_delay,
    )


def given(
    number: int, at_s: float, times: int = 1, fence: int = 1, skew_us: int = 0, steady: bool = True
) -> Given:
    start_us = int(at_s * SECOND_US)
    return Given(
        "work", f"server-{fence}", f"0-{number}", f"m{number}", times, f"incarnation0.0-{number}.{fence}.{times}",
        start_us, start_us + 1_000, HIDDEN_MS, "", shard=SHARD, fence=fence, skew_us=skew_us, steady=steady,
    )


def acked(delivery: Given, at_s: float, outcome: str = CONFIRMED) -> Settled:
    start_us = int(at_s * SECOND_US)
    return Settled(delivery.queue, delivery.receipt, start_us, start_us + 1_000, outcome)


def clean() -> TimelineHistory:
    """Four messages, given in order; the third is given again when its holder has died."""
    deliveries = [given(number, 20 + number) for number in range(1, 4)]
    again = given(3, 60, 1, fence=2)
    history = TimelineHistory(
        puts=[put(number, number, due_s=10) for number in range(1, 5)],
        deliveries=[*deliveries, again, given(4, 61, 1, fence=2)],
        taken=[Taken(SHARD, 1, 5 * SECOND_US, False), Taken(SHARD, 2, 50 * SECOND_US, True)],
    )
    history.acks = [acked(delivery, 30) for delivery in deliveries] + [
        acked(delivery, 65) for delivery in history.given() if delivery.fence == 2
    ]
    history.heard = {("work", delivery.body) for delivery in history.deliveries}
    history.passed = [Passed(SHARD, "0-1", "m1", 31 * SECOND_US, 0)]
    return history


def judged(history: TimelineHistory) -> dict[str, list[str]]:
    outcome = TimelineOutcome(
        seed=0, queue="work", dead_letter_queue="dead", settings=SETTINGS, history=history, faults={}, steps=0,
        played=PLAYED,
    )
    return {checker.__name__: found for checker in TIMELINE_CHECKERS if (found := checker(outcome))}


def test_a_clean_history_is_clean() -> None:
    assert judged(clean()) == {}


def _lost(history: TimelineHistory) -> None:
    history.puts.append(put(9, 1))


def _receipt_twice(history: TimelineHistory) -> None:
    history.deliveries.append(replace(history.deliveries[-1], number=2, answered_us=80 * SECOND_US))


def _old_incarnation(history: TimelineHistory) -> None:
    history.cleared.append(Cleared("work", 40 * SECOND_US, 41 * SECOND_US, True))
    history.deliveries[:] = [delivery for delivery in history.deliveries if delivery.id != "0-4"]


def _undrained(history: TimelineHistory) -> None:
    history.undrained.append("m4")


def _too_early(history: TimelineHistory) -> None:
    history.puts[1] = put(2, 2, due_s=23)


def _fence_fell(history: TimelineHistory) -> None:
    history.shard_faults.append("shard 0: fence fell")


def _passed(history: TimelineHistory) -> None:
    history.passed.append(Passed(SHARD, "0-4", "m4", 64 * SECOND_US, 0))


def _passed_on_a_refused_ack(history: TimelineHistory) -> None:
    history.passed.append(Passed(SHARD, "0-4", "m4", 66 * SECOND_US, 0))
    history.acks[-1] = replace(history.acks[-1], outcome=REFUSED)


def _set_aside_and_passed(history: TimelineHistory) -> None:
    history.puts.append(put(5, 3))
    history.heard.add(("work", "m5"))
    history.passed.append(Passed(SHARD, "0-7", "m5", 66 * SECOND_US, 1))


def _sent_back_and_passed(history: TimelineHistory) -> None:
    history.puts.append(put(5, 3))
    history.heard.add(("work", "m5"))
    history.passed.append(Passed(SHARD, "0-7", "m5", 66 * SECOND_US, 0, True))


def _crossed_off(history: TimelineHistory) -> None:
    history.puts.append(put(5, 3))
    history.heard.add(("work", "m5"))
    history.sent_back.append(SentBack("0-7", "m5", 66 * SECOND_US))


def _window(history: TimelineHistory) -> None:
    history.windows.append("shard 0, fence 1: 4 given beyond the checkpoint")


def _acked_and_given_again(history: TimelineHistory) -> None:
    history.deliveries.append(given(1, 45, 2))


def _too_many_twice(history: TimelineHistory) -> None:
    more = [given(number, 25 + number / 10) for number in range(5, 9)]
    history.puts += [put(number, 4) for number in range(5, 9)]
    history.heard |= {("work", f"m{number}") for number in range(5, 9)}
    history.acks += [acked(delivery, 35) for delivery in more]
    history.deliveries += [*more, *(given(number, 62 + number / 10, 1, fence=2) for number in range(5, 9))]


def _old_holder(history: TimelineHistory) -> None:
    history.puts.append(put(5, 3))
    history.deliveries.append(given(5, 51))
    history.heard.add(("work", "m5"))


def _out_of_order(history: TimelineHistory) -> None:
    history.puts.append(put(0, 3))
    history.deliveries.append(given(0, 40))
    history.heard.add(("work", "m0"))


def _again_too_soon(history: TimelineHistory) -> None:
    history.acks = history.acks[1:]
    history.passed.clear()
    history.deliveries.append(given(1, 25, 2))


def _too_often(history: TimelineHistory) -> None:
    history.deliveries[-1] = replace(given(4, 61, 4, fence=2), receipt=history.deliveries[-1].receipt)


@pytest.mark.parametrize(
    ("plant", "checker"),
    [
        (_lost, "total_queue"), (_receipt_twice, "unique_receipts"), (_old_incarnation, "incarnations"),
        (_undrained, "drains"), (_too_early, "due_times"), (_fence_fell, "shard_rows"), (_passed, "checkpoints"),
        (_passed_on_a_refused_ack, "checkpoints"), (_set_aside_and_passed, "checkpoints"),
        (_sent_back_and_passed, "checkpoints"), (_crossed_off, "sent_back"), (_window, "window"),
        (_acked_and_given_again, "window"), (_too_many_twice, "window"), (_old_holder, "emergency_stop"),
        (_out_of_order, "shard_order"), (_again_too_soon, "hidden"), (_too_often, "hidden"),
    ],
)
def test_a_planted_violation_is_noticed_by_its_checker_alone(
    plant: Callable[[TimelineHistory], None], checker: str
) -> None:
    history = clean()
    plant(history)
    assert list(judged(history)) == [checker]


def test_w6_an_ack_that_is_refused_because_the_queue_was_deleted_meanwhile_may_have_come_before() -> None:
    history = clean()
    _passed_on_a_refused_ack(history)
    began_us, ended_us = history.acks[-1].started_us, history.acks[-1].ended_us
    before, after = Cleared("work", began_us - 2, began_us - 1, True), Cleared("work", ended_us + 1, None, True)
    purged, elsewhere = Cleared("work", began_us, None, False), Cleared("dead", began_us, None, True)
    for cleared in (before, after, purged, elsewhere):
        history.cleared = [cleared]
        assert "checkpoints" in judged(history)
    for ended_us_of_the_deletion in (None, began_us + 1):
        history.cleared = [Cleared("work", began_us - 2, ended_us_of_the_deletion, True)]
        assert "checkpoints" not in judged(history)


def test_w4_a_clock_that_is_wrong_excuses_what_is_early() -> None:
    history = clean()
    _too_early(history)
    history.deliveries[1] = replace(history.deliveries[1], skew_us=2 * SECOND_US)  # type: ignore[type-var]
    assert judged(history) == {}
    history = clean()
    history.puts[1] = put(2, 2, due_s=23, by_delay=True)
    history.largest_skew_us = 2 * SECOND_US
    assert judged(history) == {}


def test_r5_a_clock_that_is_wrong_by_more_than_may_be_believed_excuses_nobody() -> None:
    history = clean()
    history.puts[1] = put(2, 2, due_s=22 + 11)
    hour_us = 3_600 * SECOND_US
    history.largest_skew_us = hour_us
    history.deliveries[1] = replace(history.deliveries[1], skew_us=hour_us)  # type: ignore[type-var]
    assert list(judged(history)) == ["due_times"]
    history.puts[1] = put(2, 2, due_s=22 + 9)
    assert judged(history) == {}


def test_w9_who_could_not_know_is_excused() -> None:
    history = clean()
    _old_holder(history)
    history.deliveries[-1] = replace(history.deliveries[-1], steady=False)  # type: ignore[type-var]
    assert judged(history) == {}


def test_w6_what_was_put_again_elsewhere_may_be_passed() -> None:
    history = clean()
    history.passed.append(Passed(SHARD, "0-2500", "m4", 40 * SECOND_US, 0))
    assert judged(history) == {}


def test_a2_what_is_given_back_may_come_at_once() -> None:
    history = clean()
    _again_too_soon(history)
    history.changes.append(Changed("work", history.deliveries[0].receipt, 0, 24 * SECOND_US, CONFIRMED))
    assert judged(history) == {}
