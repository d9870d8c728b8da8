"""What was written into a bucket that was dropped meanwhile: nobody reads there, and it would stay for ever (R14)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.marks import QueueGone, pointer_marks
from angelhair.engine.settling import read_surely
from angelhair.engine.store import Span
from angelhair.errors import StoreError


async def sweep_dropped(lane: Lane, buckets: Iterable[int]) -> None:
    """For who has just written rows into these buckets without knowing whether they are still there."""
    (pointers,) = await read_surely(lane.store, [Span(lane.pointers)])
    try:
        floor = pointer_marks(pointers).floor
    except QueueGone:
        return
    await drop_again(lane, [bucket for bucket in buckets if bucket < floor])


async def drop_again(lane: Lane, buckets: Sequence[int]) -> None:
    """Of buckets below the floor. If it fails they stay as they are, which harms nobody."""
    try:
        await lane.store.drop([lane.bodies(bucket) for bucket in buckets])
        await lane.store.drop([lane.states(bucket) for bucket in buckets])
    except StoreError:
        pass
