"""A clock that stands still until it is told otherwise, so that no cost depends on how fast the machine is."""

from __future__ import annotations

from angelhair.clock import Moment


class StillClock:
    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_000

    def now(self) -> Moment:
        return Moment(self.wall_ms, self.wall_ms)

    def now_ms(self) -> int:
        return self.wall_ms

    def advance(self, milliseconds: int) -> None:
        self.wall_ms += milliseconds
