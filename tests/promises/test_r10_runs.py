"""R10, for many messages at a time: a run is put once, however often it is tried, by whomever, wherever a try ended."""

from __future__ import annotations

import pytest

from angelhair.engine import ledger
from angelhair.engine.schema import BODIES, LEDGER
from angelhair.engine.store import Write
from angelhair.errors import InvalidRequest, StoreError, StoreRefused
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World
from tests.runs import ALWAYS, SETTINGS, all_of, messages, put, run_of, way

__all__ = ["way"]


async def test_r10_a_run_is_there_once_however_often_it_is_put(world: World) -> None:
    first, second = world.server(), world.server()
    await first.create("orders", **SETTINGS)
    batch = messages(10)
    assert await put(first, run_of(batch), batch)
    for server in (first, second, world.server()):
        assert not await put(server, run_of(batch), batch)
    assert await put(second, run_of(batch, "another task"), batch)
    assert await all_of(world, first) == {message.body: 2 for message in batch}
    assert not await put(first, run_of(batch), batch)


async def test_r10_the_last_word_of_a_try_is_lost(world: World) -> None:
    """All is written and given out, only the ledger does not say so; the buckets are finished, and would be dropped."""
    failing, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = messages(8)
    failing.store.next(
        "change", LEDGER, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=ALWAYS
    )
    with pytest.raises(StoreError):
        await put(failing, run_of(batch), batch)
    assert await all_of(world, other) == {message.body: 1 for message in batch}
    assert (await world.marks("orders")).repair == 2
    assert await put(other, run_of(batch), batch)
    assert not await all_of(world, other)
    world.wait(DAY + HOUR)
    await world.work("orders", MINUTE, [other])
    assert (await world.marks("orders")).floor == 2


async def test_r10_what_met_a_finished_bucket_goes_on_and_the_rest_stays(world: World) -> None:
    """Two of three buckets are written when a try ends. They are given out; the ids of the third are declared dead."""
    failing, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = messages(12)

    def is_last(write: Write) -> bool:
        return write.partition.key.endswith(".2")

    failing.store.next("write", BODIES, NEVER_SENT, when=is_last, times=ALWAYS)
    with pytest.raises(StoreError):
        await put(failing, run_of(batch), batch)
    got = await all_of(world, other)
    assert got == {message.body: 1 for message in batch[:8]}
    await other.put("orders", b"later", count=1)
    got += await all_of(world, other)
    # It ends once more, after the ledger has said where the rest goes.
    failing = world.server()
    failing.store.next("write", BODIES, NEVER_SENT, when=lambda write: not is_last(write), times=ALWAYS)
    with pytest.raises(StoreError):
        await put(failing, run_of(batch), batch)
    got += await all_of(world, other)
    assert await put(other, run_of(batch), batch)
    got += await all_of(world, other)
    assert got == {**{message.body: 1 for message in batch}, b"later": 1}


async def test_r10_a_sleeper_wakes_when_all_is_done(world: World) -> None:
    """It began the run, slept, and writes it again long after another has: nothing comes twice."""
    sleeper, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = messages(6)
    begun = await sleeper.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None
    assert await put(other, run_of(batch), batch)
    got = await all_of(world, other)
    await sleeper.engine.finish_run(begun, batch)
    got += await all_of(world, other)
    assert got == {message.body: 1 for message in batch}


async def test_r10_two_tries_at_once(world: World) -> None:
    """Both see nothing in the ledger; the ids of the slower one stay void."""
    first, second = world.server(), world.server()
    await first.create("orders", **SETTINGS)
    batch = messages(6)

    async def meanwhile() -> None:
        assert await put(second, run_of(batch), batch)

    first.store.next("change", LEDGER, meanwhile)
    assert not await put(first, run_of(batch), batch)
    assert await all_of(world, first) == {message.body: 1 for message in batch}


async def test_r10_other_messages_under_the_same_name_are_refused(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    batch = messages(3)
    begun = await server.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None
    for others, said in (
        (messages(4), "were 3 when task first tried, and are 4 now"),
        ([NewMessage(b"x")] * 3, "others than when task first tried"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            await put(server, run_of(others), others)
    assert not await all_of(world, server)
    assert await put(server, run_of(batch), batch)
    assert await all_of(world, server) == {message.body: 1 for message in batch}


async def test_r10_a_run_that_was_begun_too_long_ago_is_not_guessed_at(world: World) -> None:
    """Its buckets may be gone, and with them what was given out."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    batch = messages(3)
    begun = await server.engine.begin_run(world.account, "orders", run_of(batch, window_ms=HOUR))
    assert begun is not None
    world.wait(2 * HOUR)
    with pytest.raises(StoreRefused, match="cannot be told any more"):
        await put(world.server(), run_of(batch, window_ms=HOUR), batch)
    await server.put("orders", count=8)
    assert (await all_of(world, server)).total() == 8
    with pytest.raises(StoreRefused, match="cannot be told any more"):
        await server.engine.finish_run(begun, batch)


async def test_r10_messages_of_a_run_may_be_delayed(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    batch = [NewMessage(b"now"), NewMessage(b"later", delay_ms=HOUR)]
    assert await put(server, run_of(batch), batch)
    assert [delivery.body for delivery in await server.drain("orders")] == [b"now"]
    await world.work("orders", HOUR + SECOND, [server], every_ms=MINUTE)
    assert [delivery.body for delivery in await server.drain("orders")] == [b"later"]


async def test_r10_messages_of_a_run_may_have_keys(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"before", key="known")
    batch = [NewMessage(b"a", key="known"), NewMessage(b"b", key="new"), NewMessage(b"c"), NewMessage(b"d", key="new")]
    for tried in range(2):
        begun = await server.engine.begin_run(world.account, "orders", run_of(batch, "task" * (tried + 1)))
        assert begun is not None
        # Of the second try with another name all keys are known.
        assert await server.engine.finish_run(begun, batch) == ({0, 3} if tried == 0 else {0, 1, 3})
    assert await all_of(world, server) == {b"before": 1, b"b": 1, b"c": 2}


async def test_r10_a_queue_made_again_knows_no_runs(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    batch = messages(3)
    begun = await server.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None
    await server.engine.delete_queue(world.account, "orders")
    await server.create("orders", **SETTINGS)
    # What was begun in the old queue ends there.
    await server.engine.finish_run(begun, batch)
    assert not await all_of(world, server)
    assert await put(server, run_of(batch), batch)
    assert await all_of(world, server) == {message.body: 1 for message in batch}


@pytest.mark.parametrize("offsets", [[0], [0, 1, 2], [3, 7], [0, 2, 3, 4, 9, 11, 12]])
def test_what_is_left_of_a_run_is_written_down_and_read_again(offsets: list[int]) -> None:
    assert ledger.offsets_of(ledger.ranges(offsets)) == offsets
