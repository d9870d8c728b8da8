"""Attacks on a receive that loses every race: other servers take what it has found, again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.clock import Moment
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES, STATES
from angelhair.model import Ask, NewMessage, QueueSettings
from tests.attacks.worlds import HOUR_MS, HookedStore, SteppedClock, bodies, die, new_world, on, played, server


class TickingClock(SteppedClock):
    """Goes on by a millisecond whenever somebody looks at it, as clocks do."""

    def now(self) -> Moment:
        self.ms += 1
        return super().now()


async def receive(engine: Engine, most: int, visibility_ms: int = HOUR_MS) -> list[bytes]:
    (deliveries,) = await engine.receive("shop", "jobs", [Ask(most, visibility_ms)])
    assert isinstance(deliveries, list), deliveries
    return bodies(deliveries)


@pytest.mark.parametrize("gap", [False, True], ids=["full buckets", "a bucket with a gap"])
@played
async def test_a_receive_that_loses_every_race_closes_nothing(gap: bool) -> None:
    """A server has read a bucket to its end; whatever it claims there, another one takes first, until it gives up.
    The naive engine had forgotten by then what it had read, took the bucket for handed out and closed it; what was
    left in it had to wait for repair."""
    clock, store = new_world()
    hooked = HookedStore(store)
    losing, winning = server(hooked, clock), server(store, clock)
    await losing.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    await winning.put("shop", "jobs", [NewMessage(b"%d" % number) for number in range(9)])
    if gap:
        dying_store = HookedStore(store)
        dying_store.hooks["write"] = die(on(BODIES))
        with pytest.raises(asyncio.CancelledError):
            await server(dying_store, clock).put("shop", "jobs", [NewMessage(b"never written")])
    else:
        await winning.put("shop", "jobs", [NewMessage(b"9")])
    await winning.put("shop", "jobs", [NewMessage(b"%d" % number) for number in range(10, 12)])
    received = await receive(losing, 1)
    received += await receive(losing, 1)
    clock.ms += 3_000

    async def take_first(changes: Sequence[Any]) -> None:
        if on(STATES)(changes):
            received.extend(await receive(winning, 1))

    hooked.hooks["change"] = take_first
    received += await receive(losing, 1)
    hooked.hooks.clear()
    assert len(received) < 9
    assert (await winning.marks("shop", "jobs"))[0].reader == 0
    for _ in range(20):
        received += await receive(losing, 1)
        clock.ms += 50
    expected = {b"%d" % number for number in range(12)} - ({b"9"} if gap else set())
    assert set(received) == expected


@pytest.mark.parametrize("again", [False, True], ids=["new messages", "messages visible again"])
@played
async def test_a_receive_that_lost_a_race_finds_what_is_left_though_time_goes_on(again: bool) -> None:
    """A server remembers messages that another one has taken and acked since; a hundred others are there.
    The naive engine put off the second look to a moment that its receive, which goes by the time of its beginning,
    never came to, and came back empty."""
    clock = TickingClock()
    _, store = new_world()
    idle, busy = server(store, clock), server(store, clock)
    await idle.create_queue("shop", "jobs", QueueSettings(bucket_size=1_000))
    await idle.put("shop", "jobs", [NewMessage(b"%d" % number) for number in range(200)])
    if again:
        assert len(await receive(idle, 200, 1_000)) == 200
        clock.ms += 2_000
    assert len(await receive(idle, 1)) == 1
    clock.ms += 2_000
    for _ in range(10):
        (deliveries,) = await busy.receive("shop", "jobs", [Ask(10, HOUR_MS)])
        assert isinstance(deliveries, list)
        await busy.ack("shop", "jobs", [delivery.receipt for delivery in deliveries])
    for _ in range(5):
        assert len(await receive(idle, 1)) == 1
