"""R10: keys and runs whose buckets are finished, whose rows vanish, or whose queue is made again on the way."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.runs import Bodies
from angelhair.engine.schema import BODIES, KEYS, LEDGER
from angelhair.errors import OutcomeUnknown, QueueNotFound
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.promises.steps import finish_around
from tests.queues import HOUR, MINUTE, SECOND, World, numbers
from tests.runs import all_of, run_of
from tests.runs import put as put_run

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": SECOND, "history_ms": 0}
FOR_EVER = 1_000


async def test_r10_a_key_whose_message_meets_nothing_but_finished_buckets_is_not_guessed_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R10: it is unknown, and who puts it again with its key has it there once."""
    server, other = world.server(), world.server()
    await server.create("orders", dedup_window_ms=HOUR, **SETTINGS)
    monkeypatch.setattr(limits, "PUT_ROUNDS", 1)

    async def finished() -> None:
        await other.put("orders", count=3)
        await finish_around(other)
        assert (await world.marks("orders")).dropped >= 1

    server.store.next("write", BODIES, finished)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k")])
    assert isinstance(outcome, OutcomeUnknown)
    monkeypatch.undo()
    given = await server.put("orders", b"once", key="k")
    assert await other.put("orders", b"once", key="k") == given
    assert [item.body for item in await other.drain("orders")] == [b"once"]


@pytest.mark.ttl_by_test_clock
async def test_r10_a_key_that_vanishes_while_it_is_being_taken_over_is_taken(world: World) -> None:
    """R10: its window is over, and the store lets go of its row between two looks at it."""
    server = world.server()
    await server.create("orders", dedup_window_ms=MINUTE + 1)
    (first,) = await server.put("orders", b"old", key="k")
    world.wait(MINUTE + 1)

    async def vanishes() -> None:
        server.store.next("change", KEYS, later)

    async def later() -> None:
        world.wait(SECOND)

    server.store.next("change", KEYS, vanishes, after=True)
    (second,) = await server.put("orders", b"new", key="k")
    assert second != first
    assert await world.server().put("orders", b"newer", key="k") == [second]
    assert numbers(await server.drain("orders")) == [first, second]


@pytest.mark.parametrize("keyed", [False, True])
async def test_r06_a_run_of_a_queue_that_was_made_again_does_not_go_on_in_the_new_one(
    world: World, keyed: bool
) -> None:
    """R6, R10: whoever goes on with it is told that its queue is gone."""
    first, second, other = world.server(), world.server(), world.server()
    await first.create("orders", **SETTINGS)
    batch = [NewMessage(b"m%d" % number, key=f"k{number}" if keyed else None) for number in range(3)]
    assert await first.engine.begin_run(world.account, "orders", run_of(batch)) is not None
    begun = await second.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None
    await other.engine.delete_queue(world.account, "orders")
    await other.bury()
    await other.create("orders", **SETTINGS)
    second.engine.memory.distrust(world.account, "orders")
    with pytest.raises(QueueNotFound):
        await second.engine.finish_run(begun, batch)
    assert await other.drain("orders") == []


async def test_r10_a_run_that_meets_nothing_but_finished_buckets_is_not_guessed_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R10: it is unknown, and who tries it again has each of its messages there once."""
    server, other = world.server(), world.server()
    await server.create("orders", **SETTINGS)
    batch = [NewMessage(b"m%d" % number) for number in range(3)]
    begun = await server.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None

    async def finished() -> None:
        await other.put("orders", count=3)
        await finish_around(other)
        assert (await world.marks("orders")).dropped >= 1

    server.store.next("write", BODIES, finished)
    monkeypatch.setattr(limits, "PUT_ROUNDS", 1)
    with pytest.raises(OutcomeUnknown):
        await server.engine.finish_run(begun, batch)
    monkeypatch.undo()
    assert await put_run(other, run_of(batch), batch)
    assert await all_of(world, other) == {message.body: 1 for message in batch}
    assert not await put_run(server, run_of(batch), batch)


async def test_r10_a_run_that_went_on_elsewhere_while_its_writer_slept_is_there_once(world: World) -> None:
    """R10: another found nothing where it was to be, so late that it took new ids, and died. Then the writer wakes, and
    writes it where it began: what lies there must not be given out too."""
    sleeper, dying, other = world.server(), world.server(), world.server()
    await sleeper.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = Bodies([b"m%d" % number for number in range(3)])
    begun = await sleeper.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None

    async def goes_on() -> None:
        world.wait(HOUR // 2 + SECOND)
        dying.store.next(
            "change", LEDGER, NEVER_SENT, times=FOR_EVER,
            when=lambda change: change.rows[0].values["status"] == "committed",
        )
        with pytest.raises(OutcomeUnknown):
            await put_run(dying, run_of(batch), batch)

    sleeper.store.next("write", BODIES, goes_on)
    await sleeper.engine.finish_run(begun, batch)
    assert await all_of(world, other) == {message.body: 1 for message in batch}
    assert not await put_run(other, run_of(batch), batch)
