"""Attacks by producers that write an origin of their own into their messages: redrive reads it."""

from __future__ import annotations

import pytest

from angelhair.model import MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import bodies, consume, new_world, played, server

ORIGINS = [
    "x",
    "",
    "/",
    "//",
    "a/b/c/d",
    "shop//0-1",
    "shop/no such name!/0-1",
    "shop/" + "n" * 200 + "/0-1",
    "shop/\x00/0-1",
    "shop/gone/0-1",
]


@pytest.mark.parametrize("origin", ORIGINS)
@played
async def test_a_made_up_origin_does_not_stop_a_redrive(origin: str) -> None:
    """A producer puts a message with an origin that is none into a dead-letter queue, before one that was moved there.
    The naive engine took the second part of whatever it found for a queue's name, and the redrive failed each time."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "dead", QueueSettings(bucket_size=10))
    settings = QueueSettings(bucket_size=10, dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=100)
    await engine.create_queue("shop", "jobs", settings)
    (outcome,) = await engine.put("shop", "dead", [NewMessage(b"made up", origin=origin)])
    assert isinstance(outcome, MessageId)
    await engine.put("shop", "jobs", [NewMessage(b"message")])
    await consume(engine, clock, steps=30, ack=False)
    assert (await engine.stats("shop", "dead")).visible == 2
    assert await engine.redrive("shop", "dead", None, 10) == 1
    assert bodies(await consume(engine, clock, steps=50)) == [b"message"]
    assert bodies(await consume(engine, clock, "dead", steps=50)) == [b"made up"]
