"""A put in one step that did not happen, that came too late, or that is none of its kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from angelhair.engine.engine import Engine
from angelhair.engine.store import Joined, Store, Together
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from angelhair.stores.memory import MemoryStore
from tests.attacks.worlds import HOUR_MS, HookedStore, SteppedClock, bodies, played, server

MINUTE_MS = 60_000


class Joins(HookedStore):
    """A store that joins. The next `together` is not done and answered so, if there is such an answer."""

    joins = True

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.answer: StoreError | None = None
        self.first: Callable[[], Awaitable[None]] | None = None
        """Runs before the next one."""
        self.calls = 0

    async def together(self, wanted: Together) -> Joined:
        self.calls += 1
        first, self.first = self.first, None
        if first is not None:
            await first()
        answer, self.answer = self.answer, None
        if answer is not None:
            return Joined(answer)
        joined: Joined = await self.real.together(wanted)  # type: ignore[attr-defined]
        return joined


async def world(**settings: Any) -> tuple[SteppedClock, Joins, Engine, Engine]:
    """Two servers on one store; the first one's calls can be waylaid. The queue has one message."""
    clock = SteppedClock()
    real = MemoryStore(lambda: clock.ms, joins=True)
    store = Joins(real)
    engine, other = server(store, clock), server(real, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(**settings))
    assert await put(engine, b"first") == MessageId(0, 0)
    return clock, store, engine, other


async def put(engine: Engine, body: bytes, **fields: Any) -> Any:
    try:
        (outcome,) = await engine.put("shop", "jobs", [NewMessage(body, **fields)])
    except StoreError as error:
        return error
    return outcome


async def received(engine: Engine) -> list[bytes]:
    (found,) = await engine.receive("shop", "jobs", [Ask(10, HOUR_MS)])
    assert isinstance(found, list)
    return bodies(found)


@played
async def test_a_put_that_did_not_happen_is_said_not_to_have() -> None:
    """A1: and the next one takes the id that was free all the time."""
    _, store, engine, other = await world()
    store.answer = Unavailable("no node")
    assert isinstance(await put(engine, b"lost"), Unavailable)
    assert await put(engine, b"second") == MessageId(0, 1)
    assert await received(other) == [b"first", b"second"]


@played
async def test_a_put_of_unknown_outcome_whose_ids_another_has_taken_stays_unknown() -> None:
    """A1: the ids are another's, so it was not put with them; but that it never will be, nobody can say."""
    _, store, engine, other = await world()

    async def faster() -> None:
        assert await put(other, b"theirs") == MessageId(0, 1)

    store.answer, store.first = OutcomeUnknown("timed out"), faster
    assert isinstance(await put(engine, b"mine"), OutcomeUnknown)
    assert await put(engine, b"mine") == MessageId(0, 2)
    assert await received(other) == [b"first", b"theirs", b"mine"]


@played
async def test_a_put_that_slept_longer_than_messages_are_kept_is_dated_anew() -> None:
    """A1: naive, to confirm what has expired before anybody could receive it."""
    clock, store, engine, other = await world(retention_ms=MINUTE_MS)

    async def sleeps() -> None:
        clock.ms += 2 * MINUTE_MS

    store.first = sleeps
    outcome = await put(engine, b"second")
    assert isinstance(outcome, MessageId) and outcome.number > 1
    assert await received(other) == [b"second"]


@played
async def test_what_has_a_delay_or_a_key_is_not_put_in_one_step() -> None:
    """A10, R10: there it would be visible at once, and there twice."""
    clock, store, engine, other = await world()
    before = store.calls
    assert isinstance(await put(engine, b"later", delay_ms=MINUTE_MS), MessageId)
    known = await put(engine, b"once", key="k")
    assert isinstance(known, MessageId) and await put(other, b"again", key="k") == known
    assert store.calls == before
    assert await received(other) == [b"first", b"once"]
    clock.ms += MINUTE_MS
    assert await received(other) == [b"later"]
