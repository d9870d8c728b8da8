"""What an operator does to a lane's marks: purge, have repair look again, say what is archived (A8)."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.bucketed.lane import Lane, read_marks
from angelhair.engine.marks import raise_mark
from angelhair.engine.settling import begun


async def purge_lanes(lanes: Sequence[Lane]) -> None:
    """All that was put before this is gone."""
    for index, lane in enumerate(lanes):
        with begun(index > 0):
            await _purge(lane)


async def _purge(lane: Lane) -> None:
    marks = await read_marks(lane)
    while marks.purged < marks.next_id and not await raise_mark(lane, "purged", marks.purged, marks.next_id):
        marks = await read_marks(lane)


async def move_repair_back(lane: Lane, bucket: int) -> int:
    """Where the repair mark stands then; never below the floor."""
    marks = await read_marks(lane)
    target = max(marks.floor, min(bucket, marks.repair))
    lane.view.finished.clear()
    if target >= marks.repair:
        return target
    await raise_mark(lane, "repair", marks.repair, target, while_at=("floor", marks.floor))
    with begun():
        return (await read_marks(lane)).repair


async def raise_archived(lane: Lane, bucket: int) -> int:
    """Where the archive mark stands then. It follows the repair mark at most."""
    marks = await read_marks(lane)
    target = min(bucket, marks.repair)
    if target <= marks.archived:
        return marks.archived
    await raise_mark(lane, "archived", marks.archived, target)
    with begun():
        return (await read_marks(lane)).archived
