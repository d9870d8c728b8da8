"""The truth that all simulated store clients share: what has taken effect, and what still will.

Nothing here waits or fails; each method is one instant. `store.py` decides when, and whether, it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from angelhair.engine.store import APPLIED, Applied, Change, Key, Partition, Refused, Row, Values
from angelhair.simulation.faults import NODE_SKEW_US, STORE_NODES, Faults
from angelhair.simulation.minority import ALL, COPIES_MOST, MEETS, Before, Wanted
from angelhair.simulation.partitions import Partitions
from angelhair.simulation.scheduler import Action, Scheduler
from angelhair.simulation.states import OnOne, PartitionState, Undecided
from angelhair.simulation.trace import Trace

if TYPE_CHECKING:
    from angelhair.simulation.process import Process

UNDECIDED_COMPLETED = "undecided change completed by the next one"
UNDECIDED_SHADOWED = "undecided change completed under a drop"
LATE_WRITE_RESURRECTED = "late write landed after a drop and stayed"
WRITE_SHADOWED = "write shadowed by a drop"
LATE_CHANGE_APPLIED = "late change applied"
LATE_CHANGE_REFUSED = "late change refused"
DROP_LEFT_CELLS = "drop left newer cells"
READ_MET_ONE = "read met what only one replica has"


class Cluster(Partitions):
    """The partitions, the effects that are still to land, and the nodes' clocks."""

    def __init__(self, scheduler: Scheduler, faults: Faults, trace: Trace | None) -> None:
        super().__init__(scheduler, faults)
        self.trace = trace
        self.order = 0
        """Grows with everything that takes effect."""
        self.outage = False
        self.repairs = faults.plan.read_repair
        """Whether a read that meets what only one replica has gives it to the others."""
        self.joins = False
        """Whether a change and writes of other partitions can be made together, as on an embedded store."""
        self.crash_listener: Callable[[Process], None] | None = None
        """Told of every process that crashes at one of its store calls."""
        self.change_listener: Callable[[Change], None] | None = None
        """Told of every conditional change when it takes effect, before it is made."""
        self.write_listener: Callable[[Partition, Sequence[Row]], None] | None = None
        """Told of every row of a plain table that is written, when that takes effect; and before, when one replica has
        it."""
        spread_us = NODE_SKEW_US if faults.plan.skewed else 0
        self.node_skews_us = [scheduler.random.randint(-spread_us, spread_us) for _ in range(STORE_NODES)]
        self._late: dict[int, tuple[Action, Any]] = {}
        self._late_number = 0

    # ---- effects that land later

    def later(self, delay_us: int, action: Action, argument: Any) -> int:
        """Schedules an effect that is still on its way; `flush` can bring it forward."""
        self._late_number = number = self._late_number + 1
        self._late[number] = (action, argument)
        self.scheduler.after(delay_us, self.land_late, number)
        return number

    def land_late(self, number: int) -> None:
        late = self._late.pop(number, None)
        if late is not None:
            action, argument = late
            action(argument)

    @property
    def late_effects(self) -> int:
        """How many effects are still on their way."""
        return len(self._late)

    def flush(self) -> None:
        """Everything that is still on its way lands now, in any order."""
        for number in self._late:
            self.scheduler.after(0, self.land_late, number)

    # ---- reading

    def met(self, state: PartitionState, wanted: Wanted, limit: int) -> tuple[Values, list[Row]]:
        """The flags and a page of rows, as a plain read finds them that may meet what only one replica has."""
        first, last, after, _ = wanted
        undecided = state.undecided
        meets_change = undecided is not None and undecided.on_one and undecided.order > state.dropped_stamp
        if not (state.on_one or meets_change):
            return state.flags, self.read(state, first, last, after, limit)
        draw = self.scheduler.random.random
        writes = [write for write in state.on_one if draw() < MEETS]
        change = undecided.change if undecided is not None and meets_change and draw() < MEETS else None
        if not writes and change is None:
            return state.flags, self.read(state, first, last, after, limit)
        self.faults.observe(READ_MET_ONE)
        page = self.read(state, first, last, after, limit)
        if len(page) >= limit and page:
            # Of what lies behind a full page nothing was asked for.
            wanted = wanted._replace(last=page[-1].key)
        before = None if self.repairs else Before(state)
        for write in writes:
            self._show(state, write, wanted, before)
        if change is not None and undecided is not None:
            self._show_change(state, change, undecided.order, wanted, before)
        found = state.flags, self.read(state, first, last, after, limit)
        if before is not None:
            before.restore()
        return found

    def decided(self, partition: Partition, first: Key | None, last: Key | None) -> tuple[Values, list[Row]]:
        """The flags and rows of a span with what is decided of them, even if only one replica has heard of it."""
        state = self.state(partition)
        undecided = state.undecided
        before = Before(state)
        if undecided is not None and undecided.on_one and undecided.order > state.dropped_stamp:
            self._show_change(state, undecided.change, undecided.order, Wanted(first, last, None, None), before)
        found = state.flags, self.read(state, first, last, None, 1 << 60)
        before.restore()
        return found

    def anywhere(self, partition: Partition, key: Key) -> list[Row]:
        """What the replicas have of a row, each of them by itself."""
        state = self.state(partition)
        alone = [Row(key, values) for write in state.on_one for at, values in write.rows if at == key]
        return [*self.read(state, key, key, None, 1), *alone]

    def _show(self, state: PartitionState, write: OnOne, wanted: Wanted, before: Before | None) -> None:
        if write.stamp > state.highest_stamp:
            state.highest_stamp = write.stamp
        for key, values in write.rows:
            if wanted.has(key):
                if before is not None:
                    before.note(key)
                self._merge(state, key, wanted.of(values), write.stamp, write.ttl_seconds)

    def _show_change(
        self, state: PartitionState, change: Change, order: int, wanted: Wanted, before: Before | None
    ) -> None:
        if change.partition.table.small:
            wanted = ALL
        for key, _, values in change.rows:
            if not wanted.has(key):
                continue
            if before is not None:
                before.note(key)
            if values is None:
                if key in state.rows:
                    self._remove(state, key)
            elif values:
                self._merge(state, key, wanted.of(values), order, change.ttl_seconds)
        self._set_flags(state, change, order)

    # ---- blind writes

    def reach_one(
        self, partition: Partition, rows: Sequence[Row], stamp: int, begun_order: int, ttl_seconds: int | None
    ) -> OnOne | None:
        """Rows of a plain table reach one replica, which keeps them until `leave_one`."""
        state = self.state(partition)
        if (stamp <= state.dropped_stamp and begun_order < state.drop_landed_order) or len(state.on_one) >= COPIES_MOST:
            return None
        state.on_one.append(one := OnOne(rows, stamp, begun_order, ttl_seconds))
        if self.write_listener is not None:
            self.write_listener(partition, rows)
        return one

    def leave_one(self, partition: Partition, one: OnOne) -> None:
        """The others have it too, or will soon."""
        state = self.state(partition)
        state.on_one = [other for other in state.on_one if other is not one]

    def write(
        self, partition: Partition, rows: Sequence[Row], stamp: int, begun_order: int, ttl_seconds: int | None
    ) -> None:
        """Rows of a plain table take effect. `begun_order` is `order` as it was when the write was sent."""
        state = self.state(partition)
        self.order += 1
        if stamp <= state.dropped_stamp and begun_order < state.drop_landed_order:
            self.faults.observe(WRITE_SHADOWED)
            return
        if begun_order < state.drop_landed_order:
            self.faults.observe(LATE_WRITE_RESURRECTED)
        if stamp > state.highest_stamp:
            state.highest_stamp = stamp
        for row in rows:
            self._merge(state, row.key, row.values, stamp, ttl_seconds)
        if self.write_listener is not None:
            self.write_listener(partition, rows)

    # ---- conditional changes

    def change(self, change: Change) -> Applied | Refused:
        """Tests and, if all holds, applies a change at this instant."""
        state = self.state(change.partition)
        self._complete(state)
        if not self._holds(state, change):
            return self.refusal(change)
        self.order += 1
        self._tell(change)
        self._apply(state, change, self.order)
        return APPLIED

    def accept(self, change: Change, completed_after_us: int, on_one: bool = False) -> bool:
        """As `change`, but the change stays out of sight until the next one, or that time, completes it; or, if one
        replica has it already, out of the sight of those who do not ask that one."""
        state = self.state(change.partition)
        self._complete(state)
        if not self._holds(state, change):
            return False
        self.order += 1
        if on_one:
            # Whoever meets it builds on it from now on.
            self._tell(change)
        undecided = state.undecided = Undecided(change, self.order, on_one)
        self.later(completed_after_us, self._complete_by_time, (state, undecided))
        return True

    def refusal(self, change: Change) -> Refused:
        """The rows that a change names, as plain reads see them now."""
        state = self.state(change.partition)
        rows: dict[Key, Values] = {}
        for row_change in change.rows:
            row = self._row(state, row_change.key)
            if row is not None:
                rows[row_change.key] = row.values
        return Refused(state.flags, rows)

    def _tell(self, change: Change) -> None:
        if self.change_listener is not None:
            self.change_listener(change)

    def _apply(self, state: PartitionState, change: Change, order: int) -> None:
        state.highest_stamp = order
        for key, _, values in change.rows:
            if values is None:
                if key in state.rows:
                    self._remove(state, key)
            elif values:
                self._merge(state, key, values, order, change.ttl_seconds)
        self._set_flags(state, change, order)

    def _complete(self, state: PartitionState) -> None:
        undecided = state.undecided
        if undecided is None:
            return
        state.undecided = None
        self.faults.observe(UNDECIDED_COMPLETED)
        self._apply_undecided(state, undecided)

    def _complete_by_time(self, argument: tuple[PartitionState, Undecided]) -> None:
        state, undecided = argument
        if state.undecided is undecided:
            state.undecided = None
            self._apply_undecided(state, undecided)

    def _apply_undecided(self, state: PartitionState, undecided: Undecided) -> None:
        if self.trace is not None:
            self.trace.event("store", f"completes undecided {self.trace.change(undecided.change)}")
        if undecided.order <= state.dropped_stamp:
            self.faults.observe(UNDECIDED_SHADOWED)
            return
        if not undecided.on_one:
            self._tell(undecided.change)
        self._apply(state, undecided.change, undecided.order)

    # ---- drops

    def drop_stamp(self, partition: Partition, clock_stamp: int) -> int:
        """The stamp of a drop that begins now: above everything that it promises to remove."""
        if partition.table.conditional:
            return self.order
        state = self.partitions.get(partition)
        return clock_stamp if state is None else max(clock_stamp, state.highest_stamp)

    def drop(self, partition: Partition, stamp: int, release_us: Sequence[int]) -> None:
        """A drop takes effect. Effects that wait for it follow after delays out of `release_us`."""
        state = self.state(partition)
        self.order += 1
        state.drop_landed_order = self.order
        if stamp > state.dropped_stamp:
            state.dropped_stamp = stamp
        state.on_one = [one for one in state.on_one if one.stamp > stamp]
        if state.highest_stamp <= stamp:
            state.keys = []
            state.rows = {}
            state.flags = {}
            state.flag_stamps = {}
        else:
            self.faults.observe(DROP_LEFT_CELLS)
            self._drop_cells(state, stamp)
        waiting, state.until_dropped = state.until_dropped, []
        for index, number in enumerate(waiting):
            self.scheduler.after(release_us[index % len(release_us)], self.land_late, number)
