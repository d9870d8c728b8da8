"""Looks at the truth behind a simulated databag: its locks and epochs as they change, and whom serving passes over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.catalog import load
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import Run, cut
from angelhair.engine.databag.lock import given_ids
from angelhair.engine.schema import BAG_EPOCHS, BAG_LOCKS, BAG_MESSAGES
from angelhair.engine.store import Change, Partition, Row, Span, Values
from angelhair.model import QueueSettings
from angelhair.simulation.clocks import EPOCH_US
from angelhair.simulation.cluster import Cluster
from angelhair.simulation.databag_history import DatabagHistory, Early
from angelhair.simulation.databag_variation import NO_WINDOW_MS
from angelhair.simulation.inspection import Truth

MILLISECOND_US = 1_000
SETTLED_US = 2_500_000
"""In a calm world a message is seen after so long by whoever looks, however old what a server remembers may be."""


class _Served:
    __slots__ = ("at_us", "before_us")

    def __init__(self) -> None:
        self.at_us = self.before_us = -1


class _Serving(NamedTuple):
    """A lock's row as it took effect."""

    at_us: int
    served_at_ms: int
    until_ms: int
    given: frozenset[int]
    counted: frozenset[int] = frozenset()
    """As served too soon."""


class DatabagWitness:
    """Told of all that takes effect, at that instant, whatever anybody hears of it."""

    def __init__(self, cluster: Cluster, history: DatabagHistory, settings: QueueSettings, calm: bool) -> None:
        self._cluster = cluster
        self._history = history
        self._runs = cut(settings.min_partitions) if calm else ()
        self._locks: dict[str, dict[int, tuple[int, int]]] = {}
        """By incarnation and slice: until when it is locked, in wall time, and for how long that is."""
        self._there: dict[int, int] = {}
        """Ids that were written and not deleted, and since when."""
        self._served: dict[Run, _Served] = {}
        self._rows: dict[tuple[str, int], _Serving] = {}
        """By incarnation and first slice."""
        self._by_slice: dict[tuple[str, int], _Serving] = {}
        self._deletes: dict[int, list[tuple[int, int]]] = {}
        """By id: when a delete took effect, and the time that it says."""
        cluster.change_listener = self._see_change
        cluster.write_listener = self._see_write

    @property
    def _now_us(self) -> int:
        return self._cluster.scheduler.now_us

    # ---- messages

    def _see_write(self, partition: Partition, rows: Sequence[Row]) -> None:
        if partition.table is not BAG_MESSAGES:
            return
        for row in rows:
            number = int(row.key)
            if row.values.get("deleted") is not None:
                self._deletes.setdefault(number, []).append((self._now_us, _whole(row.values["deleted"])))
                self._history.deleted.add(f"0-{number}")
                self._there.pop(number, None)
            elif f"0-{number}" not in self._history.deleted:
                self._there.setdefault(number, self._now_us)

    # ---- locks and epochs

    def _see_change(self, change: Change) -> None:
        if change.partition.table is BAG_LOCKS:
            for row in change.rows:
                if row.values is not None and row.values.get("serving") is not None:
                    incarnation = change.partition.key.partition(".")[0]
                    self._see_serving_row(incarnation, int(row.key), row.values)
                    self._see_lock(incarnation, int(row.key), row.values)
        elif change.partition.table is BAG_EPOCHS:
            for row in change.rows:
                found = self._cluster.state(change.partition).rows.get(row.key)
                before: Values = {} if found is None else found.record.values
                # A row without values only tests.
                if row.values and before.get("version") is not None:
                    self._see_epochs(change.partition.key, int(row.key), before, {**before, **row.values})

    def _see_lock(self, incarnation: str, first: int, values: Values) -> None:
        last, served_at_ms, duration_ms = (_whole(values.get(name)) for name in ("last", "served_at", "duration"))
        locks = self._locks.setdefault(incarnation, {})
        wall_us = EPOCH_US + self._now_us
        earliest = (0, 0)
        for slice_ in range(first, last + 1):
            until_us, before_ms = locks.get(slice_, (0, 0))
            earliest = max(earliest, (until_us - wall_us, before_ms))
            locks[slice_] = ((served_at_ms + duration_ms) * MILLISECOND_US, duration_ms)
        if earliest[0] > 0:
            self._history.early.append(Early((first, last), self._now_us, *earliest))
        for number in given_ids(values.get("given")):
            self._history.locked.setdefault(number, []).append(self._now_us)
        if self._runs:
            self._see_serving(incarnation, Run(first, last))

    # ---- duplicates

    def _see_serving_row(self, incarnation: str, first: int, values: Values) -> None:
        """A row takes the place of another, which goes with what it shows; and some may have been served too soon."""
        last, served_at_ms = _whole(values.get("last")), _whole(values.get("served_at"))
        given = frozenset(given_ids(values.get("given")))
        new = _Serving(self._now_us, served_at_ms, served_at_ms + _whole(values.get("duration")), given)
        early: set[int] = set()
        for slice_ in range(first, last + 1):
            before = self._by_slice.get((incarnation, slice_))
            if before is not None and before.until_ms > served_at_ms:
                early |= before.given & given
            self._by_slice[incarnation, slice_] = new
        self._history.shown_duplicates += len(early) + len(self._served_deleted(self._rows.get((incarnation, first))))
        self._rows[incarnation, first] = new._replace(counted=frozenset(early))

    def _served_deleted(self, serving: _Serving | None) -> set[int]:
        """Those of which the one delete that there is took effect before they were served, and says so."""
        if serving is None:
            return set()
        shown = set()
        for number in serving.given - serving.counted:
            deletes = self._deletes.get(number, [])
            if len(deletes) == 1 and deletes[0][0] < serving.at_us and deletes[0][1] < serving.served_at_ms:
                shown.add(number)
        return shown

    def _see_finished(self, incarnation: str, block: int, latest: int, epoch: int) -> None:
        low = block * ids.BLOCK_SLICES
        for first in range(low, low + ids.BLOCK_SLICES):
            serving = self._rows.get((incarnation, first))
            if serving is not None:
                gone = {number for number in serving.given if ids.epoch_of(number, latest) == epoch}
                self._history.shown_duplicates += len(gone & self._served_deleted(serving))
                self._rows[incarnation, first] = serving._replace(given=serving.given - gone)

    def _see_epochs(self, incarnation: str, block: int, before: Values, after: Values) -> None:
        if after.get("deleted") is not None:
            return
        old, new = epochs_of.parse({**before, "deleted": None}), epochs_of.parse(after)
        if new.version != old.version + 1 or new.open < old.open:
            self._history.epoch_faults.append(f"block {block}: version {old.version} became {new.version}")
        known = {*new.read, *(number for each in new.over for number in range(each.first, each.last + 1))}
        for number in old.there:
            if number not in known:
                self._history.epoch_faults.append(f"block {block}: epoch {number} was forgotten")
        for number in set(old.read) - set(new.read):
            self._end(incarnation, block, number)
            self._see_finished(incarnation, block, new.open, number)
        if {each.number for each in new.sealed} - set(old.read):
            self._history.epoch_faults.append(f"block {block}: an epoch is not over any more")

    def _end(self, incarnation: str, block: int, epoch: int) -> None:
        partition = places.bag_messages(incarnation, block, epoch)
        for key in self._cluster.state(partition).rows:
            # Who ends it may have met a delete on a replica that has it alone.
            if all(row.values.get("deleted") is None for row in self._cluster.anywhere(partition, key)):
                self._history.ended_with[f"0-{key}"] = self._now_us

    # ---- fairness, in calm worlds

    def _see_serving(self, incarnation: str, served: Run) -> None:
        """Nobody is served again while another has waited since before its last serving, and was not locked."""
        if served not in self._runs:
            self._history.passed_over.append(f"slices {served.first} to {served.last} are no partition")
            return
        mine = self._served.setdefault(served, _Served())
        mine.before_us, mine.at_us = mine.at_us, self._now_us
        if mine.before_us < 0:
            return
        waiting: dict[Run, int] = {}
        for number, since_us in self._there.items():
            run = next(run for run in self._runs if run.first <= ids.slice_of(number) <= run.last)
            waiting[run] = min(since_us, waiting.get(run, since_us))
        locks = self._locks[incarnation]
        for run, since_us in waiting.items():
            other = self._served.get(run, _Served())
            until_us, duration_ms = locks.get(run.first, (0, 0))
            free_us = max(since_us, until_us - EPOCH_US if duration_ms else 0)
            if run != served and other.at_us < mine.before_us and free_us + SETTLED_US < mine.before_us:
                self._history.passed_over.append(
                    f"{served.first} was served at {mine.before_us} us and {mine.at_us} us, and {run.first}, "
                    f"which could have been since {free_us} us, was not in between"
                )


