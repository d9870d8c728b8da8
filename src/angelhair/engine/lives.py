"""By kind, how a lane of it begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from angelhair.engine.bucketed import life as bucketed
from angelhair.engine.databag import life as databag
from angelhair.engine.fifo import life as fifo
from angelhair.engine.marks import Marks
from angelhair.engine.store import Change, Partition, Store, Values
from angelhair.engine.timeline import life as timeline
from angelhair.model import BUCKETED, DATABAG, FIFO, TIMELINE


class Life(Protocol):
    """A kind's module `life`."""

    def beginnings(self, incarnation: str, lane: int, now_ms: int, /) -> list[Change]: ...

    def first_partitions(self, incarnation: str, lane: int, /) -> list[Partition]: ...

    async def stop(self, store: Store, incarnation: str, lane: int, /) -> None: ...

    def buckets(self, sequence: Values, bucket_size: int, /) -> int: ...

    async def remains(
        self, store: Store, incarnation: str, lane: int, marks: Marks, some: range, /
    ) -> list[Partition]: ...

    async def drop_some(self, store: Store, incarnation: str, lane: int, /) -> bool: ...


LIVES: Mapping[str, Life] = {BUCKETED: bucketed, FIFO: fifo, TIMELINE: timeline, DATABAG: databag}
