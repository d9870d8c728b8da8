"""A move whose body is not there waits for it: its put may still be confirmed. It must not wait for ever."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES
from angelhair.engine.store import Span
from angelhair.errors import OutcomeUnknown
from angelhair.model import NewMessage, QueueSettings
from tests.attacks.minority import Minority, never
from tests.attacks.worlds import HOUR_MS, bodies, consume, new_world, played, receive_one, server

SECOND = 1_000


def always(span: Span) -> bool:
    return True


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("by", ["purge", "retention"])
@played
async def test_a14_what_moves_and_has_no_body_goes_with_a_purge_and_by_its_retention(by: str, dies: bool) -> None:
    """A put that nobody finished is met whole by a receive, and by no read after that (the port: "not again what it saw
    once"; and a store that is damaged looks the same). docs/known-limits.md says of such a put that a purge takes it,
    and the queue's retention. So it is, unless the queue has dead letters: what is moving is looked at for neither, and
    its bucket is never finished, and no bucket behind it is dropped as long as the queue lives."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "dead", QueueSettings())
    await other.create_queue(
        "shop", "jobs",
        QueueSettings(
            bucket_size=2, dead_letter_queue="dead", max_deliveries=1 if dies else 100, visibility_timeout_ms=SECOND,
            repair_timeout_ms=SECOND, retention_ms=HOUR_MS, history_ms=0,
        ),
    )
    (unknown,) = await putter.put("shop", "jobs", [NewMessage(b"lost")])
    assert isinstance(unknown, OutcomeUnknown)
    minority.near = always
    assert (await receive_one(other)).body == b"lost"
    minority.near = never
    minority._spread.clear()
    await other.put("shop", "jobs", [NewMessage(b"quick %d" % number) for number in range(9)])
    assert len(bodies(await consume(other, clock, steps=200))) == 9
    if by == "purge":
        await other.purge("shop", "jobs")
    await other.put("shop", "jobs", [NewMessage(b"then")])
    await consume(other, clock, steps=200)
    for _ in range(48):
        # Two days.
        clock.ms += HOUR_MS
        await consume(other, clock, steps=20)
    assert (await other.marks("shop", "jobs"))[0].repair == 5
