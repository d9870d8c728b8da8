"""What has reached one replica of three: some reads meet it, and what they asked for is all that others see of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from angelhair.engine.schema import BAG_LOCKS
from angelhair.engine.store import APPLIED, Change, Partition, Refused, Row, RowChange, Span, Write
from angelhair.errors import OutcomeUnknown
from angelhair.simulation import FaultPlan, Process, World
from angelhair.simulation import cluster as consequences
from angelhair.simulation import faults as kinds
from tests.simulation.core.helpers import CONDITIONAL, PLAIN, SEEDS, counts, drop, heal, only, read, run

PAST_ALL_MS = 11 * 60_000
"""Later than the latest at which the others get it."""
WHOLE = {"body": "x", "size": 1}


def write(process: Process) -> OutcomeUnknown | None:
    outcome: OutcomeUnknown | None = run(process, process.store.write([Write(PLAIN, [Row(1, WHOLE)])]))[0]
    return outcome


def seen(process: Process, *columns: str) -> dict[str, object]:
    rows = read(process, PLAIN, columns=columns or None).rows
    return dict(rows[0].values) if rows else {}


def on_one(read_repair: bool = True) -> Iterator[tuple[World, Process]]:
    """Worlds in which one replica alone has the row for a while, and who looks at it."""
    for seed in SEEDS:
        world = only(kinds.WRITE_ON_ONE, seed, read_repair=read_repair)
        if write(world.start("a")) is not None:
            observer = heal(world)
            if alone(world):
                yield world, observer


def alone(world: World) -> bool:
    return bool(world.cluster.state(PLAIN).on_one)


def test_it_reaches_the_others_and_is_confirmed_then_or_nobody_ever_knew() -> None:
    confirmed = 0
    for seed in SEEDS:
        world = only(kinds.WRITE_ON_ONE, seed)
        outcome = write(world.start("a"))
        observer = heal(world)
        if outcome is None:
            confirmed += 1
            assert seen(observer) == WHOLE
        else:
            assert isinstance(outcome, OutcomeUnknown)
        world.run_for_ms(PAST_ALL_MS)
        assert not world.cluster.state(PLAIN).on_one
        assert seen(observer) == WHOLE
    assert 5 < confirmed < 25


def test_a_read_that_meets_it_gives_the_others_what_it_asked_for_and_no_more() -> None:
    met = 0
    for world, observer in on_one():
        found = [seen(observer, "size") for _ in range(3)]
        later = [seen(observer) for _ in range(10)]
        if not alone(world):
            continue
        assert found == sorted(found, key=len)
        assert found[-1] in ({}, {"size": 1})
        # The rest is seen by who meets the replica himself, and by those after him.
        assert all(look in (found[-1], WHOLE) for look in later)
        assert later == sorted(later, key=len)
        met += {"size": 1} in later
        assert (world.faults.observed.get(consequences.READ_MET_ONE, 0) > 0) == (later[-1] != {})
    assert met > 1


def test_a_store_that_repairs_nothing_shows_it_to_one_read_and_not_to_the_next() -> None:
    changed_its_mind = 0
    for world, observer in on_one(read_repair=False):
        looks = [bool(seen(observer, "size")) for _ in range(20)]
        if alone(world):
            changed_its_mind += (True, False) in pairwise(looks)
            assert world.cluster.state(PLAIN).rows == {}
    assert changed_its_mind > 3


def test_of_what_lies_behind_a_full_page_nothing_is_given() -> None:
    looked = 0
    for world, observer in on_one():
        assert run(observer, observer.store.write([Write(PLAIN, [Row(0, {"size": 7})])])) == [None]
        for _ in range(10):
            assert [row.key for row in read(observer, PLAIN, columns=("size",), limit=1).rows] == [0]
        if alone(world):
            looked += 1
            assert list(world.cluster.state(PLAIN).rows) == [0]
    assert looked > 3


def test_a_drop_takes_it_too() -> None:
    for world, observer in on_one():
        assert drop(observer, PLAIN) is None
        assert seen(observer) == {}
        world.run_for_ms(PAST_ALL_MS)
        assert seen(observer) == {}


def raised(seed: int, read_repair: bool) -> tuple[World, Process]:
    """A row that holds 0, and a change to 1 of which one replica has heard that it is decided."""
    world = World(seed, FaultPlan(read_repair=read_repair))
    process = world.start("a")
    assert run(process, process.store.change([Change(CONDITIONAL, [RowChange(1, {}, {"count": 0})])])) == [APPLIED]
    world.faults.set_rates({kinds.CHANGE_ON_ONE: 1.0})
    change = Change(CONDITIONAL, [RowChange(1, {"count": 0}, {"count": 1, "owner": "a"})], set_flags={"final": 1})
    assert isinstance(run(process, process.store.change([change]))[0], OutcomeUnknown)
    return world, heal(world)


@pytest.mark.parametrize("read_repair", [True, False])
def test_a_change_is_met_or_not_until_the_next_one_completes_it(read_repair: bool) -> None:
    met = 0
    for seed in SEEDS:
        world, observer = raised(seed, read_repair)
        looks = [counts(observer)[1] for _ in range(4)]
        met += 1 in looks
        if read_repair:
            assert looks == sorted(looks)
        stale = Change(CONDITIONAL, [RowChange(1, {"count": 0}, {"count": 9})])
        assert run(observer, observer.store.change([stale])) == [Refused({"final": 1}, {1: {"count": 1, "owner": "a"}})]
        assert counts(observer) == {1: 1}
        del world
    assert met > 10


def test_of_a_change_that_was_met_others_see_the_columns_that_were_asked_for() -> None:
    parts = 0
    for seed in SEEDS:
        _, observer = raised(seed, read_repair=True)
        if read(observer, CONDITIONAL, columns=("count",)).rows[0].values != {"count": 1}:
            continue
        whole = read(observer, CONDITIONAL).rows[0].values
        assert whole in ({"count": 1}, {"count": 1, "owner": "a"})
        parts += whole == {"count": 1}
    assert parts > 0


def test_flags_may_be_seen_before_the_rows_that_came_with_them_until_a_change_that_only_tests_finds_them() -> None:
    alone = 0
    for seed in SEEDS:
        world = World(seed, FaultPlan(read_repair=True))
        process = world.start("a")
        assert run(process, process.store.change([Change(CONDITIONAL, [RowChange(1, {}, {"count": 0})])])) == [APPLIED]
        world.faults.set_rates({kinds.CHANGE_ON_ONE: 1.0})
        change = Change(CONDITIONAL, [RowChange(2, {}, {"count": 1})], set_flags={"final": 1})
        assert isinstance(run(process, process.store.change([change]))[0], OutcomeUnknown)
        observer = heal(world)
        if read(observer, CONDITIONAL, limit=1).flags.get("final") is None:
            continue
        alone += 2 not in counts(observer)
        test = Change(CONDITIONAL, expect_flags={"final": 1})
        assert run(observer, observer.store.change([test])) == [APPLIED]
        assert counts(observer) == {1: 0, 2: 1}
    assert alone > 0


def test_of_a_change_of_a_small_table_that_was_met_others_see_all() -> None:
    """Whoever has met it asked for one row and one column, and pages are of one row."""
    met, locks = 0, Partition(BAG_LOCKS, "small")
    for seed in SEEDS:
        world = World(seed, FaultPlan(page_rows=1))
        process = world.start("a")
        rows = [RowChange(key, {}, {"serving": 1, "last": key}) for key in (1, 2, 3)]
        assert run(process, process.store.change([Change(locks, rows, set_flags={"version": 1})])) == [APPLIED]
        world.faults.set_rates({kinds.CHANGE_ON_ONE: 1.0})
        again = Change(locks, [RowChange(key, {}, {"serving": 2, "last": 9}) for key in (1, 3)], {}, {"version": 2})
        run(process, process.store.change([again]))
        observer = heal(world)
        (part,) = run(observer, observer.store.read([Span(locks, 2, 2, columns=("serving",))]))
        assert [row.values for row in part.rows] == [{"serving": 1}]
        (whole,) = run(observer, observer.store.read([Span(locks)]))
        found = whole.flags["version"]
        assert [row.values["serving"] for row in whole.rows] == [found, 1, found]
        assert [row.values["last"] for row in whole.rows] == ([9, 2, 9] if found == 2 else [1, 2, 3])
        assert found >= part.flags["version"]
        met += part.flags["version"] == 2
    assert met > 5


def test_a_store_in_one_place_has_no_replica_that_is_alone() -> None:
    for seed in SEEDS:
        world = only(kinds.WRITE_ON_ONE, seed)
        world.cluster.joins = True
        assert write(world.start("a")) is None
        assert seen(heal(world)) == WHOLE
