"""Which ranges of a bucket are read for messages that are wanted: those that lie close together share one."""

from __future__ import annotations

from collections.abc import Iterable

from angelhair import limits
from angelhair.engine.bucketed.lane import Lane


def stretches(lane: Lane, numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The first and last of each, in order: what lies between two of them is not worth reading."""
    ordered = sorted(numbers)
    between = limits.STRETCH_GAP_BYTES // (lane.view.typical_body_bytes or limits.FIRST_BODY_BYTES)
    found: list[tuple[int, int]] = []
    first = last = ordered[0]
    for number in ordered[1:]:
        if number - last - 1 > between:
            found.append((first, last))
            first = number
        last = number
    return [*found, (first, last)]
