"""R10: messages with keys inside runs. What is known is another's message, never the run's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import LEDGER
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, Server, World

SETTINGS: dict[str, Any] = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": 0}
ALWAYS = 1_000


def run_of(batch: Sequence[NewMessage]) -> Run:
    return Run("task", 0, len(batch), "digest", DAY)


async def put(server: Server, batch: Sequence[NewMessage]) -> set[int] | None:
    begun = await server.engine.begin_run(server.world.account, "orders", run_of(batch))
    return None if begun is None else await server.engine.finish_run(begun, batch)


async def all_of(world: World, server: Server) -> Counter[bytes]:
    got: Counter[bytes] = Counter()
    for _ in range(4):
        got.update(delivery.body for delivery in await server.drain("orders"))
        await world.work("orders", 30 * SECOND, [server])
    return got


def lose_the_last_word(server: Server) -> None:
    server.store.next(
        "change", LEDGER, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=ALWAYS
    )


async def test_r10_once_though_its_key_has_lapsed(world: World) -> None:
    """The last word of the run is lost; its messages are taken. An hour later, well within the run's window, it is
    tried again: the key has lapsed after 5 minutes, the bucket that knows who was given what must not have gone."""
    failing, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = [NewMessage(b"m%d" % number, key=f"k{number}") for number in range(4)]
    lose_the_last_word(failing)
    with pytest.raises(StoreError):
        await put(failing, batch)
    got = await all_of(world, other)
    await world.work("orders", HOUR, [other], every_ms=MINUTE)
    assert await put(other, batch) == set()
    got += await all_of(world, other)
    assert got == {message.body: 1 for message in batch}


async def test_r10_once_though_its_key_has_moved_on_and_lapsed(world: World) -> None:
    """The ids were void when it was first tried, so the key went on to an id that the run's row does not know."""
    failing, other = world.server(), world.server()
    await other.create("orders", **{**SETTINGS, "history_ms": DAY})
    batch = [NewMessage(b"m", key="k")]
    begun = await failing.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None
    await other.put("orders", count=3)
    await all_of(world, other)
    assert (await world.marks("orders")).repair == 1
    lose_the_last_word(failing)
    with pytest.raises(StoreError):
        await failing.engine.finish_run(begun, batch)
    got = await all_of(world, other)
    await world.work("orders", HOUR, [other], every_ms=MINUTE)
    assert await put(other, batch) == set()
    got += await all_of(world, other)
    assert got == {b"m": 1}


async def test_r10_one_that_moved_on_is_not_said_to_be_known(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    batch = [NewMessage(b"m", key="k")]
    begun = await server.engine.begin_run(world.account, "orders", run_of(batch))
    assert begun is not None
    await server.put("orders", count=3)
    await all_of(world, server)
    assert (await world.marks("orders")).repair == 1
    assert await server.engine.finish_run(begun, batch) == set()
    assert await all_of(world, server) == {b"m": 1}


async def test_r10_a_key_that_a_run_keeps_is_free_for_others_after_its_window(world: World) -> None:
    """The row is kept for the run, the key is not."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    assert await put(server, [NewMessage(b"m", key="k")]) == set()
    world.wait(6 * MINUTE)
    await server.put("orders", b"another", key="k")
    assert await all_of(world, server) == {b"m": 1, b"another": 1}


async def test_r10_of_equal_keys_in_a_run_the_first_is_put(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"before", key="known")
    batch = [NewMessage(body, key=key) for body, key in [(b"a", "x"), (b"b", "x"), (b"c", "known"), (b"d", "y")]]
    assert await put(server, batch) == {1, 2}
    assert await all_of(world, server) == {b"before": 1, b"a": 1, b"d": 1}


async def test_r10_who_does_not_accept_what_is_known_is_told_so_again(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"before", key="known")
    batch = [NewMessage(b"a", key="known"), NewMessage(b"b")]

    def refuse(known: set[int]) -> None:
        if known:
            raise KeyError(known)

    for _ in range(3):
        begun = await server.engine.begin_run(world.account, "orders", run_of(batch))
        assert begun is not None
        with pytest.raises(KeyError, match=r"\{0\}"):
            await server.engine.finish_run(begun, batch, refuse)
    assert await all_of(world, server) == {b"before": 1, b"b": 1}


async def test_r10_a_run_with_keys_in_a_lane_that_was_sealed_can_be_ended(world: World) -> None:
    """Its ids were declared void and the lane takes no more."""
    server = world.server()
    await server.create("orders", lanes=2, **SETTINGS)
    batch = [NewMessage(b"m", key="k")]
    begun = None
    for number in range(8):
        run = Run(f"task {number}", 0, 1, "digest", DAY)
        begun = await server.engine.begin_run(world.account, "orders", run)
        if begun is not None and begun.entry.lane == 1:
            break
    assert begun is not None and begun.entry.lane == 1
    await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    await all_of(world, server)
    await world.work("orders", MINUTE, [server])
    for _ in range(3):
        again = await server.engine.begin_run(world.account, "orders", run)
        if again is None:
            break
        try:
            await server.engine.finish_run(again, batch)
        except AngelhairError:
            await world.work("orders", MINUTE, [server])
    assert await server.engine.begin_run(world.account, "orders", run) is None
    assert (await all_of(world, server))[b"m"] == 1
