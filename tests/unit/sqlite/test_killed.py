"""The embedded store survives kill -9 with all that it had confirmed."""

from __future__ import annotations

from pathlib import Path

from tests.unit.sqlite.killing import kill_repeatedly

ROUNDS = 50


def test_nothing_confirmed_is_lost_when_the_process_is_killed(on_disk: Path) -> None:
    result = kill_repeatedly(on_disk, ROUNDS)
    assert result.broken == []
    assert result.rounds == ROUNDS
    assert result.killed_at_work > ROUNDS / 2
    assert result.confirmed > 10 * ROUNDS
