"""The truth that all simulated store clients share: what has taken effect, and what still will.

Nothing here waits or fails; each method is one instant. `store.py` decides when, and whether, it is called.

A cell (a column of a row, or a flag) carries the stamp of the write that set it, and the higher stamp wins, as in
Cassandra. In plain tables a stamp is a reading of somebody's skewed wall clock; in conditional tables, where Paxos
lines the changes up, it is the order in which things took effect. A drop is a stamp below which all cells are gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from angelhair.engine.store import APPLIED, Applied, Change, Key, Partition, Refused, Row, Value, Values
from angelhair.simulation.faults import NODE_SKEW_US, STORE_NODES, Faults
from angelhair.simulation.minority import COPIES_MOST, MEETS, Before, Wanted
from angelhair.simulation.scheduler import MICROSECONDS_PER_SECOND, Action, Scheduler
from angelhair.simulation.states import NEVER, OnOne, PartitionState, RowState, Undecided
from angelhair.simulation.trace import Trace

if TYPE_CHECKING:
    from angelhair.simulation.process import Process

READ_MISSED_UNDECIDED = "read missed an undecided change"
UNDECIDED_COMPLETED = "undecided change completed by the next one"
UNDECIDED_SHADOWED = "undecided change completed under a drop"
LATE_WRITE_RESURRECTED = "late write landed after a drop and stayed"
WRITE_SHADOWED = "write shadowed by a drop"
WRITE_OUTDATED = "write lost against a higher stamp"
LATE_CHANGE_APPLIED = "late change applied"
LATE_CHANGE_REFUSED = "late change refused"
DROP_LEFT_CELLS = "drop left newer cells"
READ_MET_ONE = "read met what only one replica has"


class Cluster:
    """All partitions, the effects that are still to land, and the nodes' clocks."""

    def __init__(self, scheduler: Scheduler, faults: Faults, trace: Trace | None) -> None:
        self.scheduler = scheduler
        self.faults = faults
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
        self.partitions: dict[Partition, PartitionState] = {}
        spread_us = NODE_SKEW_US if faults.plan.skewed else 0
        self.node_skews_us = [scheduler.random.randint(-spread_us, spread_us) for _ in range(STORE_NODES)]
        self._late: dict[int, tuple[Action, Any]] = {}
        self._late_number = 0

    def state(self, partition: Partition) -> PartitionState:
        state = self.partitions.get(partition)
        if state is None:
            state = self.partitions[partition] = PartitionState()
        return state

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

    def read(
        self, state: PartitionState, first: Key | None, last: Key | None, after: Key | None, limit: int
    ) -> list[Row]:
        """Up to `limit` rows of a span, behind `after` if that is given, as plain reads see them at this instant."""
        if state.undecided is not None:
            self.faults.observe(READ_MISSED_UNDECIDED)
        keys = state.keys
        if after is not None:
            low = bisect_right(keys, after)
        else:
            low = 0 if first is None else bisect_left(keys, first)
        high = len(keys) if last is None else bisect_right(keys, last)
        rows = state.rows
        if not state.sparse:
            return [rows[key].record for key in keys[low : min(high, low + limit)]]
        now_us = self.scheduler.now_us
        seen: list[Row] = []
        for key in keys[low:high]:
            row = rows[key].seen_at(now_us)
            if row is not None:
                if len(seen) == limit:
                    break
                seen.append(row)
        return seen

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

    def _merge(self, state: PartitionState, key: Key, values: Values, stamp: int, ttl_seconds: int | None) -> None:
        if not values:
            return
        found = state.rows.get(key)
        if found is None:
            present = dict(values)
            if None in present.values():
                present = {column: value for column, value in values.items() if value is not None}
            found = state.rows[key] = RowState(Row(key, present), dict.fromkeys(values, stamp))
            keys = state.keys
            if not keys or keys[-1] < key:
                keys.append(key)
            else:
                insort(keys, key)
            if present and ttl_seconds is None:
                return
            changed: Iterable[str] = values
        else:
            changed = self._merge_cells(found, values, stamp)
        if not found.record.values:
            # The cells' stamps stay: they decide about writes that come later and were stamped earlier.
            state.sparse = True
        if ttl_seconds is not None:
            expires_us = self.scheduler.now_us + ttl_seconds * MICROSECONDS_PER_SECOND
            state.sparse = True
            if found.expiries is None:
                found.expiries = {}
            for column in changed:
                found.expiries[column] = expires_us
        elif found.expiries is not None:
            for column in changed:
                found.expiries.pop(column, None)

    def _merge_cells(self, found: RowState, values: Values, stamp: int) -> list[str]:
        """Lets the higher stamp win, cell by cell; gives the columns that were set."""
        merged: dict[str, Value] = dict(found.record.values)
        stamps = found.stamps
        won = []
        for column, value in values.items():
            before = stamps.get(column, NEVER)
            if stamp < before or (stamp == before and not _wins(value, merged.get(column))):
                self.faults.observe(WRITE_OUTDATED)
                continue
            won.append(column)
            stamps[column] = stamp
            if value is None:
                merged.pop(column, None)
            else:
                merged[column] = value
        found.record = Row(found.record.key, merged)
        return won

    @staticmethod
    def _remove(state: PartitionState, key: Key) -> None:
        del state.rows[key]
        del state.keys[bisect_left(state.keys, key)]

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

    def _row(self, state: PartitionState, key: Key) -> Row | None:
        found = state.rows.get(key)
        return None if found is None else found.seen_at(self.scheduler.now_us)

    def _holds(self, state: PartitionState, change: Change) -> bool:
        flags = state.flags
        for flag, expected in change.expect_flags.items():
            if flags.get(flag) != expected:
                return False
        rows = state.rows
        for key, expect, _ in change.rows:
            found = rows.get(key)
            if found is None:
                for expected in expect.values():
                    if expected is not None:
                        return False
                continue
            row = found.seen_at(self.scheduler.now_us) if found.expiries else found.record
            values: Values = {} if row is None else row.values
            for column, expected in expect.items():
                if values.get(column) != expected:
                    return False
        return True

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

    @staticmethod
    def _set_flags(state: PartitionState, change: Change, order: int) -> None:
        if change.set_flags:
            flags = dict(state.flags)
            for flag, value in change.set_flags.items():
                state.flag_stamps[flag] = order
                if value is None:
                    flags.pop(flag, None)
                else:
                    flags[flag] = value
            state.flags = flags

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

    @staticmethod
    def _drop_cells(state: PartitionState, stamp: int) -> None:
        rows: dict[Key, RowState] = {}
        for key in state.keys:
            row = state.rows[key]
            stamps = {column: written for column, written in row.stamps.items() if written > stamp}
            values = {column: value for column, value in row.record.values.items() if column in stamps}
            if stamps:
                kept = rows[key] = RowState(Row(key, values), stamps)
                if row.expiries is not None:
                    kept.expiries = {column: at for column, at in row.expiries.items() if column in stamps}
        state.rows = rows
        state.keys = list(rows)
        state.flag_stamps = {flag: written for flag, written in state.flag_stamps.items() if written > stamp}
        state.flags = {flag: value for flag, value in state.flags.items() if flag in state.flag_stamps}


def _wins(value: Value, present: Value) -> bool:
    """Whether a cell with the same stamp takes the other's place: unset wins, then the greater value."""
    if value is None or present is None:
        return value is None
    return value >= present  # type: ignore[operator]
