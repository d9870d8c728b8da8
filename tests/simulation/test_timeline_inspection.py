"""The witness of shards, which feeds the checkers of timelines, sees rows that go wrong at the instant they do."""

from __future__ import annotations

from typing import Any

import pytest

from angelhair.engine import places
from angelhair.engine.store import Change, Row, RowChange
from angelhair.model import uuid_text
from angelhair.simulation import NO_FAULTS, World
from angelhair.simulation.timeline_history import Given, TimelineHistory
from angelhair.simulation.timeline_inspection import NAMED, ShardWitness
from angelhair.simulation.variation import bounds_in_force

INCARNATION = "0" * 32
LANE = 0
HELD = {"holder": "h", "fence": 1}


def key(due_ms: int) -> str:
    return uuid_text(due_ms << 80)


class Bench:
    """A shard whose row a test sets as it likes."""

    def __init__(self) -> None:
        self.cluster = World(0, NO_FAULTS).cluster
        self.history = TimelineHistory()
        self.witness = ShardWitness(self.cluster, self.history)

    def change(self, expect: dict[str, Any] | None = None, /, **values: Any) -> None:
        row = RowChange(places.SHARD_ROW, expect or {}, values)
        self.cluster.change(Change(places.shard(INCARNATION, LANE), [row]))

    def write(self, due_ms: int, body: bytes, lane: int = LANE, deliveries: int = 0) -> None:
        row = Row(key(due_ms), {"body": body, "due": due_ms, "deliveries": deliveries})
        self.cluster.write(places.dues(INCARNATION, lane, 0), [row], 1, 0, None)

    def give(self, due_ms: int, fence: int = 1) -> None:
        identity = f"{LANE}-{key(due_ms)}"
        self.witness.give(
            Given("work", "s", identity, "m", 1, "", 0, 0, 0, "", shard=(INCARNATION[:NAMED], LANE), fence=fence)
        )


def taken() -> Bench:
    bench = Bench()
    bench.change(holder="h", consumer="c", fence=1, mark=100)
    bench.write(10, b"m1")
    bench.write(20, b"m2")
    return bench


def test_w6_a_shard_that_is_worked_off_has_no_fault() -> None:
    bench = taken()
    bench.change(HELD, last=key(15))
    bench.change(HELD, last=key(30), mark=200)
    bench.change(HELD, holder=None)
    bench.change({"holder": None, "fence": 1}, holder="i", consumer="d", fence=2)
    assert bench.history.shard_faults == []
    assert [(passed.body, passed.id) for passed in bench.history.passed] == [
        ("m1", f"0-{key(10)}"), ("m2", f"0-{key(20)}")
    ]
    assert [(one.fence, one.lapsed) for one in bench.history.taken] == [(1, False), (2, False)]


def test_w5_a_lock_that_lapsed_is_told_from_one_that_was_given_back_or_kept() -> None:
    bench = taken()
    bench.change(HELD, holder="i", consumer="c", fence=2)
    bench.change({"fence": 2}, holder="j", consumer="d", fence=3)
    assert [(one.fence, one.lapsed) for one in bench.history.taken] == [(1, False), (2, False), (3, True)]


def test_w5_a_lock_that_is_taken_before_it_has_lapsed_is_a_fault() -> None:
    for waited_us, faults in ((10_000_000, 0), (9_000_000, 1)):
        bench = Bench()
        bench.change(holder="h", consumer="c", fence=1, mark=100, duration=10_000)
        bench.cluster.scheduler.leap(waited_us)
        bench.change(HELD, holder="i", consumer="d", fence=2)
        assert len(bench.history.shard_faults) == faults


@pytest.mark.parametrize(
    ("expect", "values", "fault"),
    [
        (HELD, {"fence": 0}, "fence fell from 1 to 0"),
        (HELD, {"mark": 99}, "mark fell from 100 to 99"),
        (HELD, {"mark": None}, "mark fell from 100 to None"),
        (HELD, {"last": key(4)}, f"last fell from {key(5)} to {key(4)}"),
        (HELD, {"holder": "i"}, "taken without a new fence, 1"),
        ({"holder": "h"}, {"last": key(6)}, f"last moved to {key(6)} by who does not say under which fence"),
        (None, {"last": key(6)}, f"last moved to {key(6)} by who does not say under which fence"),
        (HELD, {"last": key(101)}, f"last moved to {key(101)}, beyond the mark 100"),
    ],
)
def test_w6_a_row_that_goes_wrong_is_a_fault(expect: dict[str, Any] | None, values: dict[str, Any], fault: str) -> None:
    bench = taken()
    bench.change(HELD, last=key(5))
    bench.change(expect, **values)
    assert bench.history.shard_faults == [f"shard 0 at 0 us: {fault}"]


def test_w6_what_is_due_later_again_or_dead_may_be_passed() -> None:
    bench = taken()
    bench.write(70, b"m1", lane=1, deliveries=1)
    bench.cluster.write(places.bodies("1" * 32, 0, 0), [Row(0, {"body": b"m2"})], 1, 0, None)
    bench.change(HELD, last=key(50))
    assert bench.history.passed == []
    bench.write(60, b"m3")
    bench.write(40, b"m3", deliveries=1)
    bench.change(HELD, last=key(65))
    assert [passed.body for passed in bench.history.passed] == ["m3"], "the other one is behind the checkpoint"


def test_r7_a_dead_letter_is_nobodys_safety_once_it_went_back_and_has_to_be_due_by_then() -> None:
    bench = taken()
    dead, states = places.bodies("1" * 32, 0, 0), places.states("1" * 32, 0, 0)

    def cross_off(number: int) -> None:
        bench.cluster.change(Change(states, [RowChange(number, {}, {"moving_to": "moved/a/work/i/0/7"})]))
        bench.cluster.change(Change(states, [RowChange(number, {}, {"settled": "moved"})]))

    bench.cluster.write(dead, [Row(0, {"body": b"m1"}), Row(1, {"body": b"m3"})], 1, 0, None)
    cross_off(0)
    assert bench.history.sent_back == [], "it is still ahead of the checkpoint"
    bench.cluster.write(dead, [Row(0, {"body": b"m1"})], 1, 0, None)
    bench.change(HELD, last=key(15))
    assert [(passed.body, passed.sent_back) for passed in bench.history.passed] == [("m1", True)]
    cross_off(1)
    assert [(sent.id, sent.body) for sent in bench.history.sent_back] == [("0-1", "m3")]
    assert bench.witness.returning == {"m1", "m3"}


def test_r8_a_copy_that_is_void_is_nobodys_safety_and_may_be_passed() -> None:
    bench = taken()
    bench.write(70, b"m1", lane=1)
    bench.cluster.write(places.dues(INCARNATION, 1, 0), [Row(key(70), {"body": b"", "void": 1})], 2, 0, None)
    bench.cluster.write(places.dues(INCARNATION, LANE, 0), [Row(key(20), {"body": b"", "void": 1})], 2, 0, None)
    bench.change(HELD, last=key(50))
    assert [passed.body for passed in bench.history.passed] == ["m1"]


def test_w5_the_window_is_counted_beyond_the_checkpoint_and_under_one_fence() -> None:
    bench = taken()
    with bounds_in_force({"TIMELINE_WINDOW": 2}):
        for due_ms in (10, 20, 10):
            bench.give(due_ms)
        bench.change(HELD, last=key(10))
        bench.give(30)
        bench.give(20, fence=2)
        assert bench.history.windows == []
        bench.give(40)
        assert bench.history.windows == ["shard 0, fence 1: 3 given beyond the checkpoint"]
