"""A databag's rows as they lie in the store, read past the servers: what was locked when, and what was deleted when.

A lock's row is written again only when its time is over. So whoever reads more often than that sees every serving, and
can say afterwards which messages were served although they had been deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import catalog, places
from angelhair.engine.databag import ids
from angelhair.engine.databag.epochs import Epochs, parse
from angelhair.engine.databag.lock import given_ids
from angelhair.engine.store import Row, Span, Store, Write
from angelhair.model import MessageId
from angelhair.settings import ACCOUNT

BLOCKS = range(limits.BAG_BLOCKS)

WATCH_SECONDS = 1.0
"""Between two looks at the locks: far less than any of them lasts."""

PAGE_ROWS = 5_000


class Received(NamedTuple):
    """One answer to a consumer. Times are of the wall clock, in seconds."""

    asked: float
    answered: float
    server: int
    numbers: tuple[int, ...]


class Serving(NamedTuple):
    """A run of slices that was served, as the store has it."""

    first: int
    last: int
    serving: int
    served_at_ms: int
    duration_ms: int
    given: frozenset[int]
    seen: float
    """When it was certainly there."""

    @property
    def until(self) -> float:
        return (self.served_at_ms + self.duration_ms) / 1_000


def number_of(identity: str) -> int:
    found = MessageId.parse(identity)
    assert isinstance(found, MessageId)
    return found.number


class Watch:
    """Everything that one databag's rows have said since it is watched."""

    def __init__(self, store: Store, incarnation: str) -> None:
        self._store = store
        self.incarnation = incarnation
        self.servings: dict[tuple[int, int], Serving] = {}
        """By first slice and number."""
        self.counted = 0
        """Duplicates, by the servers' own count."""

    @classmethod
    async def over(cls, store: Store, queue: str) -> Watch:
        found = await catalog.load(store, ACCOUNT, queue)
        assert found is not None
        return cls(store, found.incarnation)

    async def look(self) -> None:
        """All locks as they are now."""
        slices = await self._store.read([Span(places.bag_locks(self.incarnation, block)) for block in BLOCKS])
        seen = time.time()
        for row in (row for slice_ in slices for row in slice_.rows):
            values = row.values
            last, number, served_at_ms, duration_ms = (
                int(values[name] or 0) for name in ("last", "serving", "served_at", "duration")
            )
            key = (int(row.key), number)
            if key not in self.servings:
                given = frozenset(given_ids(values["given"]))
                self.servings[key] = Serving(key[0], last, number, served_at_ms, duration_ms, given, seen)
        self.counted = sum(int(slice_.flags.get("duplicates") or 0) for slice_ in slices)

    async def go_on(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(WATCH_SECONDS)

    def served_while_locked(self, answers: Iterable[Received]) -> list[str]:
        """Every message that was given to somebody who asked after its slice was seen locked, and who had the answer
        before that lock was over."""
        by_slice: dict[int, list[Serving]] = defaultdict(list)
        for serving in self.servings.values():
            for slice_ in range(serving.first, serving.last + 1):
                by_slice[slice_].append(serving)
        return [
            f"server {answer.server} gave {MessageId(0, number)} while {serving.first} to {serving.last} were locked"
            for answer in answers
            for number in answer.numbers
            for serving in by_slice[ids.slice_of(number)]
            if answer.asked > serving.seen and answer.answered < serving.until
        ]

    async def epochs(self) -> dict[int, Epochs]:
        (found,) = await self._store.read([Span(places.bag_epochs(self.incarnation))])
        return {int(row.key): parse(row.values) for row in found.rows}

    async def deleted(self) -> dict[int, int | None]:
        """By message that is in the store, when it was deleted."""
        found: dict[int, int | None] = {}
        for block, epochs in (await self.epochs()).items():
            for epoch in epochs.there:
                first: int | None = None
                more = True
                while more:
                    span = Span(
                        places.bag_messages(self.incarnation, block, epoch), first, None, PAGE_ROWS, ("deleted",)
                    )
                    (slice_,) = await self._store.read([span])
                    for row in slice_.rows:
                        deleted = row.values.get("deleted")
                        found[int(row.key)] = deleted if isinstance(deleted, int) else None
                    more = slice_.more
                    first = int(slice_.rows[-1].key) + 1 if slice_.rows else None
        return found

    def shown(self, deleted: Mapping[int, int | None]) -> int:
        """Messages that were served although they had been deleted."""
        return sum(
            (when := deleted.get(given)) is not None and when < serving.served_at_ms
            for serving in self.servings.values()
            for given in serving.given
        )

    async def delete_late(self, numbers: Iterable[int]) -> None:
        """What a server does that took its time between looking at the clock and writing: the messages are deleted,
        dated before they were served."""
        await self.look()
        served_at_ms = {
            given: serving.served_at_ms for serving in self.servings.values() for given in serving.given
        }
        epochs = await self.epochs()
        writes = []
        for number in numbers:
            block = ids.block_of(ids.slice_of(number))
            partition = places.bag_messages(self.incarnation, block, ids.epoch_of(number, epochs[block].open))
            writes.append(Write(partition, [Row(number, {"deleted": served_at_ms[number] - 1})]))
        assert not any(await self._store.write(writes))
