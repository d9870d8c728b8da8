"""What was seen in part, and stays so: it keeps nobody else waiting."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES, DUES
from angelhair.errors import OutcomeUnknown
from angelhair.model import TIMELINE, Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.minority import Minority, dates, never
from tests.attacks.worlds import bodies, consume, new_world, played, server

SECOND = 1_000
MINUTE = 60 * SECOND


@pytest.mark.parametrize("most", [1, 10])
@pytest.mark.parametrize("half_seen", [0, 50])
@played
async def test_what_comes_again_waits_for_nobody_who_is_there_in_part(half_seen: int, most: int) -> None:
    """Their bucket is final, and they are admitted. Each receive takes as many of them as it wants messages, finds that
    they are not whole, and answers that there is nothing: what has become visible again lies behind all of them."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    settings = QueueSettings(bucket_size=100, visibility_timeout_ms=SECOND, repair_timeout_ms=SECOND)
    await other.create_queue("shop", "jobs", settings)
    if half_seen:
        outcomes = await putter.put("shop", "jobs", [NewMessage(b"lost")] * half_seen)
        assert all(isinstance(outcome, OutcomeUnknown) for outcome in outcomes)
    minority.near = dates
    fill = await other.put("shop", "jobs", [NewMessage(b"fill")] * (100 - half_seen))
    assert all(isinstance(outcome, MessageId) for outcome in fill)
    (confirmed,) = await other.put("shop", "jobs", [NewMessage(b"again")])
    assert isinstance(confirmed, MessageId)
    assert len(await consume(other, clock, steps=200)) == 101 - half_seen
    minority.near = never
    await other.put("shop", "jobs", [NewMessage(b"poison")])
    waits = []
    for _ in range(5):
        begun_ms = clock.ms
        while True:
            (found,) = await other.receive("shop", "jobs", [Ask(most)])
            assert isinstance(found, list)
            if found:
                break
            await other.step("shop", "jobs")
            clock.ms += 100
        assert bodies(found) == [b"poison"]
        waits.append(clock.ms - begun_ms)
    assert max(waits) <= 2 * SECOND, waits


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_peek_into_a_timeline_shows_no_empty_message(near: bool) -> None:
    clock, store = new_world()
    minority = Minority(store, DUES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "line", QueueSettings(kind=TIMELINE, lanes=1))
    (unknown,) = await putter.put("shop", "line", [NewMessage(b"lost")])
    assert isinstance(unknown, OutcomeUnknown)
    if near:
        minority.near = dates
    await other.stats("shop", "line")
    assert [each.body for each in await other.peek("shop", "line", 10)] == []