async def counted_duplicates(store: Truth, account: str, name: str) -> int:
    queue = await load(store, account, name)
    if queue is None:
        return 0
    blocks = range(limits.BAG_BLOCKS)
    found = await store.read([Span(places.bag_locks(queue.incarnation, block)) for block in blocks])
    return sum(_whole(slice_.flags.get("duplicates")) for slice_ in found)


async def leftovers(store: Truth, account: str, name: str, settings: QueueSettings) -> list[str]:
    """What should be gone after everything was deleted: sealed epochs, but for those with a place that is held for a
    key whose put did not come to its end; and finished ones, if there is no history and no key."""
    queue = await load(store, account, name)
    if queue is None:
        return []
    left: list[str] = []
    (found,) = await store.read([Span(places.bag_epochs(queue.incarnation))])
    stays = settings.history_ms or settings.dedup_window_ms > NO_WINDOW_MS
    for row in found.rows:
        epochs = epochs_of.parse(row.values)
        left += [
            f"epoch {number} of block {row.key}"
            for number, _ in epochs.sealed
            if not await _holds_a_place(store, places.bag_messages(queue.incarnation, int(row.key), number))
        ]
        if not stays:
            left += [f"epochs {each.first} to {each.last} of block {row.key}" for each in epochs.over]
    return left


async def _holds_a_place(store: Truth, partition: Partition) -> bool:
    (found,) = await store.read([Span(partition)])
    return any(row.values.get("enqueued_at") is None and row.values.get("deleted") is None for row in found.rows)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
