"""What `doctor` finds: a check, a verdict, and what it rests on."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    GOOD = "good"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """It could not be looked at."""


class Check(NamedTuple):
    name: str
    verdict: Verdict
    found: str


def good(name: str, found: str) -> Check:
    return Check(name, Verdict.GOOD, found)


def wrong(name: str, found: str) -> Check:
    return Check(name, Verdict.WRONG, found)


def unknown(name: str, found: str) -> Check:
    return Check(name, Verdict.UNKNOWN, found)


def judged(name: str, problems: list[str], found: str) -> Check:
    """Wrong with the problems, good with what was found when there are none."""
    return wrong(name, "; ".join(problems)) if problems else good(name, found)
