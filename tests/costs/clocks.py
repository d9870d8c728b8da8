"""A clock that stands still until it is told otherwise, so that no cost depends on how fast the machine is."""

from __future__ import annotations

import time

from angelhair.clock import Moment


class StillClock:
    def __init__(self) -> None:
        # Near the store's clock: a server whose clock is wrong asks the store for the time with every put.
        self.wall_ms = time.time_ns() // 1_000_000

    def now(self) -> Moment:
        return Moment(self.wall_ms, self.wall_ms)

    def now_ms(self) -> int:
        return self.wall_ms

    def advance(self, milliseconds: int) -> None:
        self.wall_ms += milliseconds
