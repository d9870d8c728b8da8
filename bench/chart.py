"""Small charts as SVG: curves over time, one panel each, from zero up; or bars beside each other. No library needed to
draw or to look at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
