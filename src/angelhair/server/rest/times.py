"""Times and durations as this door says them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4096)
def rfc3339(time_ms: int) -> str:
    # Messages that were received together have most of their times in common.
    seconds, milliseconds = divmod(time_ms, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def in_seconds(duration_ms: int) -> float:
    """Whole seconds as whole numbers: 30, not 30.0."""
    seconds, milliseconds = divmod(duration_ms, 1000)
    return duration_ms / 1000 if milliseconds else seconds


def readable(number: float) -> str:
    """A bound, for people: 3,153,600,000 and not 3.1536e+09."""
    return format(number, ",.12g")


def in_ms(duration_seconds: float) -> int:
    """However little it is, it is not nothing: a time-out of 0 means something else."""
    return round(duration_seconds * 1000) or int(duration_seconds > 0)
