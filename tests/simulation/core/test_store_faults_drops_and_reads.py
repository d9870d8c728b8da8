"""As test_store_faults.py, for drops, reads and what concerns all calls alike."""

from __future__ import annotations

import pytest

from angelhair.engine.store import APPLIED, Applied, Change, Row, RowChange, Span, Write
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.simulation import Process, World
from angelhair.simulation import cluster as consequences
from angelhair.simulation import faults as kinds
from tests.simulation.core.helpers import (
    CONDITIONAL,
    HOURS_MS,
    PLAIN,
    SEEDS,
    bodies,
    counts,
    drop,
    only,
    quiet,
    raise_count,
    read,
    run,
    write,
)

# ---- drops


def test_drop_unavailable_and_drop_lost_remove_nothing() -> None:
    for kind, error in ((kinds.DROP_UNAVAILABLE, Unavailable), (kinds.DROP_LOST, OutcomeUnknown)):
        world = only(kind)
        process = world.start("a")
        write(process, (1, "x"))
        assert isinstance(drop(process, PLAIN), error)
        world.run_for_ms(24 * HOURS_MS)
        assert bodies(process) == {1: "x"}
        assert world.faults.counts == {kind: 1}


def test_drop_unconfirmed_has_happened() -> None:
    world = only(kinds.DROP_UNCONFIRMED)
    process = world.start("a")
    write(process, (1, "x"))
    assert isinstance(drop(process, PLAIN), OutcomeUnknown)
    assert bodies(process) == {}


@pytest.mark.parametrize("kind", [kinds.DROP_LATE, kinds.DROP_VERY_LATE])
def test_a_late_drop_removes_what_was_there_when_it_began_and_nothing_newer(kind: str) -> None:
    newer = 0
    for seed in SEEDS:
        world = only(kind, seed)
        process = world.start("a")
        write(process, (1, "old"))
        raise_count(process, 1, None, 1)
        assert isinstance(drop(process, PLAIN), OutcomeUnknown)
        assert isinstance(drop(process, CONDITIONAL), OutcomeUnknown)
        write(process, (2, "new"))
        raise_count(process, 2, None, 1)
        world.run_for_ms(3 * HOURS_MS)
        assert bodies(process) == {2: "new"}
        assert counts(process) == {2: 1}
        newer += world.faults.observed.get(consequences.DROP_LEFT_CELLS, 0)
    assert newer > len(SEEDS) // 2


def test_a_late_drop_leaves_the_newer_cells_of_a_row() -> None:
    world = only(kinds.DROP_VERY_LATE)
    process = world.start("a")
    raise_count(process, 1, None, 1)
    drop(process, CONDITIONAL)
    own = Change(CONDITIONAL, [RowChange(1, {"count": 1}, {"owner": "me"})], {}, {"final": 1})
    assert run(process, process.store.change([own])) == [APPLIED]
    world.run_for_ms(3 * HOURS_MS)
    found = read(process, CONDITIONAL)
    assert found.rows == [Row(1, {"owner": "me"})]
    assert found.flags == {"final": 1}


def test_a_drop_removes_what_a_fast_clock_wrote_before_it_began() -> None:
    world = quiet()
    fast, slow = world.start("fast", skew_us=3_600_000_000), world.start("slow", skew_us=0)
    write(fast, (1, "x"))
    assert drop(slow, PLAIN) is None
    assert bodies(slow) == {}
    write(slow, (2, "confirmed after the drop"))
    assert bodies(slow) == {2: "confirmed after the drop"}


# ---- reads and the rest


def test_read_unavailable() -> None:
    world = only(kinds.READ_UNAVAILABLE)
    process = world.start("a")
    with pytest.raises(Unavailable):
        read(process, PLAIN)
    with pytest.raises(Unavailable):
        run(process, process.store.time_ms())
    assert world.faults.counts == {kinds.READ_UNAVAILABLE: 2}


def test_a_long_span_is_read_at_several_instants_with_the_oldest_flags() -> None:
    torn = 0
    for seed in SEEDS:
        world = quiet(seed, page_rows=2)
        process, other = world.start("a"), world.start("b")
        for key in range(10):
            raise_count(process, key, None, 0)

        async def raises(other: Process = other) -> None:
            rows = [RowChange(key, {"count": 0}, {"count": 1}) for key in range(10)]
            await other.sleep(3)
            assert await other.store.change([Change(CONDITIONAL, rows, {}, {"final": 1})]) == [APPLIED]

        other.spawn(raises())
        found = read(process, CONDITIONAL)
        values = [row.values["count"] for row in found.rows]
        assert len(values) == 10
        assert values == sorted(values), "later pages are never older"
        if found.flags:
            assert values == [1] * 10, "flags are never younger than rows"
        torn += len(set(values)) == 2
    assert torn > 5


