"""What all calls of the simulated store have in common: the way there and back, the clocks, crashes at a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from angelhair.errors import OutcomeUnknown, StoreError, Unavailable
from angelhair.simulation import faults as kinds
from angelhair.simulation.clocks import EPOCH_US
from angelhair.simulation.cluster import Cluster
from angelhair.simulation.faults import log_uniform
from angelhair.simulation.scheduler import MICROSECONDS_PER_SECOND, Crashed, SimulatedPromise

if TYPE_CHECKING:
    from angelhair.simulation.process import Process

TRAVEL_LEAST_US = 100
"""The fastest way to the store and the fastest way back: two processes on one machine."""
SLOW_US = (5_000, 20 * MICROSECONDS_PER_SECOND)
"""How long a slow message takes; the slowest outlive most time-outs of whoever waits behind them."""
OUTAGE_SAYS_SO = 0.7
"""Share of the requests in an outage that hear it at once; the rest vanish without a word."""
QUICK_GIVE_UP = 0.5
"""Share of the unknown outcomes that come from a broken connection, at once, and not from a time-out."""


class Call(SimulatedPromise):
    """One call under way: the promise of its list of results."""

    __slots__ = ("begun_order", "crashing", "pending", "ready_us", "results")

    def __init__(self, process: Process, items: int, begun_order: int, crashing: bool) -> None:
        super().__init__(process)
        self.results: list[Any] = [None] * items
        self.pending = items
        self.ready_us = 0
        self.begun_order = begun_order
        self.crashing = crashing


class Caller:
    """One process's end of the line to the store. `calls` counts, so that it can be crashed at any one of them."""

    def __init__(self, process: Process, cluster: Cluster) -> None:
        self._process = process
        self._cluster = cluster
        self._scheduler = cluster.scheduler
        self._random = cluster.scheduler.random
        self._uniform = cluster.scheduler.random.random
        self._faults = cluster.faults
        self._trace = cluster.trace
        plan = cluster.faults.plan
        self._latency_us = plan.latency_us
        self._timeout_us = plan.timeout_us
        self._page_rows = plan.page_rows
        self._instant_rows = plan.instant_rows
        self._stamped_by_client = plan.stamped_by_client
        self._last_stamp = 0
        self._crash_at_call = 0
        self._crash_after_effect = False
        self.calls = 0

    def crash_at_call(self, calls_from_now: int, after_effect: bool) -> None:
        """Crashes the process at its k-th store call from now: with nothing of it sent, or with all of it done and
        no answer heard. A later order takes the place of an earlier one."""
        self._crash_at_call = self.calls + calls_from_now
        self._crash_after_effect = after_effect

    def forget_crash(self) -> None:
        self._crash_at_call = 0

    def _crash(self) -> None:
        self._process.crash()
        if self._cluster.crash_listener is not None:
            self._cluster.crash_listener(self._process)

    def _begin(self, items: int) -> Call:
        process = self._process
        if process.crashed:
            raise Crashed
        self.calls += 1
        crashing = False
        if self.calls == self._crash_at_call:
            if self._crash_after_effect:
                crashing = True
                self._faults.count(kinds.CRASH_AFTER_CALL)
            else:
                self._faults.count(kinds.CRASH_BEFORE_CALL)
                if self._trace is not None:
                    self._trace.event(process.label, "crashes before a store call")
                self._crash()
                raise Crashed
        return Call(process, items, self._cluster.order, crashing)

    def _travel_us(self) -> int:
        drawn = self._uniform()
        travel_us = TRAVEL_LEAST_US + int(drawn * drawn * self._latency_us)
        slow_rate = self._faults.slow_rate
        if slow_rate and self._uniform() < slow_rate:
            self._faults.count(kinds.SLOW)
            travel_us += int(log_uniform(self._random, *SLOW_US))
        return travel_us

    def _give_up_us(self) -> int:
        """When the caller of something that will not answer hears that its outcome is unknown."""
        return self._travel_us() if self._uniform() < QUICK_GIVE_UP else self._timeout_us

    def _client_stamp(self) -> int:
        """This process's time for a write; like the driver's, it never goes back while the process lives."""
        self._last_stamp = stamp = max(self._process.clock.wall_us(), self._last_stamp + 1)
        return stamp

    def _node_stamp(self) -> int:
        return EPOCH_US + self._scheduler.now_us + self._random.choice(self._cluster.node_skews_us)

    # ---- answering

    def _answer_at(self, call: Call, index: int, verb: str, item: Any, result: Any, delay_us: int) -> None:
        """Settles one item; the last one settled sends the call on its way back."""
        if self._trace is not None:
            self._trace_answer(verb, item, result)
        if result is not None:
            call.results[index] = result
        ready_us = self._scheduler.now_us + delay_us
        if ready_us > call.ready_us:
            call.ready_us = ready_us
        call.pending -= 1
        if call.pending or self._process.crashed:
            return
        if call.crashing:
            if self._trace is not None:
                self._trace.event(self._process.label, "crashes after a store call took effect")
            self._crash()
            return
        self._scheduler.at(call.ready_us, call.deliver, call.results)

    def _trace_answer(self, verb: str, item: Any, result: Any) -> None:
        trace = self._trace
        assert trace is not None
        what: dict[str, Callable[[Any], str]] = {
            "read": trace.span, "write": trace.write, "change": trace.change, "drop": trace.drop, "time": trace.time,
            "together": trace.together,
        }
        trace.event(self._process.label, f"{what[verb](item)} => {trace.outcome(result)}")

    def _trace_late(self, what: str) -> None:
        if self._trace is not None:
            self._trace.event(self._process.label, f"late: {what}")

    def _outage(self, sure: bool = True) -> StoreError:
        if sure and self._uniform() < OUTAGE_SAYS_SO:
            return Unavailable("the store is down")
        return OutcomeUnknown("the store does not answer")
