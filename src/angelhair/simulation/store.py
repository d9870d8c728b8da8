"""The simulated store as one process sees it: every call travels, takes effect at some instant or not, and answers.

Implements `engine.store.Store`, as weakly as its contract and Cassandra allow: which of the things that may go wrong
do go wrong is drawn per item of a call from the world's `Faults`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from angelhair.engine.mistakes import check_change, check_span, check_write
from angelhair.engine.store import (
    Change,
    ChangeOutcome,
    Joined,
    Key,
    Partition,
    Refused,
    Row,
    Slice,
    Span,
    Together,
    Values,
    Write,
    WriteOutcome,
)
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable
from angelhair.simulation import faults as kinds
from angelhair.simulation.calls import Call
from angelhair.simulation.cluster import LATE_CHANGE_APPLIED, LATE_CHANGE_REFUSED
from angelhair.simulation.faults import log_uniform
from angelhair.simulation.late_writes import LateWrites
from angelhair.simulation.lateness import (
    DELAYED_US,
    LATE_US,
    ON_ONE_US,
    PAST_DROP_US,
    UNDECIDED_US,
    VERY_LATE_US,
)
from angelhair.simulation.minority import Wanted
from angelhair.simulation.scheduler import MICROSECONDS_PER_MILLISECOND
from angelhair.simulation.values import frozen_change, frozen_write, with_columns

UNBOUNDED = 1 << 60
"""A limit of rows that no partition reaches."""


class SimulatedStore(LateWrites):
    """What one process uses."""

    # ---- the port

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        for span in spans:
            check_span(span)
        if not spans:
            return []
        call = self._begin(len(spans))
        for index, span in enumerate(spans):
            if self._sent(call, index, "read", span):
                self._scheduler.after(self._travel_us(), self._read_lands, (call, index, span, None, []))
        results = await call
        for result in results:
            if isinstance(result, StoreError):
                raise result
        return results  # type: ignore[no-any-return]

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        for write in writes:
            check_write(write)
        if not writes:
            return []
        call = self._begin(len(writes))
        for index, write in enumerate(writes):
            self._send_write(call, index, write)
        return await call  # type: ignore[no-any-return]

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        for change in changes:
            check_change(change)
        if not changes:
            return []
        call = self._begin(len(changes))
        for index, change in enumerate(changes):
            if self._sent(call, index, "change", change):
                fate = None if call.crashing else self._faults.draw("change")
                travel_us = self._travel_us()
                if fate == kinds.CHANGE_DELAYED:
                    fate, travel_us = None, travel_us + int(log_uniform(self._random, *DELAYED_US))
                self._scheduler.after(travel_us, self._change_lands, (call, index, change, fate))
        return await call  # type: ignore[no-any-return]

    @property
    def joins(self) -> bool:
        return self._cluster.joins

    async def together(self, wanted: Together) -> Joined:
        check_change(wanted.change)
        for write in wanted.writes:
            check_write(write)
        for span in wanted.spans:
            check_span(span)
        call = self._begin(1)
        if self._sent(call, 0, "together", wanted):
            fate = None if call.crashing else self._faults.draw("change")
            travel_us = self._travel_us()
            if fate == kinds.CHANGE_DELAYED:
                fate, travel_us = None, travel_us + int(log_uniform(self._random, *DELAYED_US))
            self._scheduler.after(travel_us, self._together_lands, (call, wanted, fate))
        (result,) = await call
        return Joined(result) if isinstance(result, StoreError) else result

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        if not partitions:
            return []
        call = self._begin(len(partitions))
        for index, partition in enumerate(partitions):
            stamp = self._cluster.drop_stamp(partition, self._client_stamp())
            if self._sent(call, index, "drop", partition, stamp):
                fate = None if call.crashing else self._faults.draw("drop")
                self._scheduler.after(self._travel_us(), self._drop_lands, (call, index, partition, stamp, fate))
        return await call  # type: ignore[no-any-return]

    async def time_ms(self) -> int:
        call = self._begin(1)
        if self._sent(call, 0, "time", None):
            self._scheduler.after(self._travel_us(), self._time_lands, call)
        (result,) = await call
        if isinstance(result, StoreError):
            raise result
        return result  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Nothing is held."""

    def _sent(self, call: Call, index: int, verb: str, item: Any, stamp: int = 0) -> bool:
        """Whether a request goes the ordinary way; if the process is cut off, its fate is settled here."""
        cut = self._process.cut
        if cut is None or call.crashing:
            return True
        if cut == kinds.CUT_REFUSED:
            self._answer_at(call, index, verb, item, Unavailable("no connection to the store"), self._travel_us())
            return False
        if cut == kinds.CUT_ANSWERS:
            if verb == "change":
                self._scheduler.after(self._travel_us(), self._late_change, item)
            elif verb == "drop":
                self._scheduler.after(self._travel_us(), self._late_drop, (item, stamp))
            elif verb == "together":
                self._scheduler.after(self._travel_us(), self._late_together, (item, call.begun_order))
        if verb in ("read", "time"):
            self._answer_at(call, index, verb, item, Unavailable("no answer from the store"), self._timeout_us)
        else:
            self._answer_at(call, index, verb, item, OutcomeUnknown("no answer from the store"), self._timeout_us)
        return False

    # ---- reads

    def _read_lands(self, argument: tuple[Call, int, Span, Key | None, list[Row]]) -> None:
        """One page of a span is read; the next one, if there is one, at a later instant."""
        call, index, span, after, rows = argument
        cluster = self._cluster
        if cluster.outage or (not call.crashing and self._faults.draw("read") is not None):
            self._answer_at(call, index, "read", span, Unavailable("the read failed"), self._give_up_us())
            return
        partition, first, last, limit, columns = span
        state = cluster.partitions.get(partition)
        flags: Values = {}
        page: Sequence[Row] = []
        page_limit = UNBOUNDED
        if state is not None:
            page_limit = UNBOUNDED if partition.table.small else self._page_rows
            if limit is not None and limit - len(rows) < page_limit:
                page_limit = limit - len(rows)
            flags, page = cluster.met(state, Wanted(first, last, after, columns), page_limit)
        if after is None:
            # The flags come with the first page: they are never younger than the rows.
            call.results[index] = flags
            last_key = page[-1].key if page else None
        else:
            last_key = page[-1].key if page else after
        page = with_columns(page, columns)
        rows = [*rows, *page] if rows else list(page)
        if len(page) < page_limit or len(rows) == limit:
            result = Slice(call.results[index], rows, len(rows) == limit)
            self._answer_at(call, index, "read", span, result, self._travel_us())
        else:
            self._scheduler.after(self._travel_us(), self._read_lands, (call, index, span, last_key, rows))

    def _time_lands(self, call: Call) -> None:
        if self._cluster.outage or (not call.crashing and self._faults.draw("read") is not None):
            self._answer_at(call, 0, "time", None, Unavailable("the store does not answer"), self._give_up_us())
            return
        self._answer_at(call, 0, "time", None, self._node_stamp() // MICROSECONDS_PER_MILLISECOND, self._travel_us())

    # ---- blind writes

    def _send_write(self, call: Call, index: int, write: Write) -> None:
        stamp = self._client_stamp() if self._stamped_by_client else None
        if self._process.cut == kinds.CUT_ANSWERS and not call.crashing:
            frozen = frozen_write(write)
            self._scheduler.after(self._travel_us(), self._late_write, (frozen, stamp, call.begun_order))
        if not self._sent(call, index, "write", write):
            return
        fate = None if call.crashing else self._faults.draw("write")
        delay_us = 0
        if fate == kinds.WRITE_DELAYED:
            fate, delay_us = None, int(log_uniform(self._random, *DELAYED_US))
        rows = write.rows
        if fate is None and len(rows) > self._instant_rows:
            parts = [rows[at : at + self._instant_rows] for at in range(0, len(rows), self._instant_rows)]
            call.pending += len(parts) - 1
            for part in parts:
                self._scheduler.after(
                    delay_us + self._travel_us(), self._write_lands,
                    (call, index, write._replace(rows=part), stamp, None, True),
                )
            return
        self._scheduler.after(delay_us + self._travel_us(), self._write_lands, (call, index, write, stamp, fate, False))

    def _write_lands(self, argument: tuple[Call, int, Write, int | None, str | None, bool]) -> None:
        call, index, write, stamp, fate, partial = argument
        if self._cluster.outage and not call.crashing:
            # Another part of the same write may have landed already: then it is too late for "did not happen".
            self._answer_at(call, index, "write", write, self._outage(sure=not partial), self._give_up_us())
            return
        if fate is None or (fate == kinds.WRITE_ON_ONE and self._cluster.joins):
            # A store that joins is in one place.
            if stamp is None:
                stamp = self._node_stamp()
            self._cluster.write(write.partition, write.rows, stamp, call.begun_order, write.ttl_seconds)
            self._answer_at(call, index, "write", write, None, self._travel_us())
            return
        if fate == kinds.WRITE_UNAVAILABLE:
            self._answer_at(call, index, "write", write, Unavailable(fate), self._travel_us())
            return
        if fate == kinds.WRITE_ON_ONE:
            self._reach_one(call, index, write, stamp)
            return
        if fate == kinds.WRITE_TORN:
            self._tear(call, write, stamp)
        elif fate != kinds.WRITE_LOST:
            self._write_later(fate, frozen_write(write), stamp, call.begun_order)
        self._answer_at(call, index, "write", write, OutcomeUnknown(fate), self._give_up_us())

    # ---- conditional changes

    def _change_lands(self, argument: tuple[Call, int, Change, str | None]) -> None:
        call, index, change, fate = argument
        cluster = self._cluster
        if cluster.outage and not call.crashing:
            self._answer_at(call, index, "change", change, self._outage(), self._give_up_us())
            return
        if fate is None:
            outcome = cluster.change(change)
            if outcome.__class__ is Refused and self._faults.later_refusal_rate:
                if self._uniform() < self._faults.later_refusal_rate:
                    self._faults.count(kinds.REFUSAL_READ_LATER)
                    self._scheduler.after(self._travel_us(), self._refusal_lands, (call, index, change))
                    return
            self._answer_at(call, index, "change", change, outcome, self._travel_us())
            return
        if fate == kinds.CHANGE_UNAVAILABLE:
            self._answer_at(call, index, "change", change, Unavailable(fate), self._travel_us())
            return
        if fate == kinds.CHANGE_UNCONFIRMED or (fate == kinds.CHANGE_ON_ONE and cluster.joins):
            cluster.change(change)
        elif fate == kinds.CHANGE_UNDECIDED:
            cluster.accept(frozen_change(change), int(log_uniform(self._random, *UNDECIDED_US)))
        elif fate == kinds.CHANGE_ON_ONE:
            cluster.accept(frozen_change(change), int(log_uniform(self._random, *ON_ONE_US)), on_one=True)
        elif fate != kinds.CHANGE_LOST:
            bounds = LATE_US if fate == kinds.CHANGE_LATE else VERY_LATE_US
            delay_us = int(log_uniform(self._random, *bounds))
            number = cluster.later(delay_us, self._late_change, frozen_change(change))
            if fate == kinds.CHANGE_PAST_DROP:
                cluster.state(change.partition).until_dropped.append(number)
        self._answer_at(call, index, "change", change, OutcomeUnknown(fate), self._give_up_us())

    def _refusal_lands(self, argument: tuple[Call, int, Change]) -> None:
        call, index, change = argument
        self._answer_at(call, index, "change", change, self._cluster.refusal(change), self._travel_us())

    def _late_change(self, change: Change) -> None:
        outcome = self._cluster.change(change)
        self._faults.observe(LATE_CHANGE_REFUSED if isinstance(outcome, Refused) else LATE_CHANGE_APPLIED)
        if self._trace is not None:
            self._trace_late(f"{self._trace.change(change)} => {self._trace.outcome(outcome)}")

    # ---- a change with its writes

    def _together_lands(self, argument: tuple[Call, Together, str | None]) -> None:
        call, wanted, fate = argument
        cluster = self._cluster
        if cluster.outage and not call.crashing:
            self._answer_at(call, 0, "together", wanted, self._outage(), self._give_up_us())
            return
        if fate is None:
            outcome = self._join(wanted, call.begun_order)
            slices = [] if isinstance(outcome, Refused) else [self._whole(span) for span in wanted.spans]
            self._answer_at(call, 0, "together", wanted, Joined(outcome, slices), self._travel_us())
            return
        if fate == kinds.CHANGE_UNAVAILABLE:
            self._answer_at(call, 0, "together", wanted, Unavailable(fate), self._travel_us())
            return
        if fate == kinds.CHANGE_UNCONFIRMED:
            self._join(wanted, call.begun_order)
        elif fate != kinds.CHANGE_LOST:
            # Nothing that is made in one place can be undecided; it is only late.
            soon = (kinds.CHANGE_LATE, kinds.CHANGE_UNDECIDED, kinds.CHANGE_ON_ONE)
            bounds = LATE_US if fate in soon else VERY_LATE_US
            cluster.later(int(log_uniform(self._random, *bounds)), self._late_together, (wanted, call.begun_order))
        self._answer_at(call, 0, "together", wanted, OutcomeUnknown(fate), self._give_up_us())

    def _late_together(self, argument: tuple[Together, int]) -> None:
        outcome = self._join(*argument)
        self._faults.observe(LATE_CHANGE_REFUSED if isinstance(outcome, Refused) else LATE_CHANGE_APPLIED)
        if self._trace is not None:
            self._trace_late(f"{self._trace.together(argument[0])} => {self._trace.outcome(outcome)}")

    def _join(self, wanted: Together, begun_order: int) -> ChangeOutcome:
        outcome = self._cluster.change(wanted.change)
        if not isinstance(outcome, Refused):
            for write in wanted.writes:
                self._cluster.write(write.partition, write.rows, self._node_stamp(), begun_order, write.ttl_seconds)
        return outcome

    def _whole(self, span: Span) -> Slice:
        state = self._cluster.partitions.get(span.partition)
        if state is None:
            return Slice({}, [], False)
        rows = self._cluster.read(state, span.first, span.last, None, UNBOUNDED if span.limit is None else span.limit)
        return Slice(state.flags, with_columns(rows, span.columns), len(rows) == span.limit)

    # ---- drops

    def _drop_lands(self, argument: tuple[Call, int, Partition, int, str | None]) -> None:
        call, index, partition, stamp, fate = argument
        if self._cluster.outage and not call.crashing:
            self._answer_at(call, index, "drop", partition, self._outage(), self._give_up_us())
            return
        if fate == kinds.DROP_UNAVAILABLE:
            self._answer_at(call, index, "drop", partition, Unavailable(fate), self._travel_us())
            return
        if fate is None or fate == kinds.DROP_UNCONFIRMED:
            self._cluster.drop(partition, stamp, self._release_us())
        elif fate != kinds.DROP_LOST:
            bounds = LATE_US if fate == kinds.DROP_LATE else VERY_LATE_US
            self._cluster.later(int(log_uniform(self._random, *bounds)), self._late_drop, (partition, stamp))
        if fate is None:
            self._answer_at(call, index, "drop", partition, None, self._travel_us())
        else:
            self._answer_at(call, index, "drop", partition, OutcomeUnknown(fate), self._give_up_us())

    def _late_drop(self, argument: tuple[Partition, int]) -> None:
        partition, stamp = argument
        self._trace_late(self._trace.drop(partition) if self._trace is not None else "")
        self._cluster.drop(partition, stamp, self._release_us())

    def _release_us(self) -> tuple[int, int]:
        """Delays for what waits until the partition has been dropped."""
        return int(log_uniform(self._random, *PAST_DROP_US)), int(log_uniform(self._random, *PAST_DROP_US))
