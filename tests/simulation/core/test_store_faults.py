"""Every fault of a store call occurs, is counted, and does what its name says and nothing else."""

from __future__ import annotations

import pytest

from angelhair.engine.store import APPLIED, Change, Refused, RowChange, Span
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.simulation import Process, World
from angelhair.simulation import cluster as consequences
from angelhair.simulation import faults as kinds
from angelhair.simulation.partitions import READ_MISSED_UNDECIDED, WRITE_OUTDATED
from tests.simulation.core.helpers import (
    CONDITIONAL,
    HOURS_MS,
    PLAIN,
    SEEDS,
    bodies,
    counts,
    drop,
    heal,
    only,
    quiet,
    raise_count,
    run,
    write,
)

# ---- blind writes


def test_write_unavailable_never_happens() -> None:
    world = only(kinds.WRITE_UNAVAILABLE)
    assert isinstance(write(world.start("a"), (1, "x")), Unavailable)
    assert world.faults.counts == {kinds.WRITE_UNAVAILABLE: 1}
    world.run_for_ms(24 * HOURS_MS)
    assert bodies(heal(world)) == {}


def test_write_lost_never_happens_and_nobody_knows() -> None:
    world = only(kinds.WRITE_LOST)
    assert isinstance(write(world.start("a"), (1, "x")), OutcomeUnknown)
    world.run_for_ms(24 * HOURS_MS)
    assert bodies(heal(world)) == {}


def test_write_unconfirmed_has_happened() -> None:
    for seed in SEEDS:
        world = only(kinds.WRITE_UNCONFIRMED, seed)
        assert isinstance(write(world.start("a"), (1, "x")), OutcomeUnknown)
        assert bodies(heal(world)) == {1: "x"}


@pytest.mark.parametrize(
    ("kind", "before_ms", "after_ms"),
    [(kinds.WRITE_LATE, 0, 5_000), (kinds.WRITE_VERY_LATE, 57_000, 3 * HOURS_MS)],
)
def test_a_late_write_lands_after_its_outcome_was_unknown(kind: str, before_ms: int, after_ms: int) -> None:
    missed = 0
    for seed in SEEDS:
        world = only(kind, seed)
        assert isinstance(write(world.start("a"), (1, "x")), OutcomeUnknown)
        observer = heal(world)
        world.run_for_ms(before_ms)
        missed += bodies(observer) == {}
        world.run_for_ms(after_ms)
        assert bodies(observer) == {1: "x"}
    assert missed == len(SEEDS) if before_ms else missed > len(SEEDS) // 3


def test_flush_brings_late_effects_forward() -> None:
    world = only(kinds.WRITE_VERY_LATE)
    write(world.start("a"), (1, "x"))
    assert world.cluster.late_effects == 1
    world.calm(flush=True)
    assert bodies(world.start("b")) == {1: "x"}
    assert world.cluster.late_effects == 0
    world.run_for_ms(3 * HOURS_MS)
    assert drop(world.processes["b"], PLAIN) is None
    assert bodies(world.processes["b"]) == {}


def _write_past_drop(seed: int, writer_skew_us: int) -> tuple[World, dict[int, str]]:
    world = only(kinds.WRITE_PAST_DROP, seed)
    writer, dropper = world.start("writer", skew_us=writer_skew_us), world.start("dropper", skew_us=0)
    assert isinstance(write(writer, (1, "x")), OutcomeUnknown)
    world.faults.calm()
    assert drop(dropper, PLAIN) is None
    world.run_for_ms(600_000)
    return world, bodies(dropper)


def test_a_write_past_a_drop_is_shadowed_by_it_when_clocks_are_right() -> None:
    for seed in SEEDS:
        world, found = _write_past_drop(seed, 0)
        assert found == {}
        assert world.faults.observed == {consequences.WRITE_SHADOWED: 1}


def test_a_write_past_a_drop_brings_its_row_back_when_its_clock_was_fast() -> None:
    for seed in SEEDS:
        world, found = _write_past_drop(seed, 60_000_000)
        assert found == {1: "x"}
        assert world.faults.observed == {consequences.LATE_WRITE_RESURRECTED: 1}


