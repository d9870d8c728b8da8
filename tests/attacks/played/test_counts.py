"""Store calls one after the other, per message; and bytes of bodies read."""

from __future__ import annotations

from collections import Counter

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT, Between
from tests.queues import DAY, World


class Counting(Between):
    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self.calls: Counter = Counter()
        self.bytes = 0
        self.most = 0

    async def _pass(self, verb, items):
        tables = {(item if hasattr(item, "table") else item.partition).table.name for item in items}
        self.calls[verb, ",".join(sorted(tables))] += 1
        outcomes = await super()._pass(verb, items)
        if verb == "read":
            read = sum(len(row.values.get("body") or b"") for part in outcomes for row in part.rows
                       if isinstance(row.values.get("body"), bytes))
            self.bytes += read
            self.most = max(self.most, read)
        return outcomes


def keyed_commit(c) -> bool:
    return c.rows[0].values["status"] == "committed"


@pytest.mark.parametrize("how", ["written", "unwritten", "moved_on", "others"])
async def test_resumed_run(world: World, how: str) -> None:
    count = 2_000
    store = Counting(world)
    first, second, third = world.server(), world.server(), world.server(store=store)
    await first.create("orders", retention_ms=DAY)
    run, batch = Run("task", 0, count, "digest", DAY), [NewMessage(b"m", key=f"k{n}") for n in range(count)]
    if how == "others":
        first.store.next("write", BODIES, NEVER_SENT, times=10**6)
        for at in range(0, count, 1000):
            await first.put_outcomes("orders", batch[at:at + 1000])
        await second.engine.purge(world.account, "orders")
    else:
        if how == "written":
            first.store.next("change", KEYS, NEVER_SENT, times=10**6, when=keyed_commit)
        else:
            first.store.next("write", BODIES, NEVER_SENT, times=10**6)
        begun = await first.engine.begin_run(world.account, "orders", run)
        with pytest.raises(StoreError):
            await first.engine.finish_run(begun, batch)
        if how == "moved_on":
            await second.engine.purge(world.account, "orders")
    store.calls.clear()
    again = await third.engine.begin_run(world.account, "orders", run)
    assert await third.engine.finish_run(again, batch) == set()
    assert sum(store.calls.values()) < count / 4, store.calls


async def test_two_resumed_keys_read_all_bodies_between(world: World) -> None:
    store = Counting(world)
    first, third = world.server(), world.server(store=store)
    await first.create("orders", retention_ms=DAY)
    first.store.next("change", KEYS, NEVER_SENT, times=10**6, when=keyed_commit)
    await first.put_outcomes("orders", [NewMessage(b"a", key="a")])
    for _ in range(10):
        await first.put("orders", *[b"x" * 10_000] * 99)
    await first.put_outcomes("orders", [NewMessage(b"b", key="b")])
    store.bytes = store.most = 0
    await third.put_outcomes("orders", [NewMessage(b"a", key="a"), NewMessage(b"b", key="b")])
    assert store.most < 100_000, (store.most, store.calls)
