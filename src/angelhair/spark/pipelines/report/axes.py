"""Where things are in a chart: scales, ticks, and the frame that all charts have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 26

TICK_STEPS_SECONDS = (
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000
)
DAY_SECONDS = 86_400

Scale = Callable[[float], float]
Words = Callable[[float], str]


class Frame(NamedTuple):
    """What is left for the drawing, in the units of the picture."""

    width: int
    height: int

    @property
    def right(self) -> int:
        return self.width - RIGHT

    @property
    def bottom(self) -> int:
        return self.height - BOTTOM


def linear(first: float, last: float, begin: float, end: float) -> Scale:
    length = (last - first) or 1
    return lambda value: begin + (value - first) / length * (end - begin)


def logarithmic(first: float, last: float, begin: float, end: float) -> Scale:
    straight = linear(log10(first), log10(last), begin, end)
    return lambda value: straight(log10(max(value, first)))


def round_ticks(top: float, wanted: int = 4) -> list[float]:
    """From 0 to the first round number at or above the top."""
    if top <= 0:
        return [0, 1]
    rough = top / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    # Nothing is counted in parts.
    step = max(1.0, step)
    return [step * index for index in range(ceil(top / step * 0.999) + 1)]


def duration_ticks(low: float, high: float) -> list[float]:
    """Lengths that have a name, from at or below the lowest to at or above the highest."""
    named = [1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 6 * 3_600_000, 86_400_000, 10 * 86_400_000]
    first = max((index for index, tick in enumerate(named) if tick <= max(low, 1)), default=0)
    last = next((index for index, tick in enumerate(named) if tick >= high), len(named) - 1)
    return [float(tick) for tick in named[first : max(last, first + 1) + 1]]


def time_ticks(first: int, last: int, wanted: int) -> list[tuple[int, str]]:
    """At round times, with the day where one begins."""
    span = max(last - first, 60)
    step = next((step for step in TICK_STEPS_SECONDS if span / step <= wanted), TICK_STEPS_SECONDS[-1])
    ticks = []
    for time in range(-(-first // step) * step, last + 1, step):
        when = datetime.fromtimestamp(time, UTC)
        begins_day = time % DAY_SECONDS == 0
        ticks.append((time, when.strftime("%d %b") if begins_day or step >= DAY_SECONDS else when.strftime("%H:%M")))
    return ticks


def picture(frame: Frame, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(label)}">'
        + "".join(parts) + "</svg>"
    )


def rows(frame: Frame, ticks: Sequence[float], y: Scale, words: Words) -> list[str]:
    """A line across for each tick, and what it stands for."""
    drawn = []
    for index, tick in enumerate(ticks):
        at = y(tick)
        kind = "base" if index == 0 else "grid"
        drawn.append(f'<line class="{kind}" x1="{LEFT}" x2="{frame.right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        drawn.append(f'<text class="tick" x="{LEFT - 8}" y="{at + 3.5:.1f}" text-anchor="end">{words(tick)}</text>')
    return drawn


def columns(frame: Frame, ticks: Sequence[tuple[float, str]]) -> list[str]:
    """What stands below, at places along the bottom."""
    return [
        f'<text class="tick" x="{at:.1f}" y="{frame.bottom + 17}" text-anchor="middle">{escape(text)}</text>'
        for at, text in ticks
    ]
