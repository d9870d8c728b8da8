"""Attacks from outside: arguments that are nonsense, callers that hang up, a driver that raises what it must not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from angelhair import limits
from angelhair.batching.batching import Batching
from angelhair.engine.engine import Engine
from angelhair.engine.schema import SEQUENCES
from angelhair.errors import InvalidRequest
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from angelhair.server.workers import Workers
from tests.attacks.worlds import DAY_MS, HookedStore, consume, new_world, on, played, server

HALF_A_PAIR = "\ud800"
"""Text to Python, but nothing that UTF-8 can say."""

TURNS = 20_000
"""Turns of the event loop: far more than anything here takes. What is not done by then hangs."""


@played
async def test_a_key_that_cannot_be_encoded_fails_only_its_own_put() -> None:
    """Two callers share a group, and the key of one is half a surrogate pair.
    The naive engine met that while hashing keys, and both callers got a `UnicodeEncodeError`."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings())
    batching = Batching(engine, AsyncioRuntime())
    messages = [NewMessage(b"good"), NewMessage(b"bad", key=HALF_A_PAIR)]
    good, bad = await asyncio.gather(
        *[asyncio.create_task(batching.put("shop", "jobs", [message])) for message in messages], return_exceptions=True
    )
    assert isinstance(good, list) and isinstance(good[0], MessageId)
    assert isinstance(bad, InvalidRequest)


@pytest.mark.parametrize(
    "wrong",
    [{"attributes": HALF_A_PAIR}, {"attributes": 5}, {"key": 5}, {"key": HALF_A_PAIR}, {"origin": 5}],
    ids=["attributes no text", "attributes a number", "key a number", "key no text", "origin a number"],
)
@played
async def test_text_that_is_none_is_an_invalid_request(wrong: dict[str, Any]) -> None:
    """A message carries a number or half a surrogate pair where text belongs.
    The naive engine stumbled over it (`AttributeError`, `UnicodeEncodeError`), or left it to the store to refuse."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings())
    with pytest.raises(InvalidRequest):
        await engine.put("shop", "jobs", [NewMessage(b"", **wrong)])


@played
async def test_a_window_longer_than_a_store_can_keep_rows_is_refused_or_works() -> None:
    """A queue asks for a de-duplication window of thirty years, more than a TTL can say.
    The naive engine created it, and every keyed put failed afterwards."""
    clock, store = new_world()
    engine = server(store, clock)
    try:
        await engine.create_queue("shop", "jobs", QueueSettings(dedup_window_ms=30 * 365 * DAY_MS))
    except InvalidRequest:
        return
    (outcome,) = await engine.put("shop", "jobs", [NewMessage(b"", key="key")])
    assert isinstance(outcome, MessageId)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda engine: engine.list_queues("shop", most=0), id="list none"),
        pytest.param(lambda engine: engine.list_queues("shop", most=-1), id="list less than none"),
        pytest.param(lambda engine: engine.list_queues("shop", prefix=5), id="prefix a number"),
        pytest.param(lambda engine: engine.list_queues("shop", after=5), id="after a number"),
        pytest.param(lambda engine: engine.peek("shop", "jobs", 1.5), id="peek at one and a half"),
        pytest.param(lambda engine: engine.redrive("shop", "jobs", None, 1.5), id="redrive one and a half"),
        pytest.param(lambda engine: engine.redrive("shop", "jobs", 5, 1), id="redrive to a number"),
        pytest.param(lambda engine: engine.move_back("shop", "jobs", 0, "a"), id="move back to a text"),
        pytest.param(lambda engine: engine.move_back("shop", "jobs", [], 0), id="move back in a list"),
        pytest.param(lambda engine: engine.archived_up_to("shop", "jobs", 0, 1.5), id="archived up to a half"),
    ],
)
@played
async def test_nonsense_arguments_are_invalid_requests(call: Callable[[Engine], Awaitable[object]]) -> None:
    """A verb is called with an argument of the wrong type or range, on a queue with a past.
    The naive engine raised a `TypeError` or `ValueError` from somewhere inside."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=1))
    await engine.put("shop", "jobs", [NewMessage(b"1"), NewMessage(b"2")])
    await consume(engine, clock)
    await engine.put("shop", "jobs", [NewMessage(b"1"), NewMessage(b"2")])
    with pytest.raises(InvalidRequest):
        await call(engine)


async def settle(tasks: Sequence[asyncio.Task[Any]]) -> list[Any]:
    """What became of the tasks, given enough turns; fails when one of them hangs."""
    for _ in range(TURNS):
        if all(task.done() for task in tasks):
            break
        await asyncio.sleep(0)
    assert all(task.done() for task in tasks), "somebody is still waiting for an answer"
    return await asyncio.gather(*tasks, return_exceptions=True)


@played
async def test_callers_that_hang_up_take_nobody_with_them() -> None:
    """Of sixty puts and thirty receives in shared groups some are cancelled while the store works on them.
    A naive batcher runs the group in a caller's task: the others hang, or its books never empty."""

    class SlowStore(HookedStore):
        async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
            for _ in range(5):
                await asyncio.sleep(0)
            return await super()._pass(verb, items)

    async def hang_up(tasks: Sequence[asyncio.Task[Any]], every: int) -> None:
        for _ in range(8):  # the group is under way: past its first call to the store, not past its second
            await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        for task in tasks[::every]:
            task.cancel()

    clock, store = new_world()
    engine = server(SlowStore(store), clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=7))
    batching = Batching(engine, AsyncioRuntime())
    puts = [asyncio.create_task(batching.put("shop", "jobs", [NewMessage(b"%d" % turn)])) for turn in range(60)]
    await hang_up(puts, every=3)
    assert all(isinstance(outcome, list | asyncio.CancelledError) for outcome in await settle(puts))
    receives = [asyncio.create_task(batching.receive("shop", "jobs", Ask(3))) for _ in range(30)]
    await hang_up(receives, every=4)
    assert all(isinstance(outcome, list | asyncio.CancelledError) for outcome in await settle(receives))
    for _ in range(TURNS):
        if not batching._puts and not batching._receives:
            break
        await asyncio.sleep(0)
    assert not batching._puts and not batching._receives


@pytest.mark.parametrize("where", ["at its third read", "as it reads the sequence"])
@played
async def test_background_work_survives_an_error_that_no_store_may_raise(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver raises `RuntimeError` once, in the middle of a step.
    The naive worker knew only store errors: its task ended, and with it all repair of that queue, for good."""
    # The pace is not what is tested: without pauses each turn of the loop is a step.
    for pause in ("STEP_MS", "STEP_SOON_MS", "LEASE_BEAT_MS"):
        monkeypatch.setattr(limits, pause, 0)
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    await engine.create_queue("shop", "jobs", QueueSettings())
    reads_before, reads_after = 0, 0
    raised = False

    async def raise_once(items: Sequence[Any]) -> None:
        nonlocal reads_before, reads_after, raised
        if raised:
            reads_after += 1
            return
        reads_before += 1
        if (reads_before == 3) if where == "at its third read" else on(SEQUENCES)(items):
            raised = True
            raise RuntimeError("a bug in a driver")

    hooked.hooks["read"] = raise_once
    workers = Workers(engine, "shop")
    workers.start(["jobs"])
    for _ in range(1_000):
        await asyncio.sleep(0)
        clock.ms += 10_000
    working = {task.get_name() for task in workers._tasks if not task.done()}
    await workers.stop()
    assert raised
    assert working == {"worker of jobs", "gravedigger"}
    assert reads_after > 0
