"""What a benchmark found, in the words of a report: sections of figures, and bars that are met or missed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


class Unsafe(Exception):
    """What would be measured is not what is promised."""


@dataclass(frozen=True)
class Bar:
    """One figure beside what it has to reach, or must not exceed."""

    what: str
    figure: float
    limit: float
    at_most: bool = False
    digits: int = 2

    @property
    def met(self) -> bool:
        return self.figure <= self.limit if self.at_most else self.figure >= self.limit

    @property
    def verdict(self) -> str:
        return "met" if self.met else "missed"

    @property
    def row(self) -> tuple[str, ...]:
        sign = "≤" if self.at_most else "≥"
        return self.what, self._number(self.figure), f"{sign} {self._number(self.limit)}", self.verdict

    def __str__(self) -> str:
        what, figure, limit, verdict = self.row
        return f"{verdict}: {what}: {figure} (bar {limit})"

    def _number(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


BAR_HEADINGS = ("Bar", "Measured", "Wanted", "Verdict")


@dataclass
class Section:
    """One part's findings."""

    title: str
    lines: list[str] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    charts: dict[str, str] = field(default_factory=dict)
    """SVG by the last part of its file's name; a line "{chart:NAME}" says where it belongs."""
    seconds: float = 0.0

    def text(self) -> list[str]:
        return [f"## {self.title}", "", *self.lines, ""]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(headings), "|" + "---|" * len(headings), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
