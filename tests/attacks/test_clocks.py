"""Attacks by wrong wall clocks. They may cost time; they must neither destroy a message nor hide it (R5)."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES
from angelhair.engine.store import Span
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import (
    DAY_MS,
    HOUR_MS,
    HookedStore,
    SkewedClock,
    SteppedClock,
    bodies,
    consume,
    new_world,
    on,
    played,
    receive_one,
    server,
)


@played
async def test_a_put_through_a_server_ten_days_behind_is_delivered() -> None:
    """A server whose clock came up ten days behind confirms a put; the clocks of the others are right.
    The naive engine dated the message by that clock, and the others expired it at once."""
    clock, store = new_world()
    behind, right = server(store, SkewedClock(clock, -10 * DAY_MS)), server(store, clock)
    await right.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    await right.step("shop", "jobs")
    (outcome,) = await behind.put("shop", "jobs", [NewMessage(b"message")])
    assert isinstance(outcome, MessageId)
    assert bodies(await consume(right, clock)) == [b"message"]


@played
async def test_a_wall_clock_that_jumps_in_the_middle_of_a_step_expires_nothing() -> None:
    """The wall clock jumps ten days ahead while a step reads bodies, and is right again before the next one.
    The naive engine had checked the clock before, and expired by what it said afterwards."""
    clock, store = new_world()
    hooked = HookedStore(store)
    jumping, watching = server(hooked, clock), server(store, clock)
    await jumping.create_queue("shop", "jobs", QueueSettings(bucket_size=1, visibility_timeout_ms=1_000))
    await jumping.put("shop", "jobs", [NewMessage(b"first")])
    await jumping.put("shop", "jobs", [NewMessage(b"second")])
    await jumping.receive("shop", "jobs", [Ask(1)])  # in flight; its consumer crashes

    async def jump(spans: Sequence[Span]) -> None:
        if on(BODIES)(spans) and (await watching.marks("shop", "jobs"))[0].settled >= 1:
            clock.wall_error_ms = 10 * DAY_MS

    for _ in range(50):
        hooked.hooks["read"] = jump
        await jumping.step("shop", "jobs")
        hooked.hooks.clear()
        clock.wall_error_ms = 0
        clock.ms += 100
        if (await watching.marks("shop", "jobs"))[0].reader == 0:
            await jumping.receive("shop", "jobs", [Ask(1, 1_000)])
    assert set(bodies(await consume(server(store, clock), clock))) == {b"first", b"second"}


async def poll_for_six_hours(ahead: Engine, holder: Engine, clock: SteppedClock) -> bytes | None:
    """Consumers ask only the server that is ahead, while another one holds the lease; the first body that comes."""
    for _ in range(6 * HOUR_MS // 5_000):
        clock.ms += 5_000
        await holder.step("shop", "jobs")
        await ahead.step("shop", "jobs")
        (deliveries,) = await ahead.receive("shop", "jobs", [Ask(1)])
        if deliveries:
            return deliveries[0].body
    return None


@played
async def test_a_server_a_day_ahead_finds_what_a_dead_server_left() -> None:
    """A server dies with a message in flight; consumers poll one whose clock is a day ahead, of an empty queue so far.
    The naive engine had read the wake index up to tomorrow and did not look at today's rows again."""
    clock, store = new_world()
    dying, holder = server(store, clock), server(store, clock)
    ahead = server(store, SkewedClock(clock, DAY_MS))
    await dying.create_queue("shop", "jobs", QueueSettings(bucket_size=100, retention_ms=None))
    for _ in range(20):
        await holder.step("shop", "jobs")
        await ahead.receive("shop", "jobs", [Ask(1)])
        clock.ms += 1_000
    await dying.put("shop", "jobs", [NewMessage(b"message")])
    await receive_one(dying)  # it dies now; the visibility time-out is 30 seconds
    assert await poll_for_six_hours(ahead, holder, clock) == b"message"


@played
async def test_a_server_a_day_ahead_with_its_bucket_open_finds_what_a_dead_server_left() -> None:
    """As above, but the server that is ahead has delivered from that bucket before, and keeps it open.
    The naive engine trusted what it had read of the wake index, a day ahead, and skipped the rows of the others."""
    clock, store = new_world()
    dying, holder = server(store, clock), server(store, clock)
    ahead = server(store, SkewedClock(clock, DAY_MS))
    await dying.create_queue("shop", "jobs", QueueSettings(bucket_size=100, retention_ms=None))
    await dying.put("shop", "jobs", [NewMessage(b"-")])
    for _ in range(90):
        await holder.step("shop", "jobs")
        await ahead.step("shop", "jobs")
        (deliveries,) = await ahead.receive("shop", "jobs", [Ask(1)])
        if deliveries:
            await ahead.ack("shop", "jobs", [deliveries[0].receipt])
        clock.ms += 1_000
    await dying.put("shop", "jobs", [NewMessage(b"message")])
    await receive_one(dying)  # it dies now; the visibility time-out is 30 seconds
    assert await poll_for_six_hours(ahead, holder, clock) == b"message"
