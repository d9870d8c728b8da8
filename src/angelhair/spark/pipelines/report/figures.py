"""Numbers, sizes, times and durations as one reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor, log10

NOTHING = "–"

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_LARGE = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


def number(value: float) -> str:
    """At most four characters and a letter: 999, 12.3k, 4.56M."""
    for size, letter in _LARGE:
        # Not 1,000k: what is rounded up to the next letter has that letter.
        if abs(value) >= size * 0.9995:
            return f"{_three(value / size)}{letter}"
    return _three(value)


def exactly(value: int) -> str:
    return f"{value:,}"


def size(value: float) -> str:
    step = 0
    while value >= 1_024 and step < len(_SIZES) - 1:
        value /= 1_024
        step += 1
    return f"{_three(value)} {_SIZES[step]}"


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return NOTHING
    for length, letter in _DURATIONS:
        if milliseconds >= length:
            return f"{_three(milliseconds / length)} {letter}"
    return f"{_three(milliseconds)} ms"


def share(part: float, whole: float) -> str:
    if not whole:
        return NOTHING
    percent = 100 * part / whole
    return "< 0.1 %" if 0 < percent < 0.1 else f"{_three(percent)} %"


def moment(milliseconds: int | None) -> str:
    if milliseconds is None:
        return NOTHING
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _three(value: float) -> str:
    """Three digits that matter, without zeros that do not."""
    if value == 0:
        return "0"
    places = max(0, 2 - floor(log10(abs(value))))
    text = f"{value:.{min(places, 3)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
