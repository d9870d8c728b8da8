"""Simulated worlds of fifo queues, other ones than the simulator's own tests play. Here they are measured: what no
schedule reaches of a kind that is all about races, the coverage report shows."""

from __future__ import annotations

import pytest

from angelhair.model import FIFO
from angelhair.simulation.run import run_seed

FIRST, WORLDS, AT_ONCE = 1_000, 60, 10


@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS, AT_ONCE))
def test_no_promise_is_broken(first: int) -> None:
    found = {seed: run_seed(seed, kind=FIFO).violations for seed in range(first, first + AT_ONCE)}
    assert {seed: violations for seed, violations in found.items() if violations} == {}
