"""The clocks of a simulated machine: a wall clock that may be wrong and a monotonic one that may stand still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angelhair.clock import Moment
from angelhair.simulation.scheduler import MICROSECONDS_PER_MILLISECOND

if TYPE_CHECKING:
    from angelhair.simulation.scheduler import Scheduler

EPOCH_US = 1_750_000_000_000_000
"""True wall time at the world's beginning: an ordinary day, so that a clock a year behind is still after 1970."""

PARTS_PER_MILLION = 1_000_000

MONOTONIC_START_SPREAD_US = 10**12
"""Machines were switched on at different times: monotonic readings of two of them must never be compared."""


class SimulatedClock:
    """Implements `angelhair.clock.Clock` for one machine.

    wall = true time + skew; jumps and suspensions change the skew, a correction sets it to its resting value again.
    monotonic = true time that passed while the machine was not suspended, times a drift, from an arbitrary beginning.
    """

    __slots__ = ("_monotonic_base_us", "_scheduler", "_suspended_since_us", "_suspended_us", "drift_ppm",
                 "resting_skew_us", "skew_us", "worst_skew_us")

    def __init__(self, scheduler: Scheduler, skew_us: int = 0, drift_ppm: int = 0) -> None:
        self._scheduler = scheduler
        self.resting_skew_us = skew_us
        self.skew_us = skew_us
        self.worst_skew_us = abs(skew_us)
        """How far this clock ever was from true time, if only for a moment."""
        self.drift_ppm = drift_ppm
        self._suspended_us = 0
        self._suspended_since_us: int | None = None
        self._monotonic_base_us = scheduler.random.randrange(MONOTONIC_START_SPREAD_US)

    def _machine_us(self) -> int:
        """The true time up to which this machine has seen time pass."""
        return self._scheduler.now_us if self._suspended_since_us is None else self._suspended_since_us

    def wall_us(self) -> int:
        return EPOCH_US + self._machine_us() + self.skew_us

    def monotonic_us(self) -> int:
        elapsed_us = self._machine_us() - self._suspended_us
        return self._monotonic_base_us + elapsed_us + elapsed_us * self.drift_ppm // PARTS_PER_MILLION

    def now(self) -> Moment:
        # Both clocks at once, without asking each of them: nothing in a world is called more often.
        machine_us = self._scheduler.now_us if self._suspended_since_us is None else self._suspended_since_us
        elapsed_us = machine_us - self._suspended_us
        monotonic_us = self._monotonic_base_us + elapsed_us + elapsed_us * self.drift_ppm // PARTS_PER_MILLION
        return Moment(
            (EPOCH_US + machine_us + self.skew_us) // MICROSECONDS_PER_MILLISECOND,
            monotonic_us // MICROSECONDS_PER_MILLISECOND,
        )

    def until_monotonic_us(self, monotonic_us: int) -> int:
        """True time from now until the monotonic clock shows that reading, if nothing suspends the machine."""
        remaining_us = monotonic_us - self.monotonic_us()
        if remaining_us <= 0:
            return 0
        # Rounded up: a sleep never ends early by its own clock.
        return -(-remaining_us * PARTS_PER_MILLION // (PARTS_PER_MILLION + self.drift_ppm))

    def jump(self, by_us: int) -> None:
        self.skew_us += by_us
        self.worst_skew_us = max(self.worst_skew_us, abs(self.skew_us))

    def correct(self) -> None:
        """What a time daemon does: back to the skew that this machine always has."""
        self.skew_us = self.resting_skew_us

    def mend(self) -> None:
        """The machine's clock is right from now on, and whatever corrects it keeps it so."""
        self.resting_skew_us = 0
        self.skew_us = 0

    def suspend(self) -> None:
        assert self._suspended_since_us is None
        self._suspended_since_us = self._scheduler.now_us

    def resume(self) -> None:
        """Both clocks go on from where they stood: the wall clock is now behind by the time slept."""
        assert self._suspended_since_us is not None
        slept_us = self._scheduler.now_us - self._suspended_since_us
        self._suspended_since_us = None
        self._suspended_us += slept_us
        self.skew_us -= slept_us
        self.worst_skew_us = max(self.worst_skew_us, abs(self.skew_us))

    @property
    def stood_still(self) -> bool:
        """Whether it ever did: then its monotonic clock is behind the others."""
        return self._suspended_us > 0 or self.suspended

    @property
    def suspended(self) -> bool:
        return self._suspended_since_us is not None
