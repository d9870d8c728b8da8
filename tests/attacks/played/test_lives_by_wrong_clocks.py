"""Rows that expire, and servers whose wall clocks are wrong. Found by the simulator (seed 5036 of timelines).

A store may date a write by the clock of who sends it. A row that was put in the future keeps its life whatever is
written under its key later, and one that is written again in the past has changed nothing, though it says so."""

from __future__ import annotations

from angelhair.engine.schema import DUES
from angelhair.engine.store import Span, Write
from tests.promises.timelines import DELAY, NAME, create, put, take
from tests.queues import DAY, HOUR, MINUTE, SECOND, World


async def test_r5_what_a_server_puts_whose_clock_is_wrong_does_not_expire(world: World) -> None:
    good, ahead = world.server(), world.server(ahead_ms=5 * DAY)
    await create(good, lanes=1, expire_after_ms=HOUR)
    lives: list[int | None] = []
    for server in (good, ahead):
        server.store.next("write", DUES, "lose answer", times=100, when=lambda write: seen(write, lives))
        await put(server, b"-", in_ms=DELAY)
    assert lives[0] is not None and lives[1] is None


def seen(write: Write, lives: list[int | None]) -> bool:
    lives.append(write.ttl_seconds)
    return False


async def test_r5_who_has_a_wrong_clock_renews_nothing(world: World) -> None:
    good, behind = world.server(), world.server(ahead_ms=-5 * DAY)
    incarnation = await create(good, lanes=1, expire_after_ms=HOUR)
    await put(good, b"-", in_ms=DELAY)

    async def renewed() -> bool:
        dues = [part for part in good.store.touched if part.table is DUES and part.key.startswith(incarnation)]
        return any(row.values.get("renewed") for part in await world.store.read([Span(d) for d in dues])
                   for row in part.rows)

    world.wait(40 * MINUTE)
    await world.work(NAME, 2 * MINUTE, [behind], every_ms=10 * SECOND)
    assert not await renewed()
    await world.work(NAME, 2 * MINUTE, [good], every_ms=10 * SECOND)
    assert await renewed()
    assert await take(good) == [b"-"]