def test_a_write_past_a_drop_may_come_back_when_nodes_stamp_it() -> None:
    found = []
    for seed in SEEDS:
        world = only(kinds.WRITE_PAST_DROP, seed, stamped_by_client=False)
        process = world.start("a")
        write(process, (1, "x"))
        world.faults.calm()
        drop(process, PLAIN)
        world.run_for_ms(600_000)
        found.append(bodies(process))
    assert {} in found
    assert {1: "x"} in found


def test_a_write_waits_for_the_drop_only_so_long() -> None:
    world = only(kinds.WRITE_PAST_DROP)
    process = world.start("a")
    write(process, (1, "x"))
    heal(world)
    world.run_for_ms(3 * HOURS_MS)
    assert bodies(process) == {1: "x"}


def test_a_torn_write_lands_in_parts() -> None:
    rows = [(key, "x") for key in range(12)]
    first, final = set(), set()
    for seed in SEEDS:
        world = only(kinds.WRITE_TORN, seed)
        assert isinstance(write(world.start("a"), *rows), OutcomeUnknown)
        observer = heal(world)
        first.add(len(bodies(observer)))
        world.run_for_ms(3 * HOURS_MS)
        final.add(len(bodies(observer)))
    assert 12 in final
    assert final - {0, 12}, "some rows for good, others never"
    assert len(first) > 2


def test_many_rows_land_at_several_instants_and_all_of_them_before_the_confirmation() -> None:
    world = quiet(instant_rows=2)
    process, observer = world.start("a"), world.start("observer")
    seen: set[int] = set()

    async def looks() -> None:
        while True:
            (found,) = await observer.store.read([Span(PLAIN)])
            seen.add(len(found.rows))

    observer.spawn(looks())
    assert write(process, *((key, "x") for key in range(20))) is None
    assert len(world.cluster.partitions[PLAIN].rows) == 20
    assert seen & set(range(1, 20)), "somebody saw a part of it"


def test_the_higher_stamp_wins_whoever_comes_last() -> None:
    world = quiet()
    fast, slow = world.start("fast", skew_us=5_000_000), world.start("slow", skew_us=0)
    write(fast, (1, "first"))
    write(slow, (1, "second"))
    assert bodies(slow) == {1: "first"}
    world.run_for_ms(6_000)
    write(slow, (1, "third"))
    assert bodies(slow) == {1: "third"}
    assert world.faults.observed == {WRITE_OUTDATED: 1}


def test_a_process_never_stamps_backwards_when_its_clock_jumps_back() -> None:
    world = quiet()
    process = world.start("a")
    write(process, (1, "first"))
    process.clock.jump(-3_600_000_000)
    write(process, (1, "second"))
    assert bodies(process) == {1: "second"}


# ---- conditional changes


def test_change_unavailable_never_happens() -> None:
    world = only(kinds.CHANGE_UNAVAILABLE)
    assert isinstance(raise_count(world.start("a"), 1, None, 1), Unavailable)
    world.run_for_ms(24 * HOURS_MS)
    assert counts(heal(world)) == {}


def test_change_lost_never_happens_and_nobody_knows() -> None:
    world = only(kinds.CHANGE_LOST)
    assert isinstance(raise_count(world.start("a"), 1, None, 1), OutcomeUnknown)
    world.run_for_ms(24 * HOURS_MS)
    assert counts(heal(world)) == {}


def test_change_unconfirmed_is_decided_by_its_conditions() -> None:
    world = only(kinds.CHANGE_UNCONFIRMED)
    process = world.start("a")
    assert isinstance(raise_count(process, 1, None, 1), OutcomeUnknown)
    assert isinstance(raise_count(process, 2, 5, 6), OutcomeUnknown)
    assert counts(heal(world)) == {1: 1}


def test_change_undecided_is_missed_by_reads_until_the_next_change_completes_it() -> None:
    completed = 0
    for seed in range(100):
        world = only(kinds.CHANGE_UNDECIDED, seed, timeout_us=1_000)
        process = world.start("a")
        assert isinstance(raise_count(process, 1, None, 1), OutcomeUnknown)
        heal(world)
        missed = counts(process) == {}
        assert raise_count(process, 1, None, 2) == Refused({}, {1: {"count": 1}})
        assert counts(process) == {1: 1}
        if missed:
            assert world.faults.observed[READ_MISSED_UNDECIDED] == 1
        completed += world.faults.observed.get(consequences.UNDECIDED_COMPLETED, 0)
    assert completed > 20