def test_spans_of_one_read_are_read_at_different_instants() -> None:
    seen = set()
    for seed in range(60):
        world = quiet(seed)
        process, other = world.start("a"), world.start("b")
        raise_count(process, 1, None, 0)

        async def reads(process: Process = process) -> tuple[object, ...]:
            found = await process.store.read([Span(CONDITIONAL), Span(CONDITIONAL)])
            return tuple(slice_.rows[0].values["count"] for slice_ in found)

        other.spawn(other.store.change([Change(CONDITIONAL, [RowChange(1, {}, {"count": 1})])]))
        seen.add(run(process, reads()))
    assert seen == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_slow_messages_arrive() -> None:
    world = only(kinds.SLOW)
    process = world.start("a")
    assert write(process, (1, "x")) is None
    assert world.now_ms >= 5
    assert world.faults.counts[kinds.SLOW] == 2


def test_rows_expire_by_time_and_cells_of_a_row_each_by_their_own() -> None:
    world = quiet()
    process = world.start("a")
    write(process, (1, "short"), (2, "short"), ttl_seconds=10)
    size = Write(PLAIN, [Row(2, {"size": 5})])
    run(process, process.store.write([size]))
    world.run_for_ms(10_000)
    assert read(process, PLAIN).rows == [Row(2, {"size": 5})]


def test_an_outage_fails_everything_for_everybody() -> None:
    said = set()
    for seed in SEEDS:
        world = quiet(seed)
        process = world.start("a")
        world.cluster.outage = True
        for outcome in (write(process, (1, "x")), raise_count(process, 1, None, 1), drop(process, PLAIN)):
            assert isinstance(outcome, Unavailable | OutcomeUnknown)
            said.add(type(outcome))
        with pytest.raises(Unavailable):
            read(process, PLAIN)
        world.calm()
        assert bodies(process) == {}
        assert counts(process) == {}
    assert said == {Unavailable, OutcomeUnknown}


def test_an_outage_in_the_middle_of_a_write_of_many_instants_is_never_said_not_to_have_happened() -> None:
    halves = 0
    for seed in range(60):
        world = quiet(seed, instant_rows=1)
        process, observer = world.start("a"), world.start("observer")
        task = process.spawn(process.store.write([Write(PLAIN, [Row(key, {"body": "x"}) for key in range(6)])]))

        def fall(world: World = world) -> None:
            world.cluster.outage = True

        world.at_ms(0.6, fall)
        (outcome,) = world.run_until_done(task)
        world.calm()
        landed = len(bodies(observer))
        if isinstance(outcome, Unavailable):
            assert landed == 0
        halves += 0 < landed < 6
    assert halves > 10


@pytest.mark.parametrize(
    ("cut", "error", "happens"),
    [
        (kinds.CUT_REFUSED, Unavailable, False),
        (kinds.CUT_REQUESTS, OutcomeUnknown, False),
        (kinds.CUT_ANSWERS, OutcomeUnknown, True),
    ],
)
def test_a_process_that_is_cut_off(cut: str, error: type[Exception], happens: bool) -> None:
    world = quiet()
    process, observer = world.start("a"), world.start("b")
    write(observer, (9, "dropped by a"))
    process.cut = cut
    assert isinstance(raise_count(process, 1, None, 1), error)
    assert isinstance(drop(process, PLAIN), error)
    assert isinstance(write(process, (1, "x")), error)
    with pytest.raises(Unavailable):
        read(process, PLAIN)
    assert bodies(observer) == ({1: "x"} if happens else {9: "dropped by a"})
    assert counts(observer) == ({1: 1} if happens else {})
    process.cut = None
    assert isinstance(raise_count(process, 2, None, 1), Applied)


def test_the_stores_clock_is_true_time_within_its_nodes_skew() -> None:
    world = World(5, quiet(skewed=True).plan)
    process = world.start("a", skew_us=60_000_000)
    true_ms = world.cluster.scheduler.now_us // 1_000 + 1_750_000_000_000
    assert abs(run(process, process.store.time_ms()) - true_ms) <= 20 + 5


def test_a_mistake_of_the_caller_stops_the_world() -> None:
    world = quiet()
    process = world.start("a")
    blind = Write(CONDITIONAL, [Row(1, {"count": 1})])
    with pytest.raises(ValueError, match="only changed conditionally"):
        run(process, process.store.write([blind]))
    with pytest.raises(ValueError, match="no column"):
        run(process, process.store.write([Write(PLAIN, [Row(1, {"nobody": 1})])]))
    with pytest.raises(ValueError, match="names a key twice"):
        run(process, process.store.change([Change(CONDITIONAL, [RowChange(1, {}, {}), RowChange(1, {}, {})])]))
