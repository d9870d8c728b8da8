"""How a lane of a bucketed queue begins and ends. Every kind has these six."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.marks import POINTER_NAMES, Marks
from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.store import Change, Partition, RowChange, Span, Store, Values

_NOT_OURS = ("epoch", "epoch_dropped")


def beginnings(incarnation: str, lane: int, now_ms: int) -> list[Change]:
    """The first rows of a new lane. They are sent once, and the lane is used only if all are known to have landed."""
    slot = now_ms // limits.WAKE_SLOT_MS
    start = {"wake_raised": slot, "wake_done": slot, "wake_dropped": places.wake_period(slot)}
    row = RowChange(places.SEQUENCE_ROW, {"next": None}, {"next": 0})
    rows = [
        RowChange(name, {"value": None}, {"value": start.get(name, 0)})
        for name in POINTER_NAMES
        if name not in _NOT_OURS
    ]
    return [
        Change(places.sequence(incarnation, lane), [row]),
        Change(places.pointers(incarnation, lane), rows),
    ]


def first_partitions(incarnation: str, lane: int) -> list[Partition]:
    """What the beginnings wrote to, beside sequence and marks."""
    return []


async def stop(store: Store, incarnation: str, lane: int) -> None:
    """After the lane's sequence was marked: puts and receives both look there, so there is nothing more to do."""


def buckets(sequence: Values, bucket_size: int) -> int:
    """How many a deleted lane may have."""
    next_id = sequence.get("next")
    return -(-next_id // bucket_size) if isinstance(next_id, int) else 0


async def remains(store: Store, incarnation: str, lane: int, marks: Marks, some: range) -> list[Partition]:
    """What there is to drop of these buckets of a deleted lane, and of it beside them."""
    found = []
    for bucket in some:
        found += [places.bodies(incarnation, lane, bucket), places.states(incarnation, lane, bucket)]
    periods = await _wake_periods(store, found)
    newest = places.wake_period(marks.wake_raised + places.wake_slot(limits.LOOK_AGAIN_MAXIMUM_MS)) + 1
    periods.update(range(marks.wake_dropped, newest + 1))
    return found + [places.wakes(incarnation, lane, period) for period in sorted(periods)]


async def _wake_periods(store: Store, buckets: Sequence[Partition]) -> set[int]:
    """Where the wake rows of these buckets may lie: a delay or a time-out can reach years ahead."""
    columns = {BODIES: ("visible_from",), STATES: ("visible_at",)}
    found = await store.read([Span(partition, columns=columns[partition.table]) for partition in buckets])
    times = [value for part in found for row in part.rows for value in row.values.values() if isinstance(value, int)]
    periods = {places.wake_period(places.wake_slot(time)) for time in times}
    # Clocks differ a little, and entries that the marks had passed were written again above them.
    return {period + step for period in periods for step in (-1, 0, 1)}


async def drop_some(store: Store, incarnation: str, lane: int) -> bool:
    """Beside its buckets a deleted lane holds nothing of which there may be much."""
    return False
