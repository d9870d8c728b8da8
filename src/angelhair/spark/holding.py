"""What of a queue its lake holds: up to where, and in which files.

Ids below a lane's border are read from the lake, the others from the queue, so that each comes once. Where both have a
bucket the lake wins. Both say the same, as a finished bucket never changes; but the queue may drop it between the plan
and the read, and reading files costs the store nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from angelhair.spark.planning import QueueShape, Run
from angelhair.spark.points import Times, begins_after_ms, begins_before_ms, first_bucket

if TYPE_CHECKING:
    from angelhair.spark.lakes import LakeFile


class Piece(NamedTuple):
    """A file, and which ids of the lane it can hold."""

    uri: str
    first: int
    end: int


class Held(NamedTuple):
    """What a lake holds of a queue's present incarnation."""

    borders: Mapping[int, int]
    """By lane: ids below are in the lake."""
    pieces: Mapping[int, tuple[Piece, ...]]

    def border(self, lane: int) -> int:
        return self.borders.get(lane, 0)

    def first(self, lane: int) -> int | None:
        """The first id of the lane that it may hold; None if it holds none."""
        return min((piece.first for piece in self.pieces.get(lane, ())), default=None)

    def files_of(self, run: Run) -> tuple[str, ...] | None:
        """Where these ids are; None if they are in the queue. A run lies on one side of the border."""
        if run.first >= self.border(run.lane):
            return None
        pieces = self.pieces.get(run.lane, ())
        return tuple(piece.uri for piece in pieces if piece.first < run.end and piece.end > run.first)

    async def put_between(self, run: Run, times: Times, shape: QueueShape) -> Run:
        """What of a run was put in these times, by the files' own words; Spark or the task tests the rows."""
        pieces = sorted(self.pieces.get(run.lane, ()), key=lambda piece: piece.first)
        if any(piece.end > following.first for piece, following in pairwise(pieces)):
            return run  # names that do not say in which order the files are

        from angelhair.spark.reading.lake import begun_ms

        async def begun(index: int) -> int | None:
            return begun_ms(pieces[index].uri)

        first, end = run.first, run.end
        if times.first_ms is not None and pieces:
            index = await first_bucket(range(len(pieces)), begins_after_ms(times.first_ms, shape), False, begun)
            first = max(first, pieces[index].first)
        if times.end_ms is not None and pieces:
            index = await first_bucket(range(len(pieces)), begins_before_ms(times.end_ms), True, begun)
            end = min(end, pieces[index].first) if index < len(pieces) else end
        return run._replace(first=first, end=max(first, end))


NOTHING = Held({}, {})


def held(root: str | None, shape: QueueShape) -> Held:
    """Look at the queue first: what it drops after that look was in the lake before. Raises if there is no lake; a read
    makes none."""
    if root is None:
        return NOTHING
    from angelhair.spark.lakes import open_lake, table_place

    lake = open_lake(table_place(root, shape.name))
    size = shape.bucket_size
    borders = {lane.number: (lake.archived(shape.incarnation, lane.number) or 0) * size for lane in shape.lanes}
    pieces: dict[int, list[Piece]] = {lane: [] for lane in borders}
    for file in lake.held():
        if file.lane in pieces and (piece := _piece(file, lake.place, shape)) is not None:
            pieces[file.lane].append(piece)
    return Held(borders, {lane: tuple(found) for lane, found in pieces.items()})


def _piece(file: LakeFile, place: str, shape: QueueShape) -> Piece | None:
    """None for a file of another incarnation. A file that somebody else made may hold several; the task looks."""
    uri, name = f"{place.rstrip('/')}/{file.path}", file.name
    if name is None:
        return Piece(uri, file.first, file.last + 1)
    if name.incarnation != shape.incarnation:
        return None
    return Piece(uri, name.first_bucket * shape.bucket_size, name.end_bucket * shape.bucket_size)
