"""The inspector, which feeds the checkers of marks and of what is left over, sees a lane whose marks are wrong."""

from __future__ import annotations

import pytest

from angelhair.engine import places
from angelhair.engine.marks import POINTER_NAMES
from angelhair.engine.schema import STATES
from angelhair.engine.store import Change, RowChange
from angelhair.model import QueueSettings
from angelhair.simulation import NO_FAULTS, World
from angelhair.simulation.inspection import Inspector, Truth

SETTINGS = QueueSettings(bucket_size=10, history_ms=0)


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
