"""The simulator finds a race that is there, and reports none where compare-and-set is used right."""

from __future__ import annotations

from angelhair.engine.store import Applied, Change, Refused, Row, RowChange, Span, Write
from angelhair.simulation import FaultPlan, Process, World
from tests.simulation.core.helpers import CONDITIONAL, PLAIN, bodies, counts

CLIENTS = 4
ROUNDS = 3
SEEDS = 50


async def naive(process: Process) -> None:
    """Read, add one, write: two of them at once lose an increment."""
    for _ in range(ROUNDS):
        (found,) = await process.store.read([Span(PLAIN)])
        count = int(str(found.rows[0].values["body"])) if found.rows else 0
        await process.store.write([Write(PLAIN, [Row(1, {"body": str(count + 1)})])])


async def careful(process: Process) -> None:
    """The same by conditional changes; a refusal brings the value to go on from."""
    for _ in range(ROUNDS):
        count: int | None = None
        while True:
            change = Change(CONDITIONAL, [RowChange(1, {"count": count}, {"count": (count or 0) + 1})])
            (outcome,) = await process.store.change([change])
            if isinstance(outcome, Applied):
                break
            assert isinstance(outcome, Refused)
            value = outcome.rows[1]["count"]
            assert isinstance(value, int)
            count = value


def _run(seed: int, careful_one: bool) -> int:
    world = World(seed, FaultPlan())
    for number in range(CLIENTS):
        process = world.start(f"client-{number}")
        process.spawn(careful(process) if careful_one else naive(process))
    world.run_for_ms(60_000)
    observer = world.start("observer")
    return counts(observer)[1] if careful_one else int(bodies(observer)[1])


def test_a_naive_counter_is_found_out() -> None:
    caught = sum(_run(seed, careful_one=False) < CLIENTS * ROUNDS for seed in range(SEEDS))
    assert caught > SEEDS * 0.9


def test_a_conditional_counter_never_fails() -> None:
    assert [_run(seed, careful_one=True) for seed in range(SEEDS)] == [CLIENTS * ROUNDS] * SEEDS


async def tokens(world: World, process: Process, confirmed: list[int], attempted: list[int]) -> None:
    """Takes numbers from a shared row under all faults: a number that was confirmed is nobody else's."""
    for _ in range(20):
        mine = world.identities.fresh()
        (found,) = await _surely_read(process)
        row = found.rows[0].values if found.rows else {}
        count = row.get("count")
        taken = (count if isinstance(count, int) else 0) + 1
        expect = {"count": count, "owner": row.get("owner")}
        attempted.append(taken)
        change = Change(CONDITIONAL, [RowChange(1, expect, {"count": taken, "owner": mine})])
        (outcome,) = await process.store.change([change])
        if isinstance(outcome, Applied):
            confirmed.append(taken)


async def _surely_read(process: Process):  # type: ignore[no-untyped-def]
    while True:
        try:
            return await process.store.read([Span(CONDITIONAL)])
        except Exception:
            await process.sleep(50)


def test_confirmed_conditional_changes_are_never_doubled_under_any_faults() -> None:
    total = unconfirmed = 0
    for seed in range(150):
        world = World(seed)
        confirmed: list[int] = []
        attempted: list[int] = []
        for number in range(CLIENTS):
            process = world.start(f"client-{number}")
            process.spawn(tokens(world, process, confirmed, attempted))
        world.run_for_ms(3_600_000)
        assert len(confirmed) == len(set(confirmed)), f"seed {seed}"
        total += len(confirmed)
        unconfirmed += len(attempted) - len(confirmed)
    assert total > 3_000
    assert unconfirmed > 1_000
