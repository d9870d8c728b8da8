"""Lets very many messages pass through one databag, ten at a time, and counts what each costs early, late, and while
very many wait (D5).

As in `passing.py` time is made, so the counts do not depend on the machine; background included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from angelhair import limits
from angelhair.engine.identities import Identities
from angelhair.engine.store import Store
from angelhair.model import DATABAG, Ask, MessageId, NewMessage, QueueSettings
from tests.costs.clients import ACCOUNT, BODY, QUEUE, Cost, Server
from tests.costs.clocks import StillClock
from tests.costs.passing import Background

CHANGES_PER_MESSAGE, READS_PER_MESSAGE = 0.2, 0.3
"""The bars: puts, receives, deletes and background together."""

TOLERATED = 0.1
"""And nothing costs more than a tenth more than before."""

BATCH = 10
PARTITIONS, PER_PARTITION = 16, 1_000
"""Messages come to partitions without an order while each gives as many as the others, so their depths drift apart, by
some 250 while a million pass. The bar is about twenty in each at least: with a thousand on average there are. With 200
some were empty now and then, and of two windows one cost up to a sixth more than the other, whichever came first."""

RATE = 250
"""Messages a second. With the time-out below five of the partitions are locked at any time, and nobody waits."""

SETTINGS = QueueSettings(
    kind=DATABAG, min_partitions=PARTITIONS, max_partitions=PARTITIONS, visibility_timeout_ms=200, history_ms=5_000,
    dedup_window_ms=1_000,
)
"""Both are short, so that epochs are being dropped before the early window as well as before the late one."""

PUT_BATCH = 1_000


WINDOW_SECONDS = 30
"""Messages of so much time at least are in a window: several rounds of all that the background does."""


def window() -> int:
    """Messages over which a cost is taken, and that pass before the first is: twice as many at least as every block
    needs to get a new epoch, as each leaves two rows there."""
    return max(limits.BAG_BLOCKS * limits.BAG_EPOCH_MESSAGES, WINDOW_SECONDS * RATE)


class Costs(NamedTuple):
    early: Cost
    late: Cost
    """After very many have passed."""
    deep: Cost
    """And while very many wait."""

    def grown(self, when: str) -> list[str]:
        """What costs more than early, by more than is tolerated."""
        found = []
        for name in ("changes", "reads", "writes"):
            before, after = getattr(self.early, name), getattr(getattr(self, when), name)
            if after > (1 + TOLERATED) * before:
                found.append(f"{name}: {before:.4f} a message early, {after:.4f} {when}")
        return found

    def complaints(self) -> list[str]:
        above = [
            f"{when}, a message costs {cost}"
            for when, cost in self._asdict().items()
            if cost.changes > CHANGES_PER_MESSAGE or cost.reads > READS_PER_MESSAGE
        ]
        return [*above, *self.grown("late"), *self.grown("deep")]


async def pass_through(
    store: Store,
    clock: StillClock,
    passed: int,
    waiting: int,
    progress: Callable[[int], None] = lambda _: None,
    identities: Identities | None = None,
) -> Costs:
    """What a message costs after a few have passed, after so many, and then while so many wait."""
    assert passed >= 2 * window(), "windows must not overlap"
    server = Server(store, clock, identities)
    await server.create(SETTINGS)
    way = _Way(server, clock, progress)
    await way.put(PARTITIONS * PER_PARTITION)
    await way.go(window())
    early = await way.cost()
    await way.go(passed - way.passed)
    late = await way.cost()
    await way.put(waiting - PARTITIONS * PER_PARTITION)
    await way.go(window() // 2)
    return Costs(early, late, await way.cost())


class _Way:
    def __init__(self, server: Server, clock: StillClock, progress: Callable[[int], None]) -> None:
        self._server = server
        self._clock = clock
        self._background = Background(server, clock)
        self._progress = progress
        self.passed = 0

    async def put(self, messages: int, at_once: int = PUT_BATCH) -> None:
        """They stay, and wait."""
        for first in range(0, messages, at_once):
            drafts = [NewMessage(BODY)] * min(at_once, messages - first)
            outcomes = await self._server.batching.put(ACCOUNT, QUEUE, drafts)
            assert all(isinstance(outcome, MessageId) for outcome in outcomes)

    async def go(self, messages: int) -> None:
        """So many are put, received and deleted, ten at a time, at a steady rate."""
        for _ in range(0, messages, BATCH):
            await self.put(BATCH)
            found = await self._server.batching.receive(ACCOUNT, QUEUE, Ask(BATCH))
            assert len(found) == BATCH
            receipts = [delivery.receipt for delivery in found]
            assert await self._server.batching.ack(ACCOUNT, QUEUE, receipts) == [None] * BATCH
            self._clock.advance(1_000 * BATCH // RATE)
            await self._background.catch_up()
            self.passed += BATCH
            self._progress(self.passed)

    async def cost(self) -> Cost:
        before = self._server.store.counts
        await self.go(window())
        return Cost.of(self._server.store.counts - before, window())
