"""Looks at the truth behind a simulated store, which no process of the world can see."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Sequence

from angelhair.engine import places, receipts
from angelhair.engine.bucketed.ack import ACKED
from angelhair.engine.bucketed.examine import MOVING
from angelhair.engine.catalog import load
from angelhair.engine.marks import Marks, pointer_marks
from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.store import Change, Partition, Slice, Span, Value
from angelhair.engine.transfer import MOVED
from angelhair.model import QueueSettings
from angelhair.simulation.cluster import Cluster
from angelhair.simulation.history import Delivered

RISING = ("next_id", "reader", "final", "settled", "floor", "dropped", "purged", "archived", "wake_dropped")
ORDER = (("floor", "repair"), ("repair", "settled"), ("settled", "final"), ("final", "reader"), ("dropped", "floor"))


class Truth:
    """Reads the shared state itself, at one instant and without faults."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        slices = []
        for span in spans:
            flags, rows = self._cluster.decided(span.partition, span.first, span.last)
            slices.append(Slice(dict(flags), rows, False))
        return slices


class Inspector:
    """Compares the marks of every lane with what they were at the last look."""

    rising: tuple[str, ...] = RISING
    order: tuple[tuple[str, str], ...] = ORDER

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
            ids = sequence.rows[0].values if sequence.rows else {}
            next_id = ids.get("next")
            # A late copy of its creation can put a deleted queue back into the catalog; its lanes stay deleted.
            if isinstance(next_id, int) and pointers.rows and not ids.get("deleted"):
                marks[lane] = pointer_marks(pointers)._replace(next_id=next_id)
                await self._judge(queue.incarnation, lane, marks[lane])
        return marks

    async def _judge(self, incarnation: str, lane: int, marks: Marks) -> None:
        before = self._seen.get((incarnation, lane))
        if before is not None:
            for name in self.rising:
                old, new = getattr(before, name), getattr(marks, name)
                if new < old:
                    self.faults.append(f"lane {lane}: {name} fell from {old} to {new}")
        self._seen[(incarnation, lane)] = marks
        for low, high in self.order:
            if getattr(marks, low) > getattr(marks, high):
                self.faults.append(f"lane {lane}: {low} {getattr(marks, low)} is above {high} {getattr(marks, high)}")
        await self._judge_buckets(incarnation, lane, marks)

    async def _judge_buckets(self, incarnation: str, lane: int, marks: Marks) -> None:
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
            if lane_marks.dropped < whole and not await self._keyed(queue.incarnation, lane, lane_marks.dropped):
                found.append(f"lane {lane}: {whole} buckets are full and settled, {lane_marks.dropped} are dropped")
        return found

    async def _keyed(self, incarnation: str, lane: int, bucket: int) -> bool:
        """Whether a finished bucket is kept for the keys of its messages, and with it those behind it."""
        (found,) = await self._store.read([Span(places.states(incarnation, lane, bucket), -1, -1)])
        return found.flags.get("keyed") is not None


class AckWitness:
    """Knows of every ack that took effect, whatever its client was told."""

    def __init__(self, cluster: Cluster, bucket_sizes: tuple[int, ...] = ()) -> None:
        self._cluster = cluster
        self.bucket_sizes = bucket_sizes
        self.acked: set[str] = set()
        """Names of the messages."""
        self._contents: set[bytes] = set()
        """What the receipts say that were acked with."""
        cluster.change_listener = self._see

    def receipts_of(self, deliveries: Iterable[Delivered]) -> set[str]:
        return {delivery.receipt for delivery in deliveries if content_of(delivery.receipt) in self._contents}

    def _see(self, change: Change) -> None:
        if change.partition.table is not STATES:
            return
        for row in change.rows:
            if row.values and row.values.get("settled") == ACKED:
                incarnation, lane, _ = change.partition.key.split(".")
                number, delivery = row.key, row.expect.get("delivery")
                assert isinstance(number, int)
                # A right engine always tests the delivery; what a broken one did without is no ack of any receipt.
                delivery = delivery if isinstance(delivery, int) else 0
                self._contents.add(content_of(receipts.encode(incarnation, b"", int(lane), number, delivery)))
                bodies = Partition(BODIES, change.partition.key)
                # Who acks it may have met it on a replica that has it alone.
                self.acked.update(
                    first_word(found.values["body"]) for found in self._cluster.anywhere(bodies, row.key)
                    if "body" in found.values
                )


def content_of(receipt: str) -> bytes:
    """What a receipt says, without its signature."""
    return urlsafe_b64decode(receipt)[: -receipts.SIGNATURE_BYTES]


def first_word(body: Value) -> str:
    """What a message was called when it was put: consumers that rewrite it add a mark to that."""
    assert isinstance(body, bytes)
    return body.decode().partition("~")[0]


async def moved_bodies(store: Truth, account: str, name: str) -> frozenset[str]:
    """The first words of the messages that a queue, which has kept its history, has sent elsewhere."""
    queue = await load(store, account, name)
    if queue is None:
        # Nothing is excused then: the checkers will say what has become of its messages.
        return frozenset()
    moved: set[str] = set()
    for lane in queue.lanes:
        (sequence,) = await store.read([Span(places.sequence(queue.incarnation, lane))])
        # An engine that was broken on purpose may have no sequence left: then nothing of it is known to have moved.
        next_id = sequence.rows[0].values.get("next") if sequence.rows else 0
        next_id = next_id if isinstance(next_id, int) else 0
        for bucket in range(-(-next_id // queue.settings.bucket_size)):
            place = (queue.incarnation, lane, bucket)
            states, bodies = await store.read([Span(places.states(*place)), Span(places.bodies(*place))])
            gone = {row.key for row in states.rows if row.values.get("settled") in (MOVING, MOVED)}
            moved.update(first_word(row.values["body"]) for row in bodies.rows if row.key in gone)
    return frozenset(moved)
