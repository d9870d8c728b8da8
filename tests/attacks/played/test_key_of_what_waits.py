"""A user's key that is the one under which a delayed message is handed over."""

from __future__ import annotations

from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.queues import HOUR, MINUTE, World


async def test_r10_no_key_of_a_user_is_that_of_a_message_which_waits(world: World) -> None:
    """The id is what its producer was told. A key that is made of nothing else, anybody can put with: when the message
    is due, the queue has one with that key already, and the line is told that all is well."""
    server = world.server()
    await server.create("orders")
    (told,) = await server.put_outcomes("orders", [NewMessage(b"later", delay_ms=HOUR)])
    world.wait(HOUR - MINUTE)
    await server.put("orders", b"other", key=f"~due.{told}")
    world.wait(MINUTE)
    assert sorted(await all_of(world, server)) == [b"later", b"other"]
