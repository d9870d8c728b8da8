"""What a seed is worth: enough work, enough faults of enough kinds, the same every time, and without violations."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from angelhair import limits
from angelhair.model import BUCKETED, DATABAG, FIFO, TIMELINE
from angelhair.simulation.campaign import Campaign, play, replay_line, resume, save
from angelhair.simulation.fair_variation import FAIR
from angelhair.simulation.run import TOPICS, Judged, run_seed
from angelhair.simulation.themes import PLAIN, THEMES, VOIDED, Theme, draw_theme
from angelhair.simulation.variation import Variation, bounds_in_force

SEEDS = 100
FIFO_SEEDS = FAIR_SEEDS = TOPIC_SEEDS = TIMELINE_SEEDS = DATABAG_SEEDS = 40
"""Enough for what is asked of their average. `make test` goes on to play thousands."""

OPERATIONS_LEAST = 500
FAULTS_LEAST = 5
FAULT_KINDS_LEAST = 12
OPERATIONS_OF_ANY_SEED_LEAST = 50
"""A seed with less has hardly begun when it ends."""


def test_seeds_do_enough_meet_enough_faults_and_violate_nothing() -> None:
    """One test, so that the seeds are played once however many processes share the tests."""
    judged = [run_seed(seed) for seed in range(SEEDS)]
    assert {seed.seed: seed.violations for seed in judged if seed.violations} == {}
    assert sum(seed.operations for seed in judged) / SEEDS >= OPERATIONS_LEAST
    assert min(seed.operations for seed in judged) >= OPERATIONS_OF_ANY_SEED_LEAST
    assert sum(seed.faults for seed in judged) / SEEDS >= FAULTS_LEAST
    assert len({kind for seed in judged for kind in seed.fault_kinds}) >= FAULT_KINDS_LEAST


def test_seeds_of_fifo_queues_violate_nothing() -> None:
    """Another queue, the same worlds: what the seeds of bucketed queues do stays as it is."""
    judged = [run_seed(seed, kind=FIFO) for seed in range(FIFO_SEEDS)]
    assert {seed.seed: seed.violations for seed in judged if seed.violations} == {}
    assert sum(seed.operations for seed in judged) / FIFO_SEEDS >= OPERATIONS_LEAST


def test_seeds_of_fair_queues_violate_nothing() -> None:
    """With tenants that flood them, and priorities; some of the worlds are calm, and who is passed over is counted."""
    judged = [run_seed(seed, kind=FAIR) for seed in range(FAIR_SEEDS)]
    assert {seed.seed: seed.violations for seed in judged if seed.violations} == {}
    assert sum(not seed.faults for seed in judged) >= FAIR_SEEDS // 5
    assert sum(seed.operations for seed in judged) / FAIR_SEEDS >= OPERATIONS_LEAST


def test_seeds_of_topics_violate_nothing() -> None:
    """R16"""
    judged = [run_seed(seed, kind=TOPICS) for seed in range(TOPIC_SEEDS)]
    assert {seed.seed: seed.violations for seed in judged if seed.violations} == {}
    assert sum(seed.operations for seed in judged) / TOPIC_SEEDS >= OPERATIONS_LEAST


def test_seeds_of_timelines_violate_nothing() -> None:
    """R8"""
    judged = [run_seed(seed, kind=TIMELINE) for seed in range(TIMELINE_SEEDS)]
    assert {seed.seed: seed.violations for seed in judged if seed.violations} == {}
    assert sum(seed.operations for seed in judged) / TIMELINE_SEEDS >= OPERATIONS_LEAST


def test_seeds_of_databags_violate_nothing() -> None:
    """R15"""
    judged = [run_seed(seed, kind=DATABAG) for seed in range(DATABAG_SEEDS)]
    assert {seed.seed: seed.violations for seed in judged if seed.violations} == {}
    assert sum(not seed.faults for seed in judged) >= DATABAG_SEEDS // 20
    assert sum(seed.operations for seed in judged) / DATABAG_SEEDS >= OPERATIONS_LEAST


@pytest.mark.parametrize("kind", [BUCKETED, FIFO, FAIR, TOPICS, TIMELINE, DATABAG])
def test_a_seed_is_the_same_every_time(kind: str) -> None:
    first: list[str] = []
    second: list[str] = []
    assert run_seed(7, first.append, kind) == run_seed(7, second.append, kind)
    assert first == second and first


def test_every_theme_is_played() -> None:
    drawn = Counter(draw_theme(seed, random.Random(f"theme {seed}")).name for seed in range(SEEDS))
    assert set(drawn) == {theme.name for theme in (*THEMES, VOIDED, PLAIN)}


@pytest.mark.parametrize("theme", [*THEMES, VOIDED], ids=lambda theme: theme.name)
def test_a_theme_names_only_what_can_be_drawn(theme: Theme) -> None:
    asked: set[str] = set()

    class Listening:
        keys_in_runs = False

        def draw(self, source: random.Random, name: str, otherwise: tuple[object, ...]) -> object:
            asked.add(name)
            return True if name == "dead" else source.choice(otherwise)

    Variation.draw(random.Random(0), Listening())  # type: ignore[arg-type]
    assert set(theme.choices) <= asked


def test_bounds_are_in_force_for_a_while_only() -> None:
    before = limits.CHANGE_ROWS
    with bounds_in_force({"CHANGE_ROWS": before + 1}):
        assert before + 1 == limits.CHANGE_ROWS
    assert before == limits.CHANGE_ROWS


def test_a_campaign_adds_up_and_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    campaign = play(range(2), processes=1)
    assert campaign.seeds == 2 and campaign.failed == {}
    campaign.add(Judged(99, 10, 1, 100, ("marks: reader fell",), ("pause",)))
    assert campaign.closing_line().endswith("1 violations")
    path = tmp_path / "campaign.json"
    assert resume(path) == (Campaign(), 0)
    save(campaign, path, 100)
    assert resume(path) == (campaign, 100)
    assert str(99) in replay_line(99) and replay_line(99, FIFO).endswith("--kind fifo")
