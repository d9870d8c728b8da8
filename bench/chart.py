"""Small charts as SVG: curves over time, one panel each, from zero up; curves over settings that were tried; or bars
beside each other. No library needed to draw or to look at them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 720
PANEL_HEIGHT = 130
LEFT, RIGHT, TOP = 70, 20, 40
GAP = 50
"""Pixels."""

HEADROOM = 1.25
"""The top of a panel, as a multiple of its highest point."""

Points = Sequence[tuple[float, float]]


def chart(title: str, curves: Mapping[str, Points], unit: str = "s") -> str:
    """`unit`: of what goes to the right."""
    height = TOP + len(curves) * (PANEL_HEIGHT + GAP)
    parts = _frame(title, height)
    for index, (name, points) in enumerate(curves.items()):
        parts += _panel(name, points, TOP + index * (PANEL_HEIGHT + GAP), unit)
    return "\n".join([*parts, "</svg>", ""])


def _frame(title: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]


def _panel(name: str, points: Points, top: float, unit: str) -> list[str]:
    end = max((x for x, _ in points), default=1.0)
    highest = max((y for _, y in points), default=1.0) * HEADROOM or 1.0
    bottom, right = top + PANEL_HEIGHT, WIDTH - RIGHT

    def place(x: float, y: float) -> str:
        return f"{LEFT + x / end * (right - LEFT):.1f},{bottom - y / highest * PANEL_HEIGHT:.1f}"

    return [
        f'<text x="{LEFT}" y="{top - 6}">{escape(name)}</text>',
        f'<path d="M{LEFT},{top} V{bottom} H{right}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{highest:,.0f}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{right}" y="{bottom + 16}" text-anchor="end">{end:,.0f} {unit}</text>',
        f'<polyline points="{" ".join(place(x, y) for x, y in points)}" fill="none" stroke="#1f6feb" '
        'stroke-width="2"/>',
    ]


BAR_HEIGHT = 22
COLOURS = ("#1f6feb", "#bbbbbb")


def bars(title: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """Each group has a scale of its own and a bar for each side, in the same order everywhere."""
    rows = sum(len(sides) for sides in groups.values())
    height = TOP + rows * BAR_HEIGHT + len(groups) * GAP
    parts = _frame(title, height)
    top = TOP
    for name, sides in groups.items():
        highest = max(sides.values(), default=1.0) * HEADROOM or 1.0
        parts.append(f'<text x="{LEFT}" y="{top + 12}">{escape(name)}</text>')
        top += 20
        for colour, (side, figure) in zip(COLOURS, sides.items(), strict=False):
            width = figure / highest * (WIDTH - LEFT - RIGHT)
            parts += [
                f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR_HEIGHT - 4}" fill="{colour}"/>',
                f'<text x="{LEFT + width + 6:.1f}" y="{top + 14}">{escape(side)} {figure:,.{1 if figure < 100 else 0}f}'
                "</text>",
            ]
            top += BAR_HEIGHT
        top += GAP - 20
    return "\n".join([*parts, "</svg>", ""])


DOT = 3.5
SERIES = ("#1f6feb", "#d1570b", "#2d8a4e", "#8250df")
"""Colours that differ in brightness, too."""

LEGEND_LINE = 18


@dataclass(frozen=True)
class Panel:
    """Curves that share a scale, by name; each has a figure for every step."""

    name: str
    curves: Mapping[str, Sequence[float]]


def steps(title: str, places: Sequence[str], across: str, panels: Sequence[Panel]) -> str:
    """Curves over settings that were tried one by one: evenly spaced, whatever lies between them. `across`: what was
    set."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    top = TOP + LEGEND_LINE
    height = top + len(panels) * (PANEL_HEIGHT + GAP) + GAP // 2
    parts = _frame(title, height)
    for index, name in enumerate(names):
        x = LEFT + index * (WIDTH - LEFT - RIGHT) / max(len(names), 4)
        parts += [
            f'<path d="M{x:.1f},{TOP - 4} h22" stroke="{SERIES[index % len(SERIES)]}" stroke-width="2"/>',
            f'<text x="{x + 28:.1f}" y="{TOP}">{escape(name)}</text>',
        ]
    for index, panel in enumerate(panels):
        parts += _steps_panel(panel, places, names, top + GAP / 2 + index * (PANEL_HEIGHT + GAP))
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{height - 8}" text-anchor="middle">{escape(across)}</text>'
    )
    return "\n".join([*parts, "</svg>", ""])


def _steps_panel(panel: Panel, places: Sequence[str], names: Sequence[str], top: float) -> list[str]:
    highest = _round_top(max((figure for curve in panel.curves.values() for figure in curve), default=0.0))
    bottom, middle, right = top + PANEL_HEIGHT, top + PANEL_HEIGHT / 2, WIDTH - RIGHT
    gap = (right - LEFT) / len(places)
    xs = [LEFT + gap * (index + 0.5) for index in range(len(places))]
    parts = [
        f'<text x="{LEFT}" y="{top - 6:.1f}">{escape(panel.name)}</text>',
        f'<path d="M{LEFT},{top:.1f} V{bottom:.1f} H{right}" fill="none" stroke="#888"/>',
        f'<path d="M{LEFT},{top:.1f} H{right} M{LEFT},{middle:.1f} H{right}" fill="none" stroke="#ddd"/>',
        f'<text x="{LEFT - 6}" y="{top + 4:.1f}" text-anchor="end">{highest:,g}</text>',
        f'<text x="{LEFT - 6}" y="{middle + 4:.1f}" text-anchor="end">{highest / 2:,g}</text>',
        f'<text x="{LEFT - 6}" y="{bottom + 4:.1f}" text-anchor="end">0</text>',
        *(
            f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{escape(place)}</text>'
            for x, place in zip(xs, places, strict=True)
        ),
    ]
    for name, curve in panel.curves.items():
        colour = SERIES[names.index(name) % len(SERIES)]
        points = [(x, bottom - figure / highest * PANEL_HEIGHT) for x, figure in zip(xs, curve, strict=True)]
        parts.append(
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" '
            'stroke-width="2"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT}" fill="{colour}"/>' for x, y in points]
    return parts


def _round_top(figure: float) -> float:
    """The next of 1, 2, 5, 10, 20 … above it."""
    unit = 10.0 ** math.floor(math.log10(figure)) if figure > 0 else 1.0
    return next(unit * step for step in (1, 2, 5, 10) if unit * step >= figure)
