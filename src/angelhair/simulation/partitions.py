"""The cells of all partitions, as they stand at this instant.

A cell (a column of a row, or a flag) carries the stamp of the write that set it, and the higher stamp wins, as in
Cassandra. In plain tables a stamp is a reading of somebody's skewed wall clock; in conditional tables, where Paxos
lines the changes up, it is the order in which things took effect. A drop is a stamp below which all cells are gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from angelhair.engine.store import Change, Key, Partition, Row, Value, Values
from angelhair.simulation.faults import Faults
from angelhair.simulation.scheduler import MICROSECONDS_PER_SECOND, Scheduler
from angelhair.simulation.states import NEVER, PartitionState, RowState

READ_MISSED_UNDECIDED = "read missed an undecided change"
WRITE_OUTDATED = "write lost against a higher stamp"


class Partitions:
    """What has taken effect, and the rules by which cells are set, read and compared."""

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self.scheduler = scheduler
        self.faults = faults
        self.partitions: dict[Partition, PartitionState] = {}

    def state(self, partition: Partition) -> PartitionState:
        state = self.partitions.get(partition)
        if state is None:
            state = self.partitions[partition] = PartitionState()
        return state

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

    # ---- setting

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
