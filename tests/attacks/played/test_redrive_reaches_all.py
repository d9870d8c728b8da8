"""What cannot go back where it came from, because it was put into the dead-letter queue itself, holds nothing back that
can: a redrive that moves nothing says that nothing is left to move, and whoever asked for it believes that."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.model import FIFO, NewMessage
from tests.queues import SECOND, Server, World

DEAD = "dead"


async def _with_a_dead_letter(server: Server, direct: list[NewMessage], letter: NewMessage, **settings: object) -> None:
    """These are put into the dead-letter queue, and behind them comes one that died."""
    await server.create(DEAD, history_ms=0, **settings)
    await server.create("orders", dead_letter_queue=DEAD, max_deliveries=1, history_ms=0, **settings)
    for first in range(0, len(direct), 100):
        await server.put_outcomes(DEAD, direct[first : first + 100])
    await server.put_outcomes("orders", [letter])
    assert len(await server.receive("orders", 1, SECOND)) == 1
    server.world.wait(2 * SECOND)
    assert await server.receive("orders") == []
    await server.work("orders", 5 * SECOND)


async def test_more_than_one_look_shows(world: World) -> None:
    server = world.server()
    await _with_a_dead_letter(server, [NewMessage(b"direct")] * limits.PEEK_MESSAGES, NewMessage(b"died"))
    assert await server.engine.redrive(world.account, DEAD, None, 10) == 1
    (found,) = await server.receive("orders")
    assert found.body == b"died"


@pytest.mark.parametrize("most", [1, 10])
async def test_more_groups_than_are_asked_for(world: World, most: int) -> None:
    server = world.server()
    direct = [NewMessage(b"direct", key=f"k{number}", group=f"g{number}") for number in range(10)]
    await _with_a_dead_letter(server, direct, NewMessage(b"died", key="k", group="g"), kind=FIFO)
    assert await server.engine.redrive(world.account, DEAD, None, most) == 1
    (found,) = await server.receive("orders")
    assert found.body == b"died"
