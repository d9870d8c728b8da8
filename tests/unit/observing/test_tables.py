"""Counters, levels and distributions: what they say when prometheus_client collects them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import Metric

from angelhair.server.observing.tables import Counts, Distributions, Levels

BOUNDS = (0.5, 1.0, 2.5)


def said(family: Metric) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels.values()): sample.value for sample in family.samples}


def test_counts_grow_by_key() -> None:
    counts = Counts("eaten", "Things eaten.", ("dish", "plates"), ("soup", 1))
    counts.add(("noodles", 2))
    counts.add(("noodles", 2), 3)
    assert said(counts.family()) == {("eaten_total", "soup", "1"): 0, ("eaten_total", "noodles", "2"): 4}
    counts.forget(lambda key: key[0] == "noodles")
    assert said(counts.family()) == {("eaten_total", "soup", "1"): 0}


def test_what_has_no_labels_is_there_from_the_start() -> None:
    assert said(Counts("eaten", "").family()) == {("eaten_total",): 0}
    assert said(Distributions("size", "", (), BOUNDS).family())[("size_count",)] == 0
    assert said(Levels("level", "").family()) == {}


def test_levels_are_the_last_that_was_said() -> None:
    levels = Levels("level", "", ("tank",))
    levels.set(("left",), 3)
    levels.set(("left",), -1)
    assert said(levels.family()) == {("level", "left"): -1}


def test_distributions_agree_with_prometheus_clients_own() -> None:
    """Below, on and above every border."""
    own = Distributions("size", "Sizes.", ("what",), BOUNDS)
    registry = CollectorRegistry()
    theirs = Histogram("size", "Sizes.", ["what"], buckets=BOUNDS, registry=registry)
    for size in (0, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 3, 1e9):
        own.add(("noodle",), size)
        theirs.labels("noodle").observe(size)
    registry_of_own = CollectorRegistry()
    registry_of_own.register(type("Own", (), {"collect": lambda _: [own.family()]})())
    expected = [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
    assert generate_latest(registry_of_own).decode().splitlines() == expected
