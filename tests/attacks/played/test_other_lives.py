"""Another `expire_after` than the one that rows were written with."""

from __future__ import annotations

import pytest

from angelhair.errors import InvalidRequest
from tests.promises.timelines import DELAY, NAME, create, put, take
from tests.queues import DAY, HOUR, MINUTE, World


@pytest.mark.parametrize("expire_after_ms", [2 * HOUR, 30 * DAY, None])
async def test_a_row_that_nobody_worked_off_does_not_expire_because_later_ones_live_longer(
    world: World, expire_after_ms: int | None
) -> None:
    """Naive: write it again when half of a life is over, and take every life for one of those that are written now."""
    server = world.server()
    await create(server, lanes=1, expire_after_ms=HOUR)
    await put(server, b"-", in_ms=DELAY)
    with pytest.raises(InvalidRequest, match="expire_after"):
        await server.engine.change_queue(world.account, NAME, {"expire_after_ms": expire_after_ms})
    await world.work(NAME, 4 * HOUR, [server], every_ms=MINUTE)
    assert await take(server) == [b"-"]


async def test_nor_because_they_live_shorter(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, expire_after_ms=30 * DAY)
    await put(server, b"now", in_ms=DELAY)
    await put(server, b"later", in_ms=2 * DAY)
    await server.engine.change_queue(world.account, NAME, {"expire_after_ms": HOUR})
    await world.work(NAME, 2 * DAY, [server], every_ms=10 * MINUTE)
    await world.work(NAME, 4 * HOUR, [server], every_ms=MINUTE)
    assert sorted(await take(server)) == [b"later", b"now"]
