"""Every checker can speak: a history with one planted violation is noticed by the checker that it is meant for, by no
other, and a clean history by none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from angelhair.engine import places
from angelhair.engine.bucketed.lane import POINTER_NAMES
from angelhair.engine.schema import STATES
from angelhair.engine.store import Change, RowChange
from angelhair.model import QueueSettings
from angelhair.simulation import NO_FAULTS, World
from angelhair.simulation.checkers import CHECKERS
from angelhair.simulation.history import CONFIRMED, REFUSED, UNKNOWN, Changed, Cleared, Delivered, History, Put, Settled
from angelhair.simulation.inspection import Inspector, Truth
from angelhair.simulation.outcome import Outcome

SECOND_US = 1_000_000
VISIBILITY_MS = 10_000
SETTINGS = QueueSettings(
    bucket_size=10, visibility_timeout_ms=VISIBILITY_MS, max_deliveries=3, dead_letter_queue="dead", history_ms=0
)


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
    history.changes = [Changed("work", extended.receipt, 3 * SECOND_US)]
    history.acks = [
        acked(once, 2.5), acked(once, 2.6), acked(late, 13.5), acked(again, 14, REFUSED), acked(extended, 15),
        acked(moved, 41), acked(keyed, 4), acked(unknown, 4, UNKNOWN), acked(delayed, 7),
    ]
    for ack in history.acks:
        note_ack(history, ack)
    history.heard = {(delivery.queue, delivery.body) for delivery in history.deliveries}
    return history


def outcome_of(history: History) -> Outcome:
    return Outcome(0, "work", "dead", SETTINGS, history, {}, 0)


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


PLANTED: list[tuple[Callable[[History], None], str]] = [
    (lost, "total_queue"),
    (lost_on_its_way, "total_queue"),
    (undone, "total_queue"),
    (unexpected, "total_queue"),
    (receipt_twice, "unique_receipts"),
    (stale_receipt_wins, "one_winner"),
    (delivered_after_its_ack, "ack_finality"),
    (visible_too_early, "visibility"),
    (delivered_before_its_delay, "visibility"),
    (mark_fell, "marks"),
    (never_drained, "drains"),
    (never_dropped, "drains"),
    (key_confirmed_twice, "dedup"),
    (key_delivered_twice, "dedup"),
    (delivered_too_often, "dead_letters"),
    (arrived_twice, "dead_letters"),
    (acked_and_moved, "dead_letters"),
    (from_the_deleted_queue, "incarnations"),
    (called_invalid, "unique_receipts"),
    (confirmed_and_never_done, "true_acks"),
    (denied_and_done, "true_acks"),
]


def test_a_clean_history_leaves_every_checker_silent() -> None:
    assert speaking(outcome_of(clean())) == []


@pytest.mark.parametrize(("plant", "checker"), PLANTED, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_violation_is_noticed_by_its_checker_alone(plant: Callable[[History], None], checker: str) -> None:
    history = clean()
    plant(history)
    assert speaking(outcome_of(history)) == [checker]


def test_every_checker_has_a_violation_that_it_notices() -> None:
    assert {checker for _, checker in PLANTED} == {checker.__name__ for checker in CHECKERS}


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


EXPLAINED = [
    purged, redelivered_within_the_clocks_error, asked_for_before_the_ack, denied_once_and_done_by_another_try,
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


# ---- the inspector, which feeds the checkers of marks and of what is left over


class Lane:
    """A queue with one lane whose marks a test sets as it likes."""

    def __init__(self) -> None:
        self.world = World(0, NO_FAULTS)
        self.cluster = self.world.cluster
        self.incarnation = "0" * 32
        values = {
            "incarnation": self.incarnation, "secret": b"s", "settings": SETTINGS.to_text(), "lanes": '{"0": "open"}',
            "lanes_made": 1, "status": "active", "created_at": 0, "changed_at": 0, "version": 1,
        }
        self.cluster.change(Change(places.account_queues("account"), [RowChange("work", {}, values)]))
        self.inspector = Inspector(Truth(self.cluster), "account", "work", SETTINGS)

    def set_marks(self, next_id: int, **marks: int) -> None:
        row = RowChange(places.SEQUENCE_ROW, {}, {"next": next_id})
        self.cluster.change(Change(places.sequence(self.incarnation, 0), [row]))
        rows = [RowChange(name, {}, {"value": marks.get(name, 0)}) for name in POINTER_NAMES]
        self.cluster.change(Change(places.pointers(self.incarnation, 0), rows))

    def finish(self, *buckets: int) -> None:
        for bucket in buckets:
            partition = places.states(self.incarnation, 0, bucket)
            assert partition.table is STATES
            self.cluster.change(Change(partition, set_flags={"final": 1, "finished": 1}))

    def look(self) -> list[str]:
        watcher = self.world.processes.get("watcher") or self.world.start("watcher", skew_us=0)
        self.world.run_until_done(watcher.spawn(self.inspector.look()))
        return self.inspector.faults

    def leftovers(self) -> list[str]:
        watcher = self.world.processes["watcher"]
        marks = self.world.run_until_done(watcher.spawn(self.inspector.look()))
        found: list[str] = self.world.run_until_done(watcher.spawn(self.inspector.leftovers(marks)))
        return found


GOOD = {"reader": 4, "final": 3, "settled": 3, "repair": 2, "floor": 1, "dropped": 1}


def test_marks_in_their_order_are_no_fault() -> None:
    lane = Lane()
    lane.finish(1, 2)
    lane.set_marks(45, **GOOD)
    assert lane.look() == []
    lane.set_marks(47, **GOOD | {"reader": 4, "repair": 3})
    assert lane.look() == []


@pytest.mark.parametrize(
    ("marks", "fault"),
    [
        ({"floor": 3}, "lane 0: floor 3 is above repair 2"),
        ({"repair": 4}, "lane 0: repair 4 is above settled 3"),
        ({"settled": 4}, "lane 0: settled 4 is above final 3"),
        ({"final": 5}, "lane 0: final 5 is above reader 4"),
        ({"dropped": 2}, "lane 0: dropped 2 is above floor 1"),
        ({"reader": 6}, "lane 0: reader 6 is above the last bucket 5"),
    ],
)
def test_marks_out_of_order_are_faults(marks: dict[str, int], fault: str) -> None:
    lane = Lane()
    lane.finish(0, 1, 2, 3)
    lane.set_marks(45, **GOOD | marks)
    assert lane.look() == [fault]


def test_a_mark_that_falls_is_a_fault() -> None:
    lane = Lane()
    lane.finish(1)
    lane.set_marks(45, **GOOD)
    lane.look()
    lane.set_marks(45, **GOOD | {"final": 2, "settled": 2})
    assert lane.look() == ["lane 0: final fell from 3 to 2", "lane 0: settled fell from 3 to 2"]


def test_a_repair_mark_above_an_unfinished_bucket_is_a_fault() -> None:
    lane = Lane()
    lane.set_marks(45, **GOOD)
    assert lane.look() == ["lane 0: repair passed bucket 1, which is not finished"]


def test_settled_buckets_that_are_not_dropped_are_left_over() -> None:
    lane = Lane()
    lane.finish(1, 2, 3)
    lane.set_marks(45, reader=4, final=4, settled=4, repair=4, floor=1, dropped=1)
    lane.look()
    assert lane.leftovers() == ["lane 0: 4 buckets are full and settled, 1 are dropped"]
    lane.set_marks(45, reader=4, final=4, settled=4, repair=4, floor=4, dropped=4)
    assert lane.leftovers() == []
