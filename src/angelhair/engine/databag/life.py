"""How a databag begins and ends. Every kind has these six. A databag has one lane."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag.sync import MARK
from angelhair.engine.marks import Marks
from angelhair.engine.settling import change_one, change_settled, expect_decided
from angelhair.engine.store import Change, Partition, RowChange, Span, Store, Values
from angelhair.errors import StoreError

MARKS = ("floor", "dropped", MARK)
BLOCKS = range(limits.BAG_BLOCKS)


def beginnings(incarnation: str, lane: int, now_ms: int) -> list[Change]:
    """The first rows. They are sent once, and the databag is used only if all are known to have landed: who finds none
    of them later knows that it is gone. Locks are there when something has been served."""
    sequence = RowChange(places.SEQUENCE_ROW, {"next": None}, {"next": 0})
    pointers = [RowChange(name, {"value": None}, {"value": 0}) for name in MARKS]
    none: Values = {"version": None, "deleted": None}
    epochs = [RowChange(block, none, epochs_of.first_values(now_ms)) for block in BLOCKS]
    return [
        Change(places.bag_epochs(incarnation), epochs),
        Change(places.sequence(incarnation, lane), [sequence]),
        Change(places.pointers(incarnation, lane), pointers),
    ]


def first_partitions(incarnation: str, lane: int) -> list[Partition]:
    """What the beginnings wrote to, beside sequence and marks."""
    return [places.bag_epochs(incarnation)]


async def stop(store: Store, incarnation: str, lane: int) -> None:
    """After the sequence was marked: puts look at the epochs, receives change the locks (R6)."""
    rows = [RowChange(block, {}, {"deleted": 1}) for block in BLOCKS]
    changes = [Change(places.bag_epochs(incarnation), rows)]
    changes += [
        Change(places.bag_locks(incarnation, block), (), {"deleted": None}, {"deleted": 1}) for block in BLOCKS
    ]
    for outcome in await change_settled(store, changes):
        expect_decided(outcome)


def buckets(sequence: Values, bucket_size: int) -> int:
    """A databag has none. One portion is for what there is beside its epochs."""
    return 1 if sequence else 0


async def remains(store: Store, incarnation: str, lane: int, marks: Marks, some: range) -> list[Partition]:
    """What there is to drop once the epochs are gone."""
    return [places.bag_epochs(incarnation), *(places.bag_locks(incarnation, block) for block in BLOCKS)]


async def drop_some(store: Store, incarnation: str, lane: int) -> bool:
    """Drops the epochs of one block of a deleted databag; True when there were some. What is known of them goes after
    them."""
    (found,) = await store.read([Span(places.bag_epochs(incarnation))])
    for row in found.rows:
        if row.values.get("version") is None:
            continue
        epochs = epochs_of.parse({**row.values, "deleted": None})
        numbers = [*(number for each in epochs.over for number in range(each.first, each.last + 1)), *epochs.read]
        block = int(row.key)
        for outcome in await store.drop([places.bag_messages(incarnation, block, number) for number in numbers]):
            if isinstance(outcome, StoreError):
                raise outcome
        gone = RowChange(block, {"version": epochs.version}, {"version": None})
        expect_decided(await change_one(store, Change(places.bag_epochs(incarnation), [gone])))
        return True
    return False
