"""A clock that stands still until it is told otherwise, so that no cost depends on how fast the machine is."""

from __future__ import annotations

import time

from angelhair.clock import Moment


class StillClock:
    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self.wall_ms = wall_ms

    @classmethod
    def at_present(cls) -> StillClock:
        """Near the clock of a real store: a server whose clock is wrong asks that one for the time with every put."""
        return cls(time.time_ns() // 1_000_000)

    def now(self) -> Moment:
        return Moment(self.wall_ms, self.wall_ms)

    def now_ms(self) -> int:
        return self.wall_ms

    def advance(self, milliseconds: int) -> None:
        self.wall_ms += milliseconds
