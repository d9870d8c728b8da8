"""One answer that holds the same message twice: it is known there by the id that it waited under."""

from __future__ import annotations

import pytest

from angelhair import limits
from tests.queues import HOUR, World


async def test_a10_an_answer_holds_what_has_waited_in_the_line_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a time-out of 0 it is visible again at once, and an answer of several portions comes across it again: each
    time its deliveries are used up by one, and the receipt before counts for nothing."""
    server = world.server()
    await server.create("orders")
    await server.put("orders", b"later", delay_ms=HOUR)
    world.wait(HOUR)
    await server.work("orders", 5_000)
    monkeypatch.setattr(limits, "PORTION_BYTES", 1)
    (delivery,) = await server.receive("orders", 10, hide_ms=0)
    assert await server.ack("orders", delivery) == [None]
