"""docs/promises.md is complete and true: every number has its row, and the tests that a row names are about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
HIGHEST = {"A": 14, "W": 9, "D": 7, "R": 17}
NOT_YET = re.compile(r"with the (?:server|timelines|databags|AWS doors)")
FILES = re.compile(r"`(tests/[\w/]+\.py)`(?: \(row (\d+)\))?")
"""A file, and where it counts by the rows of docs/cassandra.md the row's number."""

ROWS: list[tuple[str, str, str]] = re.findall(r"^\| ([AWDR]\d+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)


def numbers_in(text: str) -> set[str]:
    """A test names a number as `test_a01_...`, `test_r10_...`, or as A1, R10 in words, also `A4 to A8`."""
    found = {f"{letter.upper()}{int(digits)}" for letter, digits in re.findall(r"\btest_([awdr])(\d\d)_", text)}
    found |= {number for number in re.findall(r"\b[AWDR]\d{1,2}\b", text) if int(number[1:])}
    for letter, first, last in re.findall(r"\b([AWDR])(\d+) to \1(\d+)\b", text):
        found |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
    return found


def test_every_number_has_one_row_in_order() -> None:
    expected = [f"{letter}{number}" for letter, last in HIGHEST.items() for number in range(1, last + 1)]
    assert [number for number, _, _ in ROWS] == expected


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "promises").glob("test_*.py")), ids=lambda path: path.name)
def test_every_number_that_a_promise_test_names_is_there(path: Path) -> None:
    assert numbers_in(path.read_text(encoding="utf-8")) <= {number for number, _, _ in ROWS}


@pytest.mark.parametrize(("number", "tests"), [(number, tests) for number, _, tests in ROWS])
def test_the_tests_of_a_row_are_about_it(number: str, tests: str) -> None:
    files = FILES.findall(tests)
    assert bool(files) != bool(NOT_YET.fullmatch(tests)), "either tests, or with what they will come"
    for name, row in files:
        text = (ROOT / name).read_text(encoding="utf-8")
        named = f"test_row_{int(row):02}_" in text if row else number in numbers_in(text)
        assert named, f"{name} is not about {number}"


def test_nothing_that_is_tested_is_called_unbuilt() -> None:
    """When a promise gets its first test, its row has to name it."""
    unbuilt = {number for number, _, tests in ROWS if NOT_YET.fullmatch(tests)}
    for path in (ROOT / "tests" / "promises").glob("test_*.py"):
        assert numbers_in(path.read_text(encoding="utf-8")) & unbuilt == set(), path.name


def test_numbers_are_found_however_they_are_written() -> None:
    assert numbers_in('def test_a01_x(): """R10, A4 to A6; not AA1 or R0"""') == {"A1", "R10", "A4", "A5", "A6"}
