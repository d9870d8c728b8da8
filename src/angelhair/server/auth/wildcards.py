"""Patterns in which `*` stands for any text or none and, if told so, `?` for one character."""

from __future__ import annotations


def matches(pattern: str, text: str, one: str = "") -> bool:
    """Letter for letter, but for `*` and `one`.

    Goes back to the last star only, whose text has grown too short: no pattern can make it slow, as it could a regular
    expression.
    """
    at = place = 0
    star, taken = -1, 0
    while place < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, taken = at, place
            at += 1
        elif at < len(pattern) and (pattern[at] == text[place] or (one and pattern[at] == one)):
            at += 1
            place += 1
        elif star >= 0:
            taken += 1
            at, place = star + 1, taken
        else:
            return False
    return not pattern[at:].strip("*")
