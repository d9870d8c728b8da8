"""A1, A3: nothing confirmed is lost and nothing acked comes back when a server on a SQLite file is killed -9."""

from __future__ import annotations

from pathlib import Path

from tests.killed.lives import live_and_die

LIVES = 50


def test_a_server_killed_under_load_loses_nothing(on_disk: Path) -> None:
    killed = live_and_die(on_disk / "killed.db", LIVES)
    print(killed.account)
    assert killed.account.broken == []
    assert killed.killed_at_work > LIVES / 2
    assert killed.account.confirmed > 20 * LIVES
    assert killed.account.acked > 10 * LIVES
    assert killed.account.duplicates > 0
    assert killed.account.unknown > 0, "no put was cut off by a kill: the kills shook nothing"
