"""A small chart as SVG: curves over time, one panel each, from zero up. No library needed to draw or to look at it."""

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
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    for index, (name, points) in enumerate(curves.items()):
        parts += _panel(name, points, TOP + index * (PANEL_HEIGHT + GAP), unit)
    return "\n".join([*parts, "</svg>", ""])


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
