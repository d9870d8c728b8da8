"""The pattern of due times says exactly what a due time may be."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from angelhair.server.rest.errors import Refusal
from angelhair.server.rest.patterns import DUE_PATTERN
from angelhair.server.rest.query import due_ms
from angelhair.server.rest.times import in_ms, in_seconds, rfc3339


def test_every_day_from_1970_to_2099_and_no_other() -> None:
    pattern = re.compile(DUE_PATTERN)
    for year in range(1965, 2105):
        for month in range(14):
            for day in range(33):
                try:
                    real = 1970 <= date(year, month, day).year <= 2099
                except ValueError:
                    real = False
                assert bool(pattern.search(f"{year:04d}-{month:02d}-{day:02d}T00:00:00Z")) is real, (year, month, day)


@pytest.mark.parametrize(("text", "expected"), [
    ("1970-01-01T00:00:00Z", 0), ("2026-11-15T13:00:00.123Z", 1_794_747_600_123),
    ("2026-11-15t14:00:00.1+01:00", 1_794_747_600_100),
    ("2026-11-15T12:59:59.999999999z", 1_794_747_600_000), ("2096-02-29T00:00:00-23:59", 3_981_398_340_000),
    ("1794747600", 1_794_747_600_000),
    ("1794747600.0004", 1_794_747_600_000), ("1.7947476e9", 1_794_747_600_000),
])
def test_due(text: str, expected: int) -> None:
    assert due_ms("due", text) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("text", [
    "", "Z", "2026-11-15 13:00:00Z", "2026-11-15T13:00:00Z ", "2026-11-15T13:00:00Z\n", "２０２６-11-15T13:00:00Z",
])
def test_not_due(text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        due_ms("due", text)
    assert refusal.value.field == "due"


def test_times_and_back() -> None:
    moment = datetime(2026, 11, 15, 13, tzinfo=UTC)
    for milliseconds in (0, 1, 999, 86_399_999, 10**11, 100 * 365 * 86_400_000):
        time_ms = round((moment + timedelta(milliseconds=milliseconds)).timestamp() * 1000)
        assert round(datetime.fromisoformat(rfc3339(time_ms)).timestamp() * 1000) == time_ms
        assert in_ms(in_seconds(milliseconds)) == milliseconds
    assert repr(in_seconds(30_000)) == "30"
