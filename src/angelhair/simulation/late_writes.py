"""What becomes of a blind write that does not simply land: late, in parts, or on one replica first."""

from __future__ import annotations

from angelhair.engine.store import Write
from angelhair.errors import OutcomeUnknown
from angelhair.simulation import faults as kinds
from angelhair.simulation.calls import Call, Caller
from angelhair.simulation.faults import log_uniform
from angelhair.simulation.lateness import DELAYED_US, LATE_US, ON_ONE_US, TORN_PARTS_MOST, VERY_LATE_US
from angelhair.simulation.states import OnOne
from angelhair.simulation.values import frozen_write

CONFIRMED_AT_LAST = 0.4
"""Share of the blind writes that reach one replica first and are confirmed when the others have them."""


class LateWrites(Caller):
    """A process's blind writes that are still on their way."""

    def _write_later(self, fate: str, write: Write, stamp: int | None, begun_order: int) -> None:
        if fate == kinds.WRITE_UNCONFIRMED:
            delay_us = 0
        elif fate == kinds.WRITE_LATE:
            delay_us = int(log_uniform(self._random, *LATE_US))
        else:
            delay_us = int(log_uniform(self._random, *VERY_LATE_US))
        if stamp is None and self._uniform() < 0.5:
            # A node took it at once and keeps it for another one (a hint); otherwise it queues, without a stamp yet.
            stamp = self._node_stamp()
        number = self._cluster.later(delay_us, self._late_write, (write, stamp, begun_order))
        if fate == kinds.WRITE_PAST_DROP:
            self._cluster.state(write.partition).until_dropped.append(number)

    def _reach_one(self, call: Call, index: int, write: Write, stamp: int | None) -> None:
        write = frozen_write(write)
        stamp = self._node_stamp() if stamp is None else stamp
        partition, rows, ttl_seconds = write
        one = self._cluster.reach_one(partition, rows, stamp, call.begun_order, ttl_seconds)
        confirmed = self._uniform() < CONFIRMED_AT_LAST
        delay_us = int(log_uniform(self._random, *(DELAYED_US if confirmed else ON_ONE_US)))
        told = (call, index) if confirmed else None
        self._cluster.later(delay_us, self._reach_others, (write, stamp, call.begun_order, one, told))
        if not confirmed:
            self._answer_at(call, index, "write", write, OutcomeUnknown(kinds.WRITE_ON_ONE), self._give_up_us())

    def _reach_others(self, argument: tuple[Write, int, int, OnOne | None, tuple[Call, int] | None]) -> None:
        write, stamp, begun_order, one, told = argument
        if one is not None:
            self._cluster.leave_one(write.partition, one)
        self._late_write((write, stamp, begun_order))
        if told is not None:
            self._answer_at(*told, "write", write, None, self._travel_us())

    def _tear(self, call: Call, write: Write, stamp: int | None) -> None:
        rows = list(frozen_write(write).rows)
        self._random.shuffle(rows)
        parts = min(len(rows), self._random.randint(2, TORN_PARTS_MOST))
        for part in range(parts):
            fate = self._random.choice((kinds.WRITE_UNCONFIRMED, kinds.WRITE_LATE, kinds.WRITE_VERY_LATE, None))
            if fate is not None:
                self._write_later(fate, write._replace(rows=rows[part::parts]), stamp, call.begun_order)

    def _late_write(self, argument: tuple[Write, int | None, int]) -> None:
        write, stamp, begun_order = argument
        self._trace_late(self._trace.write(write) if self._trace is not None else "")
        if stamp is None:
            stamp = self._node_stamp()
        self._cluster.write(write.partition, write.rows, stamp, begun_order, write.ttl_seconds)
