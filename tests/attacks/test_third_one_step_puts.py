"""A put in one step whose answer was lost: whatever happens next, "did not happen" would be a lie.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES
from angelhair.engine.store import Joined, Together
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from angelhair.stores.memory import MemoryStore
from angelhair.stores.sqlite import open_store
from tests.attacks.worlds import HookedStore, SteppedClock, bodies, on, played, refuse, server


class Joins(HookedStore):
    """A store that joins, and loses the answer of the next `together` after having done it."""

    joins = True
    lose = False
    then: Any = None

    async def together(self, wanted: Together) -> Joined:
        joined = await self.real.together(wanted)  # type: ignore[attr-defined]
        if not self.lose:
            return joined
        self.lose = False
        if self.then is not None:
            await self.then()
        return Joined(OutcomeUnknown("the writer process ended"))


def world() -> tuple[SteppedClock, Joins, Engine]:
    clock = SteppedClock()
    store = Joins(MemoryStore(lambda: clock.ms, joins=True))
    return clock, store, server(store, clock)


async def outcome_of(engine: Engine, body: bytes) -> Any:
    try:
        (outcome,) = await engine.put("shop", "jobs", [NewMessage(body)])
    except Exception as error:
        return error
    return outcome


@played
async def test_the_rows_cannot_be_written_again() -> None:
    _, store, engine = world()
    await engine.create_queue("shop", "jobs", QueueSettings())
    await engine.put("shop", "jobs", [NewMessage(b"first")])
    store.lose = True
    store.hooks["write"] = refuse(on(BODIES))
    outcome = await outcome_of(engine, b"second")
    del store.hooks["write"]
    ((found),) = await engine.receive("shop", "jobs", [Ask(10)])
    assert b"second" in bodies(found)  # it happened
    assert isinstance(outcome, OutcomeUnknown), f"a put that is delivered was answered {outcome!r}"


@played
async def test_the_time_cannot_be_asked() -> None:
    clock, store, engine = world()
    await engine.create_queue("shop", "jobs", QueueSettings())
    await engine.put("shop", "jobs", [NewMessage(b"first")])

    async def jump() -> None:  # our wall clock is wrong from here on, and the store's cannot be asked
        clock.wall_error_ms = 3_600_000

        async def silent() -> int:
            raise Unavailable("no answer")

        store.time_ms = silent  # type: ignore[method-assign]

    store.lose, store.then = True, jump
    outcome = await outcome_of(engine, b"second")
    clock.wall_error_ms = 0
    del store.time_ms
    (found,) = await engine.receive("shop", "jobs", [Ask(10)])
    assert b"second" in bodies(found)
    assert isinstance(outcome, OutcomeUnknown), f"a put that is delivered was answered {outcome!r}"


@pytest.mark.parametrize("writer", ["thread", "process"])
def test_store_closed_between_the_unknown_and_its_settling(tmp_path: Any, writer: Any) -> None:
    """settling.change_settled: the retry of an unknown change *raises* Unavailable when the store was closed meanwhile
    (hosting.submit raises instead of answering), and the caller hears "did not happen"."""

    async def story() -> None:
        real = await open_store(tmp_path / "a.db", writer=writer)
        store = Joins(real)
        engine = Engine(store, RandomIdentities(), SystemClock())
        await engine.create_queue("shop", "jobs", QueueSettings())
        assert isinstance(await outcome_of(engine, b"first"), MessageId)
        store.lose, store.then = True, real.close
        outcome = await outcome_of(engine, b"second")
        again = await open_store(tmp_path / "a.db")
        (found,) = await Engine(again, RandomIdentities(), SystemClock()).receive("shop", "jobs", [Ask(10)])
        await again.close()
        assert b"second" in bodies(found)
        assert isinstance(outcome, OutcomeUnknown), f"a put that is delivered was answered {outcome!r}"

    asyncio.run(story())
