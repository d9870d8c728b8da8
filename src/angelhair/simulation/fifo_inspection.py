"""Looks at the truth behind a simulated fifo queue: its marks, what is left of it, the acks that took effect."""

from __future__ import annotations

import json

from angelhair.engine import places, receipts
from angelhair.engine.catalog import load
from angelhair.engine.marks import Marks
from angelhair.engine.schema import GROUPS
from angelhair.engine.store import Change
from angelhair.simulation.cluster import Cluster
from angelhair.simulation.inspection import AckWitness, Inspector, content_of, first_word

RISING = ("next_id", "repair", "floor", "dropped", "purged", "epoch", "epoch_dropped")
ORDER = (("dropped", "floor"), ("floor", "repair"), ("repair", "next_id"), ("epoch_dropped", "epoch"))


class FifoInspector(Inspector):
    """As `Inspector`. Among its marks `next_id` is the log's last bucket."""

    rising: tuple[str, ...] = RISING
    order: tuple[tuple[str, str], ...] = ORDER

    async def _judge_buckets(self, incarnation: str, lane: int, marks: Marks) -> None:
        """That what the mark has passed was settled, the other checkers see: it would never be delivered."""

    async def leftovers(self, marks: dict[int, Marks]) -> list[str]:
        """What a queue without history still holds after everything in it was settled."""
        queue = await load(self._store, self._account, self._queue)
        if queue is None or self._settings.history_ms or self._settings.dedup_window_ms > WINDOW_MS:
            return []
        return [
            f"lane {lane}: {found.next_id} buckets are full and settled, {found.dropped} are dropped"
            for lane, found in marks.items()
            if found.dropped < found.next_id
        ]


WINDOW_MS = 60_000
"""Buckets with keys of a longer window are not dropped while a seed plays."""


class FifoWitness(AckWitness):
    def __init__(self, cluster: Cluster, bucket_sizes: tuple[int, ...] = ()) -> None:
        super().__init__(cluster, bucket_sizes)
        self._seen: set[tuple[str, int, int, int]] = set()
        """Acks whose messages are known. A group's row says them again with every change of the group."""

    def _see(self, change: Change) -> None:
        if change.partition.table is not GROUPS:
            return
        incarnation, lane_text, _ = change.partition.key.split(".")
        lane = int(lane_text)
        for row in change.rows:
            acked = (row.values or {}).get("acked")
            for number, delivery in json.loads(acked) if isinstance(acked, str) else ():
                ack = (incarnation, lane, number, delivery)
                if ack not in self._seen:
                    self._contents.add(content_of(receipts.encode(incarnation, b"", lane, number, delivery)))
                    if self._name(incarnation, lane, number):
                        self._seen.add(ack)

    def _name(self, incarnation: str, lane: int, number: int) -> bool:
        """Which message it was, if that can be said: the two queues cut their logs differently."""
        named = False
        for size in self.bucket_sizes:
            for found in self._cluster.decided(places.log(incarnation, lane, number // size), number, number)[1]:
                self.acked.add(first_word(found.values["body"]))
                named = True
        return named

