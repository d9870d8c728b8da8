"""Unavailable is answered for a deletion that has begun and will be finished: in the last of its rounds."""

from __future__ import annotations

import itertools

import pytest

from angelhair import limits
from angelhair.engine.schema import QUEUES
from angelhair.errors import OutcomeUnknown, Unavailable
from tests.faults import LOSE_ANSWER
from tests.queues import MINUTE, World


@pytest.mark.parametrize("others", [limits.PUT_ROUNDS - 2, limits.PUT_ROUNDS - 1])
async def test_delete_last_round(world: World, others: int) -> None:
    deleter, other = world.server(), world.server()
    await other.create("orders")
    values = itertools.count(10_000)

    async def changed() -> None:
        await other.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": next(values)})

    deleter.store.next("change", QUEUES, changed, times=others)
    deleter.store.next("change", QUEUES, LOSE_ANSWER)
    try:
        await deleter.engine.delete_queue(world.account, "orders")
        said = None
    except (Unavailable, OutcomeUnknown) as error:
        said = error
    world.wait(11 * MINUTE)
    await other.bury()
    names, _ = await other.engine.list_queues(world.account)
    assert not (isinstance(said, Unavailable) and names == []), (said, names)


@pytest.mark.parametrize("others", [limits.PUT_ROUNDS - 2, limits.PUT_ROUNDS - 1])
async def test_change_last_round(world: World, others: int) -> None:
    changer, other = world.server(), world.server()
    await other.create("orders")
    values = itertools.count(10_000)

    async def changed() -> None:
        await other.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": next(values)})

    changer.store.next("change", QUEUES, changed, times=others)
    changer.store.next("change", QUEUES, LOSE_ANSWER)
    changer.store.next("change", QUEUES, changed)  # before the same is sent again
    try:
        await changer.engine.change_queue(world.account, "orders", {"history_ms": 777_000})
        said = None
    except (Unavailable, OutcomeUnknown) as error:
        said = error
    settings = (await world.queue("orders")).settings
    assert not (isinstance(said, Unavailable) and settings.history_ms == 777_000), (said, settings)
