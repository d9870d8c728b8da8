"""Rows that expire, and servers whose wall clocks are wrong. Found by the simulator (seed 5036 of timelines).

A store may date a write by the clock of who sends it. A row that was put in the future keeps its life whatever is
written under its key later, and one that is written again in the past has changed nothing, though it says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from angelhair.engine.schema import DUES
from angelhair.engine.store import Row, Span, Store, Write
from tests.faults import Between, Item
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

    begun_ms = world.dial.wall_ms

    async def renewed() -> bool:
        dues = [part for part in good.store.touched if part.table is DUES and part.key.startswith(incarnation)]
        return any(row.values["renewed"] > begun_ms + MINUTE for part in await world.store.read([Span(d) for d in dues])
                   for row in part.rows)

    world.wait(40 * MINUTE)
    await world.work(NAME, 2 * MINUTE, [behind], every_ms=10 * SECOND)
    assert not await renewed()
    await world.work(NAME, 2 * MINUTE, [good], every_ms=10 * SECOND)
    assert await renewed()
    assert await take(good) == [b"-"]


class Outdated(Between):
    """A store in which rows were dated by a clock that had just jumped ahead: what is written later under their keys
    changes nothing but what they did not have."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._columns: dict[object, set[str]] = {}

    async def _pass(self, verb: str, items: Sequence[Item]) -> list[Any]:
        if verb == "write":
            items = [self._what_counts(item) if item.partition.table is DUES else item for item in items]
        return await super()._pass(verb, items)

    def _what_counts(self, write: Write) -> Write:
        rows = []
        for row in write.rows:
            before = self._columns.get(row.key, set())
            rows.append(Row(row.key, {name: value for name, value in row.values.items() if name not in before}))
            self._columns[row.key] = before | set(row.values)
        return write._replace(rows=rows)


async def test_r5_what_cannot_be_renewed_is_put_anew(world: World) -> None:
    """Naive: it is written again, and believed to live on; its body goes at its time all the same."""
    server = world.server(store=Outdated(world.store))
    incarnation = await create(server, lanes=1, expire_after_ms=HOUR)
    await put(server, b"-", in_ms=DELAY)
    world.wait(40 * MINUTE)
    for _ in range(2):
        await world.work(NAME, 2 * MINUTE, [server], every_ms=10 * SECOND)
        dues = [part for part in server.store.touched if part.table is DUES and part.key.startswith(incarnation)]
        found = [row for part in await world.store.read([Span(due) for due in dues]) for row in part.rows]
        # Once: what is void needs no other.
        assert [row.values["body"] for row in found] == [b"-", b"-"]
        assert sorted(bool(row.values.get("void")) for row in found) == [False, True]
    world.wait(2 * MINUTE)
    assert await take(server) == [b"-"]
