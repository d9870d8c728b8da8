"""Groups of puts by chance: requests that come, give up, are large or delayed, while another server takes ids, the
store errs and lanes are sealed. Everybody is answered, with what became of its own messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.batching.batching import Batching
from angelhair.engine import places
from angelhair.engine.schema import BODIES, SEQUENCES
from angelhair.engine.store import Span
from angelhair.errors import AngelhairError, OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from tests.attacks.worlds import HookedStore, new_world, played, server


class Chance:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.errs = 0.1

    async def pause(self) -> None:
        for _ in range(self.dice.choice([0, 0, 1, 2, 5, 20])):
            await asyncio.sleep(0)

    def way(self, store: Any) -> HookedStore:
        way = HookedStore(store)

        async def change(items: Sequence[Any]) -> list[Any] | None:
            await self.pause()
            if not any(item.partition.table is SEQUENCES for item in items) or self.dice.random() > self.errs:
                return None
            if self.dice.random() < 0.5:
                return [Unavailable("no node") for _ in items]
            if self.dice.random() < 0.5:
                await store.change(items)
            return [OutcomeUnknown("timed out") for _ in items]

        async def write(items: Sequence[Any]) -> list[Any] | None:
            await self.pause()
            if not any(item.partition.table is BODIES for item in items) or self.dice.random() > self.errs:
                return None
            return [OutcomeUnknown("timed out") if self.dice.random() < 0.7 else (await store.write([item]))[0]
                    for item in items]

        async def read(_: Sequence[Any]) -> None:
            await self.pause()
            if self.dice.random() < self.errs / 10:
                raise Unavailable("no node")

        way.hooks.update(change=change, write=write, read=read)
        return way


@pytest.mark.parametrize("seed", range(40))
@played
async def test_everybody_is_answered(seed: int) -> None:
    chance = Chance(seed)
    dice = chance.dice
    clock, store = new_world()
    engine, other = server(chance.way(store), clock), server(store, clock)
    settings = QueueSettings(bucket_size=10, lanes=dice.choice([1, 1, 3]), priorities=dice.choice([1, 2]))
    await other.create_queue("shop", "jobs", settings)
    batching = Batching(engine, AsyncioRuntime())
    confirmed: dict[bytes, MessageId] = {}
    counter = 0

    async def put() -> None:
        nonlocal counter
        texts = []
        for _ in range(dice.choice([1, 1, 1, 3, 10, 400])):
            counter += 1
            texts.append(b"%d" % counter + b" " * dice.choice([0, 0, 0, 0, 60_000 if dice.random() < 0.1 else 0]))
        messages = [
            NewMessage(
                text, key=text.decode().strip() if dice.random() < 0.1 else None,
                delay_ms=1_000_000 if dice.random() < 0.02 else None,
                priority=dice.choice([0, settings.priorities - 1]),
            )
            for text in texts
        ]
        try:
            outcomes = await batching.put("shop", "jobs", messages)
        except AngelhairError:
            return
        assert len(outcomes) == len(texts)
        for text, outcome in zip(texts, outcomes, strict=True):
            if isinstance(outcome, MessageId):
                confirmed[text] = outcome
            else:
                assert isinstance(outcome, AngelhairError)

    tasks: list[asyncio.Task[None]] = []
    for _ in range(150):
        tasks.append(asyncio.create_task(put()))
        if dice.random() < 0.3:
            await chance.pause()
        if dice.random() < 0.1:
            dice.choice(tasks).cancel()
        if dice.random() < 0.1:
            await other.put("shop", "jobs", [NewMessage(b"faster")] * dice.choice([1, 7]))
        if dice.random() < 0.02:
            await other.change_queue("shop", "jobs", {"lanes": dice.choice([1, 2, 3])})
    done, hanging = await asyncio.wait(tasks, timeout=20)
    assert not hanging, f"{len(hanging)} of {len(tasks)} wait for ever"
    for task in done:
        if not task.cancelled():
            task.result()
    await asyncio.sleep(0.01)
    assert not batching._puts, "an idle queue costs nothing"
    ids = [(each.lane, each.number) for each in confirmed.values()]
    assert len({*ids}) == len(ids), "two messages were told one id"
    queue = await other.find_queue("shop", "jobs")
    for text, each in confirmed.items():
        if each.number < 1 << 40:
            (found,) = await store.read(
                [Span(places.bodies(queue.incarnation, each.lane, each.number // 10), each.number, each.number)]
            )
            assert found.rows and found.rows[0].values["body"] == text
