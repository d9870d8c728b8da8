"""A guess at what a mistyped name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence; empty when nothing comes near."""
    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), sorted(by_lower), 1, cutoff=0.75)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""