def test_change_undecided_is_completed_by_time() -> None:
    missed = 0
    for seed in SEEDS:
        world = only(kinds.CHANGE_UNDECIDED, seed)
        process = world.start("a")
        raise_count(process, 1, None, 1)
        heal(world)
        missed += counts(process) == {}
        world.run_for_ms(600_000)
        assert counts(process) == {1: 1}
    assert missed > 5


def test_an_undecided_change_does_not_outlive_a_drop() -> None:
    world = only(kinds.CHANGE_UNDECIDED)
    process = world.start("a")
    raise_count(process, 1, None, 1)
    heal(world)
    drop(process, CONDITIONAL)
    world.run_for_ms(600_000)
    assert counts(process) == {}


@pytest.mark.parametrize("kind", [kinds.CHANGE_LATE, kinds.CHANGE_VERY_LATE])
def test_a_late_change_lands_when_its_conditions_still_hold(kind: str) -> None:
    missed = 0
    for seed in SEEDS:
        world = only(kind, seed)
        process = world.start("a")
        assert isinstance(raise_count(process, 1, None, 1), OutcomeUnknown)
        heal(world)
        missed += counts(process) == {}
        world.run_for_ms(3 * HOURS_MS)
        assert counts(process) == {1: 1}
        assert world.faults.observed == {consequences.LATE_CHANGE_APPLIED: 1}
    assert missed > len(SEEDS) // 3


def test_a_late_change_is_refused_when_they_hold_no_longer() -> None:
    world = only(kinds.CHANGE_VERY_LATE)
    process = world.start("a")
    raise_count(process, 1, None, 1)
    heal(world)
    assert raise_count(process, 1, None, 7) == APPLIED
    world.run_for_ms(3 * HOURS_MS)
    assert counts(process) == {1: 7}
    assert world.faults.observed == {consequences.LATE_CHANGE_REFUSED: 1}


def test_a_change_past_a_drop_tests_the_empty_partition() -> None:
    for expects, found in ((None, {1: 1}), (5, {})):
        world = only(kinds.CHANGE_PAST_DROP, rate=0.0)
        process = world.start("a")
        raise_count(process, 1, None, 5)
        world.faults.set_rates({kinds.CHANGE_PAST_DROP: 1.0})
        assert isinstance(raise_count(process, 1, expects, 1), OutcomeUnknown)
        heal(world)
        drop(process, CONDITIONAL)
        world.run_for_ms(600_000)
        assert counts(process) == found


def test_conditions_and_effect_are_one_instant_over_rows_and_flags() -> None:
    world = quiet()
    process = world.start("a")

    def change(*, final: int | None, **rows: tuple[int | None, int]) -> object:
        listed = [RowChange(int(key[1:]), {"count": expect}, {"count": value}) for key, (expect, value) in rows.items()]
        return run(process, process.store.change([Change(CONDITIONAL, listed, {"final": final}, {"final": 1})]))[0]

    assert change(final=None, r1=(None, 1), r2=(None, 1)) == APPLIED
    assert change(final=1, r1=(1, 2), r2=(0, 2)) == Refused({"final": 1}, {1: {"count": 1}, 2: {"count": 1}})
    assert change(final=None, r1=(1, 2)) == Refused({"final": 1}, {1: {"count": 1}})
    assert counts(process) == {1: 1, 2: 1}


def test_a_refusal_may_show_a_later_state() -> None:
    later = 0
    for seed in range(100):
        world = only(kinds.REFUSAL_READ_LATER, seed)
        process = world.start("a")
        raise_count(process, 1, None, 1)
        outcomes = []

        async def contend(
            process: Process = process, outcomes: list[object] = outcomes, before: int = 0, after: int = 0
        ) -> None:
            outcomes.extend(
                await process.store.change([Change(CONDITIONAL, [RowChange(1, {"count": before}, {"count": after})])])
            )

        process.spawn(contend(before=9, after=9))
        process.spawn(contend(before=1, after=2))
        world.run_for_ms(1_000)
        assert outcomes.count(APPLIED) == 1
        (refused,) = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
        assert refused.rows[1]["count"] in (1, 2)
        later += refused.rows[1]["count"] == 2
    assert 0 < later < 100
