"""One piece of a lane at a time: from bitmaps to a word for every id, and to what is wrong with which. In tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from angelhair.spark.pipelines.audit import evidence, words
from angelhair.spark.pipelines.audit.evidence import PIECE_IDS

Bits = NDArray[np.bool_]

LINES = pa.schema(
    [
        ("kind", pa.string()), ("lane", pa.int32()), ("word", pa.string()), ("first", pa.int64()), ("last", pa.int64()),
    ]
)
LINES_DDL = "kind string, lane int, word string, first bigint, last bigint"
"""A run of ids of a lane that have a word in common."""


class Short(NamedTuple):
    """A file of the lake with fewer rows than the table says, or without any that can be read."""

    first: int
    last: int
    exact: bool
    """Whether every id between was in it: then what is missing is known by name."""


class LaneFacts(NamedTuple):
    """A lane's marks, as ids, and what the lake says of it."""

    number: int
    next_id: int
    floor: int
    settled: int
    lake_first: int
    lake_end: int
    """Ids between, the end not included, are in the lake as far as they were written."""
    kept_until: int
    """What is below may only be dropped once it is in the lake: so it is lost if it is nowhere."""
    short: tuple[Short, ...] = ()


def accounting(lanes: dict[int, LaneFacts]) -> Callable[[pa.Table], pa.Table]:
    """For `groupBy("lane", "piece").applyInArrow`: all rows of one piece to its lines."""

    def account(piece: pa.Table) -> pa.Table:
        lane, number = piece.column("lane")[0].as_py(), piece.column("piece")[0].as_py()
        lines = list(account_piece(lanes[lane], number, piece.to_pylist())) if lane in lanes else []
        return pa.Table.from_pylist([dict(zip(LINES.names, line, strict=True)) for line in lines], LINES)

    return account


Line = tuple[str, int, str, int, int]


def account_piece(lane: LaneFacts, piece: int, rows: list[dict[str, object]]) -> Iterator[Line]:
    """Lines of ids that have a word in common, each as long as it can be within the piece."""
    base = piece * PIECE_IDS
    ids = np.arange(base, base + PIECE_IDS)
    by_source = {source: _any(rows, source, "ids") for source in (evidence.QUEUE, evidence.LAKE, evidence.STATES)}
    queue, lake, states = by_source.values()
    given = ids < lane.next_id

    account = np.full(PIECE_IDS, "", dtype=object)
    # Where both know an id, the queue does better: its state may have changed since, and the lake's never does.
    for source in (evidence.LAKE, evidence.QUEUE):
        for row in rows:
            if row["source"] == source:
                account[_bits(row["ids"])] = row["word"]
    for word, which in _nowhere(lane, ids, given & ~queue & ~lake, states):
        account[which] = word
    for word in sorted(set(account) - {""}):
        yield from _lines(words.ACCOUNT, lane.number, word, base, account == word)

    in_lake = (ids >= lane.lake_first) & (ids < lane.lake_end)
    found = {
        words.LOST: account == words.LOST,
        words.UNCLEAR: account == words.UNCLEAR,
        words.MISSING_IN_QUEUE: states & ~queue & lake & (ids >= lane.floor),
        words.MISSING_IN_LAKE: queue & ~lake & in_lake,
        words.REDELIVERED: _any(rows, None, "redelivered"),
        words.PASSED_OVER: _any(rows, None, "passed"),
        words.CORRUPTED: _any(rows, None, "damaged") | _found(rows, words.CORRUPTED),
        words.DUPLICATED: _found(rows, words.DUPLICATED),
        words.ARCHIVED_TWICE: _found(rows, words.ARCHIVED_TWICE),
        words.BEYOND: lake & ~given,
    }
    facts = {words.IN_QUEUE: queue, words.IN_LAKE: lake, words.DELIVERED: _any(rows, None, "delivered")}
    for kind, sets in ((words.FINDING, found), (words.FACT, facts)):
        for word, which in sets.items():
            yield from _lines(kind, lane.number, word, base, which)


def _nowhere(lane: LaneFacts, ids: NDArray[np.int64], absent: Bits, states: Bits) -> Iterator[tuple[str, Bits]]:
    """Words for ids that are neither in the queue nor in the lake; a later one goes before an earlier one."""
    here = absent & (ids >= lane.floor)
    yield words.UNWRITTEN, here & (ids >= lane.settled)
    yield words.VOID, here & (ids < lane.settled)
    # A state row is made only for a body that somebody has seen.
    yield words.LOST, here & states
    gone = absent & (ids < lane.floor)
    yield words.DROPPED, gone
    yield words.LOST, gone & (ids >= lane.lake_end) & (ids < lane.kept_until)
    in_lake = gone & (ids >= lane.lake_first) & (ids < lane.lake_end)
    yield words.VOID, in_lake
    for short in lane.short:
        between = in_lake & (ids >= short.first) & (ids <= short.last)
        yield words.LOST if short.exact else words.UNCLEAR, between


def _bits(bitmap: object) -> Bits:
    if not isinstance(bitmap, bytes):
        return np.zeros(PIECE_IDS, dtype=bool)
    return np.unpackbits(np.frombuffer(bitmap, np.uint8), count=PIECE_IDS, bitorder="little").astype(bool)


def _any(rows: list[dict[str, object]], source: str | None, bitmap: str) -> Bits:
    found = np.zeros(PIECE_IDS, dtype=bool)
    for row in rows:
        if source is None or row["source"] == source:
            found |= _bits(row[bitmap])
    return found


def _found(rows: list[dict[str, object]], word: str) -> Bits:
    return _any([row for row in rows if row["word"] == word], evidence.FOUND, "ids")


def _lines(kind: str, lane: int, word: str, base: int, which: Bits) -> Iterator[Line]:
    edges = np.flatnonzero(np.diff(which.astype(np.int8), prepend=0, append=0))
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield kind, lane, word, base + first, base + end - 1
