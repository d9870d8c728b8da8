"""Attacks with values that are almost bytes, text or whole numbers: subclasses, as enumerations and libraries make."""

from __future__ import annotations

import asyncio
from enum import IntEnum, StrEnum

import pytest

from angelhair.batching.batching import Batching
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from tests.attacks.worlds import bodies, consume, new_world, played, server


class Bytes(bytes):
    pass


class Text(StrEnum):
    TEXT = "text"
    JOBS = "jobs"


class Whole(IntEnum):
    SECOND = 1_000


ALMOST = {
    "body": NewMessage(Bytes(b"odd")),
    "attributes": NewMessage(b"odd", Text.TEXT),
    "delay": NewMessage(b"odd", None, Whole.SECOND),
    "key": NewMessage(b"odd", key=Text.TEXT),
    "origin": NewMessage(b"odd", origin=Text.TEXT),
}


@pytest.mark.parametrize("odd", ALMOST.values(), ids=ALMOST.keys())
@played
async def test_a_value_of_a_subclass_harms_no_put_but_its_own(odd: NewMessage) -> None:
    """One producer's message has a value of a subclass; the messages of two others go in the same group.
    The naive engine let it pass, its store did not, and all three were told an error, of which one was delivered."""
    clock, store = new_world()
    engine = server(store, clock)
    batching = Batching(engine, AsyncioRuntime())
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    answers = await asyncio.gather(
        batching.put("shop", "jobs", [NewMessage(b"plain")]),
        batching.put("shop", "jobs", [NewMessage(b"keyed", key="key")]),
        batching.put("shop", "jobs", [odd]),
        return_exceptions=True,
    )
    for answer in answers[:2]:
        assert isinstance(answer, list), answer
        assert isinstance(answer[0], MessageId)
    received = sorted(bodies(await consume(engine, clock, steps=50)))
    confirmed = isinstance(answers[2], list) and isinstance(answers[2][0], MessageId)
    assert received == [b"keyed", *([b"odd"] if confirmed else []), b"plain"]


@played
async def test_a_time_out_of_a_subclass_harms_no_receive_but_its_own() -> None:
    """One consumer asks with a time-out that is a member of an enumeration; another one asks in the same group.
    The naive engine let it pass, its store did not, and neither got a message."""
    clock, store = new_world()
    engine = server(store, clock)
    batching = Batching(engine, AsyncioRuntime())
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    await engine.put("shop", "jobs", [NewMessage(b"-"), NewMessage(b"-")])
    _, answer = await asyncio.gather(
        batching.receive("shop", "jobs", Ask(1, Whole.SECOND)),
        batching.receive("shop", "jobs", Ask(1)),
        return_exceptions=True,
    )
    assert isinstance(answer, list), answer
    assert len(answer) == 1


@played
async def test_a_name_of_a_subclass_harms_no_put_but_its_own() -> None:
    """One producer names the queue by a member of an enumeration, which equals the name; another one by the name.
    The naive engine made one group of both, and when it looked the queue up again neither was served."""
    clock, store = new_world()
    engine = server(store, clock)
    batching = Batching(engine, AsyncioRuntime())
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    clock.ms += 60_000  # what is remembered of the queue is old
    _, answer = await asyncio.gather(
        batching.put("shop", Text.JOBS, [NewMessage(b"odd")]),
        batching.put("shop", "jobs", [NewMessage(b"message")]),
        return_exceptions=True,
    )
    assert isinstance(answer, list), answer
    assert isinstance(answer[0], MessageId)
