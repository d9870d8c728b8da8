"""Where a serving of a run begins, and what it passes over (A1).

It begins at the lowest id of the oldest epoch. If what was given there the last time is still there it begins behind
that, and so does the next one, until the end is reached: what nobody deletes keeps nothing behind it from being served.
Where something always comes behind there is no end. So one of a few servings that pass others over *comes back*: to
the lowest id at first, and then on from where the last such one has got, up to what had been passed over when it was at
the lowest; and to that again. So what was passed over has its turn as well, whatever comes. Where servings are rare the
first of them comes back at once: what failed only once has waited for long enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.engine.databag import ids

Point = tuple[int, int]
"""An epoch, and an id of it: in that order runs are read."""

BEGINNING: Point = (-1, -1)


class Passed(NamedTuple):
    """What a serving left to be known of what it and those before have passed over."""

    servings: int = 0
    """That passed others over, since the last one that came back."""
    front: int | None = None
    """The id up to which all was given or passed over."""
    back: int | None = None
    """The id up to which those that came back have given."""
    until: int | None = None
    """Behind this they begin at the lowest id again."""


NOTHING_PASSED = Passed()


class Last(NamedTuple):
    """What a run has given the last time, and where the next serving begins by that."""

    given: frozenset[int]
    end: Point
    """Where it begins: behind this, if any of these is still there."""
    passed: Passed
    latest: int
    """The open epoch, by which ids tell theirs."""
    at_once: bool = False
    """It comes back though nothing was passed over yet."""

    @property
    def comes_back(self) -> bool:
        return self.at_once or self.passed.servings >= limits.BAG_PASSED_SERVINGS

    def point(self, number: int | None) -> Point:
        return BEGINNING if number is None else (ids.epoch_of(number, self.latest), number)

    @property
    def behind(self) -> bool:
        """Others lay before what was given: it begins there in any case."""
        return self.passed.servings > 0

    def then(self, taken: Sequence[int], beyond: int, passes: bool) -> Passed:
        """After a serving of these: so many lay `beyond` where it began, and others before that if it `passes` some."""
        end, before = taken[-1], self.passed
        if len(taken) > beyond:
            # It has reached the end, and what came first comes first.
            return NOTHING_PASSED
        if not self.comes_back:
            if not passes:
                return NOTHING_PASSED
            return Passed(before.servings + 1, end, before.back, before.until if self.behind else end)
        if self.at_once and self.given.isdisjoint(taken):
            return NOTHING_PASSED
        front = before.front
        if self.point(end) >= self.point(front):
            return Passed(1, end, None, end)
        if self.point(end) >= self.point(before.until):
            return Passed(1, front, None, front)
        return Passed(1, front, end, before.until)


def last_of(given: frozenset[int], last_given: int | None, passed: Passed, latest: int, long_ago: bool) -> Last:
    """`long_ago`: so that what was given then, and is still there, is to come first."""
    at_once = long_ago and not passed.servings and last_given is not None
    if at_once or (passed.servings and passed.front is None):
        # The latter is of a time when nobody came back.
        passed = Passed(passed.servings, last_given, None, last_given)
    last = Last(given, BEGINNING, passed, latest, at_once)
    if last.comes_back:
        return last._replace(end=last.point(passed.back))
    return last._replace(end=last.point(passed.front if last.behind else last_given))
