"""A first look at timelines."""

from __future__ import annotations

from tests.promises.timelines import NAME, create, pass_time, put, receive, take, touch
from tests.queues import MINUTE, SECOND, World


async def test_a_message_is_given_when_it_is_due(world: World) -> None:
    server = world.server()
    await create(server)
    await put(server, b"later", in_ms=MINUTE)
    await put(server, b"now")
    assert await receive(server) == []
    world.wait(5 * SECOND)
    assert await take(server) == [b"now"]
    await pass_time(server, 54 * SECOND)
    assert await take(server) == []
    world.wait(SECOND)
    assert await take(server) == [b"later"]
    assert await take(server) == []
    await pass_time(server, 10 * SECOND)
    assert len((await touch(server, "a")).lanes) == 6


async def test_life(world: World) -> None:
    server = world.server()
    await create(server)
    await put(server, b"a", b"b")
    await server.engine.delete_queue(world.account, NAME)
    await create(server)
    await put(server, b"new")
    world.wait(5 * SECOND)
    assert await take(server) == [b"new"]
    await server.bury()
