"""Looks at the truth behind a simulated store, which no process of the world can see."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine import places
from angelhair.engine.bucketed.lane import Marks, pointer_marks
from angelhair.engine.catalog import load
from angelhair.engine.store import Slice, Span
from angelhair.model import QueueSettings
from angelhair.simulation.cluster import Cluster

RISING = ("next_id", "reader", "final", "settled", "floor", "dropped", "purged", "archived", "wake_dropped")
ORDER = (("floor", "repair"), ("repair", "settled"), ("settled", "final"), ("final", "reader"), ("dropped", "floor"))


class Truth:
    """Reads the shared state itself, at one instant and without faults."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        slices = []
        for span in spans:
            state = self._cluster.state(span.partition)
            rows = self._cluster.read(state, span.first, span.last, None, 1 << 60)
            slices.append(Slice(dict(state.flags), rows, False))
        return slices


class Inspector:
    """Compares the marks of every lane with what they were at the last look."""

    def __init__(self, store: Truth, account: str, queue: str, settings: QueueSettings) -> None:
        self._store = store
        self._account = account
        self._queue = queue
        self._settings = settings
        self._seen: dict[tuple[str, int], Marks] = {}
        self.faults: list[str] = []

    async def look(self) -> dict[int, Marks]:
        """The marks as they are now; what is wrong with them is added to `faults`."""
        queue = await load(self._store, self._account, self._queue)
        if queue is None:
            return {}
        marks: dict[int, Marks] = {}
        for lane in queue.lanes:
            sequence, pointers = await self._store.read(
                [Span(places.sequence(queue.incarnation, lane)), Span(places.pointers(queue.incarnation, lane))]
            )
            next_id = sequence.rows[0].values.get("next") if sequence.rows else None
            if isinstance(next_id, int) and pointers.rows:
                marks[lane] = pointer_marks(pointers)._replace(next_id=next_id)
                await self._judge(queue.incarnation, lane, marks[lane])
        return marks

    async def _judge(self, incarnation: str, lane: int, marks: Marks) -> None:
        before = self._seen.get((incarnation, lane))
        if before is not None:
            for name in RISING:
                old, new = getattr(before, name), getattr(marks, name)
                if new < old:
                    self.faults.append(f"lane {lane}: {name} fell from {old} to {new}")
        self._seen[(incarnation, lane)] = marks
        for low, high in ORDER:
            if getattr(marks, low) > getattr(marks, high):
                self.faults.append(f"lane {lane}: {low} {getattr(marks, low)} is above {high} {getattr(marks, high)}")
        highest = -(-marks.next_id // self._settings.bucket_size)
        if marks.reader > highest:
            self.faults.append(f"lane {lane}: reader {marks.reader} is above the last bucket {highest}")
        for bucket in range(marks.floor, marks.repair):
            (found,) = await self._store.read([Span(places.states(incarnation, lane, bucket), -1, -1)])
            if found.flags.get("finished") is None:
                self.faults.append(f"lane {lane}: repair passed bucket {bucket}, which is not finished")

    async def leftovers(self, marks: dict[int, Marks]) -> list[str]:
        """What a queue without history still holds after everything in it was settled."""
        queue = await load(self._store, self._account, self._queue)
        if queue is None or self._settings.history_ms:
            return []
        found: list[str] = []
        for lane, lane_marks in marks.items():
            whole = lane_marks.next_id // self._settings.bucket_size
            if lane_marks.dropped < whole:
                found.append(f"lane {lane}: {whole} buckets are full and settled, {lane_marks.dropped} are dropped")
        return found


