"""How a lane of a fifo queue begins and ends. Every kind has these six."""

from __future__ import annotations

from angelhair.engine import places
from angelhair.engine.marks import Marks, pointer_marks
from angelhair.engine.settling import change_one, expect_decided
from angelhair.engine.store import Applied, Change, Partition, RowChange, Span, Store, Values

MARKS = ("repair", "floor", "dropped", "purged", "epoch", "epoch_dropped")
FIRST = "first"
"""The token of a lane's first bucket and first epoch: their opening is sent once, whatever comes of it."""


def beginnings(incarnation: str, lane: int, now_ms: int) -> list[Change]:
    """The first rows of a new lane. They are sent once, and the lane is used only if all are known to have landed."""
    row = RowChange(places.SEQUENCE_ROW, {"next": None}, {"next": 0, "attempt": FIRST})
    rows = [RowChange(name, {"value": None}, {"value": 0}) for name in MARKS]
    return [
        Change(
            places.log(incarnation, lane, 0),
            expect_flags={"opened": None, "deleted": None},
            set_flags={"opened": FIRST, "next": 0},
        ),
        Change(
            places.groups(incarnation, lane, 0),
            expect_flags={"ready": None, "deleted": None},
            set_flags={"ready": FIRST},
        ),
        Change(places.sequence(incarnation, lane), [row]),
        Change(places.pointers(incarnation, lane), rows),
    ]


def first_partitions(incarnation: str, lane: int) -> list[Partition]:
    """What the beginnings wrote to, beside sequence and marks."""
    return [places.log(incarnation, lane, 0), places.groups(incarnation, lane, 0)]


async def stop(store: Store, incarnation: str, lane: int) -> None:
    """After the lane's sequence was marked, so that its log opens no other bucket: puts look at the log's last bucket
    only, and receives at the groups (R6)."""
    sequence, pointers = await store.read(
        [Span(places.sequence(incarnation, lane)), Span(places.pointers(incarnation, lane))]
    )
    if not pointers.rows or not sequence.rows:
        return
    tail = sequence.rows[0].values.get("next")
    assert isinstance(tail, int)
    expect_decided(await change_one(store, Change(places.log(incarnation, lane, tail), set_flags={"deleted": 1})))
    epoch = pointer_marks(pointers).epoch
    while True:
        groups = places.groups(incarnation, lane, epoch)
        change = Change(groups, expect_flags={"sealed": None}, set_flags={"deleted": 1})
        if isinstance(expect_decided(await change_one(store, change)), Applied):
            # Neither sealed nor made ready from now on: there will be no other.
            return
        epoch += 1


def buckets(sequence: Values, bucket_size: int) -> int:
    """How many a deleted lane may have: one behind the last, too, which somebody may have opened without saying so."""
    last = sequence.get("next")
    return last + 2 if isinstance(last, int) else 0


async def remains(store: Store, incarnation: str, lane: int, marks: Marks, some: range) -> list[Partition]:
    """What there is to drop of these buckets of a deleted lane, and of it beside them."""
    epochs = range(marks.epoch_dropped, marks.epoch + 2)
    return [
        *(places.log(incarnation, lane, bucket) for bucket in some),
        *(places.groups(incarnation, lane, epoch) for epoch in epochs),
    ]


async def drop_some(store: Store, incarnation: str, lane: int) -> bool:
    """Beside its buckets a deleted lane holds nothing of which there may be much."""
    return False
