"""The embedded store survives the loss of power with all that it had confirmed, because it syncs every commit."""

from __future__ import annotations

from pathlib import Path

from tests.unit.sqlite.power_loss import lose_power

STATES = 300


def test_nothing_confirmed_is_lost_with_the_power(tmp_path: Path) -> None:
    result = lose_power(tmp_path, STATES)
    assert result.complaints == []
    assert result.states == STATES
    assert result.confirmed > 10 * STATES
    assert result.checkpoints > 2


def test_the_control_without_syncs_at_commit_loses(tmp_path: Path) -> None:
    """If synchronous=NORMAL lost nothing either, the test above would prove nothing."""
    result = lose_power(tmp_path, STATES // 3, durability="normal")
    assert result.broken_states > STATES // 10
