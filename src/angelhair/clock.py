"""The only place that reads a clock. Everything else is handed a `Moment`."""

import time
from typing import NamedTuple, Protocol


class Moment(NamedTuple):
    """One reading of a machine's two clocks.

    Wall time is compared between machines and may jump; monotonic time only measures waiting on this machine.
    """

    wall_ms: int
    monotonic_ms: int


class Clock(Protocol):
    def now(self) -> Moment: ...


class SystemClock:
    def now(self) -> Moment:
        return Moment(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)
