"""Attacks on what a server remembers of a lane, by several receives of one server at once and by other servers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine.engine import Engine
from angelhair.model import Ask, NewMessage, QueueSettings
from angelhair.stores.memory import MemoryStore
from tests.attacks.worlds import HookedStore, SteppedClock, bodies, new_world, played, server

MESSAGES = 200
HOUR_MS = 3_600_000


def dawdling(store: MemoryStore, clock: SteppedClock, dice: random.Random) -> Engine:
    """A server whose calls take their time, each another."""
    hooked = HookedStore(store)

    async def dawdle(items: Sequence[Any]) -> None:
        for _ in range(dice.choice([0, 0, 1, 3, 8])):
            await asyncio.sleep(0)

    for verb in ("read", "write", "change"):
        hooked.hooks[verb] = dawdle
    return server(hooked, clock)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("servers", "at_once"), [(3, 1), (1, 3), (2, 3)])
@played
async def test_receives_at_once_find_everything_once(seed: int, servers: int, at_once: int) -> None:
    """Producers write out of order while servers receive, each several times at once, and take from each other.
    The naive engine asked only after its read whether it had read the states too, which another receive of the same
    server had changed its mind about: it took state rows for bodies, and the receive broke off."""
    dice = random.Random(seed)
    clock, store = new_world()
    engines = [dawdling(store, clock, dice) for _ in range(servers)]
    producer = dawdling(store, clock, dice)
    settings = QueueSettings(bucket_size=dice.choice([10, 50, 1_000]), visibility_timeout_ms=HOUR_MS)
    await producer.create_queue("shop", "jobs", settings)
    received: list[bytes] = []
    done = False

    async def produce() -> None:
        number = 0
        while number < MESSAGES:
            upto = min(MESSAGES, number + dice.choice([1, 3, 10]))
            puts = [producer.put("shop", "jobs", [NewMessage(b"%d" % each)]) for each in range(number, upto)]
            await asyncio.gather(*puts)
            number = upto

    async def take(engine: Engine) -> None:
        while not done:
            (deliveries,) = await engine.receive("shop", "jobs", [Ask(dice.choice([1, 5, 20]))])
            assert isinstance(deliveries, list), deliveries
            received.extend(bodies(deliveries))
            await asyncio.sleep(0)

    async def work() -> None:
        while not done:
            await producer.step("shop", "jobs")
            await asyncio.sleep(0)

    async def watch() -> None:
        nonlocal done
        for turn in range(6_000):
            await asyncio.sleep(0)
            clock.ms += 10 if turn % 10 == 0 else 0
            if len(set(received)) == MESSAGES:
                break
        done = True

    await asyncio.gather(produce(), watch(), work(), *(take(engine) for engine in engines for _ in range(at_once)))
    assert len(received) == len(set(received))
    assert set(received) == {b"%d" % number for number in range(MESSAGES)}
