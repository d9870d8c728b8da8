"""Charts as SVG, drawn by hand: lines and areas over time, bars over time, bars by size."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from angelhair.spark.pipelines.report.axes import (
    LEFT,
    TOP,
    Frame,
    Scale,
    Words,
    columns,
    duration_ticks,
    linear,
    logarithmic,
    picture,
    round_ticks,
    rows,
    time_ticks,
)
from angelhair.spark.pipelines.report.figures import duration, moment

WIDE, HALF = Frame(1_040, 260), Frame(510, 240)
PIXELS_A_TIME = 80


class Line(NamedTuple):
    """One line over time. None is a gap: nothing was measured."""

    name: str
    look: str
    """The class that says its colour."""
    values: Sequence[float | None]
    filled: bool = False


def legend(lines: Sequence[Line]) -> str:
    names = "".join(f'<span class="{line.look}">{escape(line.name)}</span>' for line in lines)
    return f'<p class="legend">{names}</p>'


def counts_over_time(frame: Frame, label: str, times: Sequence[int], lines: Sequence[Line], words: Words) -> str:
    """From 0 up."""
    ticks = round_ticks(max((value for line in lines for value in line.values if value is not None), default=0))
    y = linear(0, ticks[-1], frame.bottom, TOP)
    return _over_time(frame, label, times, lines, rows(frame, ticks, y, words), y, words)


def durations_over_time(frame: Frame, label: str, times: Sequence[int], lines: Sequence[Line]) -> str:
    """By powers of ten: a wait of a minute and one of a millisecond are both seen."""
    values = [value for line in lines for value in line.values if value is not None]
    ticks = duration_ticks(min(values, default=1), max(values, default=10))
    y = logarithmic(ticks[0], ticks[-1], frame.bottom, TOP)
    return _over_time(frame, label, times, lines, rows(frame, ticks, y, duration), y, duration)


def bars_over_time(frame: Frame, label: str, times: Sequence[int], line: Line, words: Words) -> str:
    ticks = round_ticks(max((value or 0 for value in line.values), default=0))
    y = linear(0, ticks[-1], frame.bottom, TOP)
    x, step = _along(frame, times)
    drawn = rows(frame, ticks, y, words) + _times_below(frame, times, x)
    for time, value in zip(times, line.values, strict=True):
        if value:
            drawn.append(_bar(x(time) - step * 0.4, y(value), step * 0.8, frame.bottom, line.look))
    return picture(frame, label, [*drawn, *_told(frame, times, [line], words, x, step)])


def histogram(frame: Frame, label: str, bars: Sequence[tuple[str, int]], words: Words) -> str:
    """Each bar with its name below; where they are many, every other one."""
    ticks = round_ticks(max((count for _, count in bars), default=0))
    y = linear(0, ticks[-1], frame.bottom, TOP)
    step = (frame.right - LEFT) / max(1, len(bars))
    every = 1 + len(bars) // 9
    drawn = rows(frame, ticks, y, words)
    names = []
    for index, (name, count) in enumerate(bars):
        begin = LEFT + index * step
        if count:
            bar = _bar(begin + step * 0.1, y(count), step * 0.8, frame.bottom, "sizes")
            drawn.append(f"<g>{bar}<title>up to {escape(name)}: {count:,}</title></g>")
        if index % every == 0:
            names.append((begin + step / 2, name))
    return picture(frame, label, [*drawn, *columns(frame, names)])


def shares(parts: Sequence[tuple[str, int]]) -> str:
    """One bar that is cut by how many of each there are."""
    whole = sum(count for _, count in parts) or 1
    frame = Frame(1_040, 26)
    drawn, at = [], 0.0
    for index, (name, count) in enumerate(parts):
        width = count / whole * frame.width
        drawn.append(
            f'<g><rect class="share{index}" x="{at:.1f}" y="0" width="{max(width - 2, 1):.1f}" height="26" rx="3"/>'
            f"<title>{escape(name)}: {count:,}</title></g>"
        )
        at += width
    return picture(frame, "States", drawn)


def _over_time(
    frame: Frame, label: str, times: Sequence[int], lines: Sequence[Line], drawn: list[str], y: Scale, words: Words
) -> str:
    x, step = _along(frame, times)
    drawn = drawn + _times_below(frame, times, x)
    for line in lines:
        for run in _runs(times, line.values):
            points = " ".join(f"{x(time):.1f},{y(value):.1f}" for time, value in run)
            if line.filled:
                begin, end = x(run[0][0]), x(run[-1][0])
                area = f"{begin:.1f},{frame.bottom} {points} {end:.1f},{frame.bottom}"
                drawn.append(f'<polygon class="{line.look}" points="{area}"/>')
            if len(run) == 1:
                drawn.append(f'<circle class="{line.look}" cx="{x(run[0][0]):.1f}" cy="{y(run[0][1]):.1f}" r="2.5"/>')
            drawn.append(f'<polyline class="{line.look}" points="{points}"/>')
    return picture(frame, label, [*drawn, *_told(frame, times, lines, words, x, step)])


def _along(frame: Frame, times: Sequence[int]) -> tuple[Scale, float]:
    """Where a time is; and how wide one step is."""
    step = (frame.right - LEFT) / max(1, len(times))
    return linear(times[0], times[-1], LEFT + step / 2, frame.right - step / 2), step


def _times_below(frame: Frame, times: Sequence[int], x: Scale) -> list[str]:
    wanted = (frame.right - LEFT) // PIXELS_A_TIME
    return columns(frame, [(x(time), text) for time, text in time_ticks(times[0], times[-1], wanted)])


def _runs(times: Sequence[int], values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The parts of a line between its gaps."""
    runs: list[list[tuple[int, float]]] = [[]]
    for time, value in zip(times, values, strict=True):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((time, value))
    return [run for run in runs if run]


def _bar(begin: float, top: float, width: float, bottom: float, look: str) -> str:
    height = max(bottom - top, 1)
    return (
        f'<rect class="{look}" x="{begin:.1f}" y="{bottom - height:.1f}" width="{max(width, 1):.1f}" '
        f'height="{height:.1f}" rx="1.5"/>'
    )


def _told(
    frame: Frame, times: Sequence[int], lines: Sequence[Line], words: Words, x: Scale, step: float
) -> list[str]:
    """What a pointer that rests over a step is told."""
    drawn = []
    for index, time in enumerate(times):
        said = [f"{line.name} {words(value)}" for line in lines if (value := line.values[index]) is not None]
        if said:
            words_here = escape(f"{moment(time * 1_000)[:-3]}\n{', '.join(said)}")
            drawn.append(
                f'<g class="told"><rect x="{x(time) - step / 2:.1f}" y="{TOP}" width="{step:.1f}" '
                f'height="{frame.bottom - TOP}"/><title>{words_here}</title></g>'
            )
    return drawn
