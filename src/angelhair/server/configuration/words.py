"""A guess at what a mistyped name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile

LEAST_ALIKE = 0.6
"""Of what is left of two names without the words that they begin with."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence; empty when nothing comes near."""
    written = name.lower()
    by_lower = {one.lower(): one for one in known if _may_be(written, one.lower())}
    near = get_close_matches(written, sorted(by_lower), 1, cutoff=0.75)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


def _may_be(written: str, known: str) -> bool:
    """A long word at the beginning that is right makes everything behind it look alike."""
    if written.count(".") != known.count("."):
        return False
    shared = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(written, known, strict=False)))
    begin = max(shared.rfind("_"), shared.rfind(".")) + 1
    return SequenceMatcher(None, written[begin:], known[begin:]).ratio() >= LEAST_ALIKE
