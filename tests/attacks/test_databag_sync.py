"""Attacks on the sync of databags (D4): a change that is in force late, and a cut while somebody is served."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_LOCKS, POINTERS
from angelhair.engine.store import Span
from angelhair.model import DATABAG, Ask, NewMessage, QueueSettings
from tests.attacks.worlds import SteppedClock, new_world, played, server
from tests.faults import FaultyStore

SECOND_MS = 1_000


async def create(engine: Engine, **settings: int) -> None:
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG, **settings))  # type: ignore[arg-type]


async def visibility(engine: Engine) -> int:
    return (await engine.partitions("shop", "bag")).visibility_timeout_ms


async def partitions(engine: Engine) -> int:
    return (await engine.partitions("shop", "bag")).partitions


@played
async def test_d4_a_change_is_in_force_one_sync_later_though_the_sync_before_it_took_long() -> None:
    """A sync has read the settings, and waits ten seconds for the number of partitions. A change is stored meanwhile.
    The age of what it took over is counted from its end, not from when it asked."""
    clock, store = new_world()
    operator, faulty = server(store, clock), FaultyStore(store)
    slow = server(faulty, clock)
    await create(operator)
    changed_ms = 0

    async def changed() -> None:
        nonlocal changed_ms
        await operator.change_queue("shop", "bag", {"visibility_timeout_ms": 5 * SECOND_MS})
        changed_ms = clock.ms
        clock.ms += 10 * SECOND_MS

    def of_sync(span: Span) -> bool:
        return span.first == "partitions"

    faulty.next("read", POINTERS, changed, when=of_sync)
    await visibility(slow)
    clock.ms = changed_ms + limits.BAG_SYNC_MS + SECOND_MS
    assert await visibility(slow) == 5 * SECOND_MS


@played
async def test_d4_of_two_syncs_at_once_the_one_that_began_later_counts() -> None:
    """One has read the old settings and sleeps, another takes over the new ones; then the first wakes, and puts the old
    ones in force again."""
    clock, store = new_world()
    operator, faulty = server(store, clock), FaultyStore(store)
    slow = server(faulty, clock)
    await create(operator)

    async def changed() -> None:
        await operator.change_queue("shop", "bag", {"visibility_timeout_ms": 5 * SECOND_MS})
        assert await visibility(slow) == 5 * SECOND_MS, "the sync that began later"

    faulty.next("read", POINTERS, changed, when=lambda span: span.first == "partitions")
    await visibility(slow)
    assert await visibility(slow) == 5 * SECOND_MS, "what was in force is so no more"


async def drain(engine: Engine, clock: SteppedClock) -> None:
    for _ in range(150):
        (found,) = await engine.receive("shop", "bag", [Ask(1_000)])
        assert isinstance(found, list)
        await engine.ack("shop", "bag", [delivery.receipt for delivery in found])
        clock.ms += 5 * SECOND_MS


@played
async def test_d4_partitions_become_fewer_though_they_were_cut_anew_while_one_was_served() -> None:
    """A partition is served, of which messages are left; before the lock is confirmed it is time for a sync, which cuts
    finer. The run of before is remembered as one in which messages wait. It is no partition any more, so it is never
    served again; and as long as it is remembered the number is not halved."""
    clock, store = new_world()
    faulty = FaultyStore(store)
    engine = server(faulty, clock)
    await create(engine, min_partitions=16, max_partitions=32, visibility_timeout_ms=20 * SECOND_MS)
    for _ in range(100):
        await engine.put("shop", "bag", [NewMessage(b"m") for _ in range(20)])
    while await engine.receive("shop", "bag", [Ask(1)]) != [[]]:
        "Until all are locked, and messages wait."
    clock.ms += limits.BAG_SYNC_MS - 10

    async def time_for_a_sync() -> None:
        clock.ms += 20
        assert await partitions(engine) == 32

    faulty.next("change", BAG_LOCKS, time_for_a_sync)
    assert len((await engine.receive("shop", "bag", [Ask(1)]))[0]) == 1  # type: ignore[arg-type]
    await drain(engine, clock)
    assert await partitions(engine) == 16, "nothing is there, and all partitions that are looked at are empty"
