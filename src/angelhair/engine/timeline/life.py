"""How a shard of a timeline begins and ends. Every kind has these six."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.marks import Marks
from angelhair.engine.settling import change_one, expect_decided
from angelhair.engine.store import Change, Partition, RowChange, Span, Store, Values
from angelhair.engine.timeline.parts import bound
from angelhair.errors import StoreError

MARKS = ("repair", "floor", "dropped")
"""`repair`: parts below are worked off and dropped, of a queue whose rows do not expire."""


def beginnings(incarnation: str, lane: int, now_ms: int) -> list[Change]:
    """The first rows of a new lane. They are sent once, and the lane is used only if all are known to have landed."""
    sequence = RowChange(places.SEQUENCE_ROW, {"next": None}, {"next": 0})
    pointers = [RowChange(name, {"value": None}, {"value": 0}) for name in MARKS]
    values: Values = {"mark": now_ms, "last": bound(now_ms), "holder": "", "fence": 0, "beat": 0, "duration": 0}
    shard = RowChange(places.SHARD_ROW, {"fence": None, "deleted": None}, values)
    return [
        Change(places.shard(incarnation, lane), [shard]),
        Change(places.sequence(incarnation, lane), [sequence]),
        Change(places.pointers(incarnation, lane), pointers),
    ]


def first_partitions(incarnation: str, lane: int) -> list[Partition]:
    """What the beginnings wrote to, beside sequence and marks."""
    return [places.shard(incarnation, lane)]


async def stop(store: Store, incarnation: str, lane: int) -> None:
    """After the lane's sequence was marked, where puts look: consumers look at the shard's own row (R6)."""
    row = RowChange(places.SHARD_ROW, {}, {"deleted": 1})
    expect_decided(await change_one(store, Change(places.shard(incarnation, lane), [row])))


def buckets(sequence: Values, bucket_size: int) -> int:
    """A timeline has none. One portion is for what there is beside its parts."""
    return 1 if sequence else 0


async def remains(store: Store, incarnation: str, lane: int, marks: Marks, some: range) -> list[Partition]:
    """What there is to drop of a deleted lane once its parts are gone."""
    return [places.spans(incarnation, lane), places.shard(incarnation, lane)]


async def drop_some(store: Store, incarnation: str, lane: int) -> bool:
    """Drops the parts of one span of a deleted lane; True when there was one. The index goes after what it leads to."""
    first: str | None = None
    while True:
        root = Span(places.spans(incarnation, lane), first, None, limits.TIMELINE_INDEX_ROWS)
        (found,) = await store.read([root])
        spans = list(dict.fromkeys(int(str(row.key).partition(".")[0]) for row in found.rows))
        partitions = [places.parts(incarnation, lane, span) for span in spans]
        slices = await store.read([Span(partition, limit=1) for partition in partitions]) if partitions else []
        for partition, slice_ in zip(partitions, slices, strict=True):
            if slice_.rows:
                await _drop_span(store, incarnation, lane, partition)
                return True
        if not found.more:
            return False
        first = f"{spans[-1] + 1:010d}"


async def _drop_span(store: Store, incarnation: str, lane: int, partition: Partition) -> None:
    (found,) = await store.read([Span(partition)])
    parts = list(dict.fromkeys(int(str(row.key).partition(".")[0]) for row in found.rows))
    for place in range(0, len(parts), limits.TIMELINE_INDEX_ROWS):
        some = [places.dues(incarnation, lane, part) for part in parts[place : place + limits.TIMELINE_INDEX_ROWS]]
        await _dropped(store, some)
    await _dropped(store, [partition])


async def _dropped(store: Store, partitions: list[Partition]) -> None:
    for outcome in await store.drop(partitions):
        if isinstance(outcome, StoreError):
            raise outcome
