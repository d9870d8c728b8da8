"""Acks of messages that were set aside to shards which this server does not hold: their rows are marked void.

As with a put, the mark decides (R8). A row that is void before its shard's mark is above it is void for everybody who
reads so far. Is the mark above it when the row is there, somebody may have read it before: then nobody can say what
the ack came to. Is it above it before anything is written, nothing is, and the message is delivered again.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.settling import read_surely, write_through
from angelhair.engine.store import Row, Span, Values, Write
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.lock import row_of
from angelhair.engine.timeline.parts import time_of
from angelhair.engine.timeline.put import ttl_seconds, until
from angelhair.errors import AngelhairError, OutcomeUnknown, StaleReceipt, StoreError

NOTHING: Values = {"body": b"", "attributes": "", "origin": "", "enqueued_at": 0, "deliveries": 0, "renewed": 0}
"""Every column that the row may have: what has a TTL is only ever rewritten whole, or the rest would outlive it."""

Place = tuple[int, str]
"""A lane, and the key of a row."""


async def settle_elsewhere(line: Line, places: Sequence[Place]) -> list[AngelhairError | None]:
    """None for each that nobody will be given. Raises `QueueGone`."""
    outcomes: dict[Place, AngelhairError | None] = {}
    waiting = await _unread(line, places)
    for place in places:
        if place not in waiting:
            outcomes[place] = StaleReceipt("the message was set aside, and may be given again by now")
    if waiting:
        now_ms = await line.time_ms()
        written = await write_through(line.store, [_void(line, place, now_ms) for place in waiting])
        outcomes.update(zip(waiting, written, strict=True))
        outcomes.update(await _seen_too_late(line, [place for place in waiting if outcomes[place] is None]))
    for place, outcome in outcomes.items():
        if outcome is None:
            line.sessions.finish(place)
    return [outcomes[place] for place in places]


async def _unread(line: Line, places: Sequence[Place]) -> list[Place]:
    """Those, each once, that lie above the marks of their shards."""
    lanes = sorted({lane for lane, _ in places})
    found = await read_surely(line.store, [Span(line.shard(lane)) for lane in lanes])
    marks = {lane: row_of(part)["mark"] for lane, part in zip(lanes, found, strict=True)}
    return [place for place in dict.fromkeys(places) if _above(place, marks[place[0]])]


def _above(place: Place, mark_ms: object) -> bool:
    return isinstance(mark_ms, int) and time_of(place[1]) > mark_ms


async def _seen_too_late(line: Line, places: Sequence[Place]) -> dict[Place, AngelhairError]:
    """Of rows that are void now: those of which it is not known."""
    if not places:
        return {}
    try:
        sure = await _unread(line, places)
    except StoreError as error:
        return dict.fromkeys(places, OutcomeUnknown(str(error)))
    late = OutcomeUnknown("somebody came to the message while it was acked: it may be delivered again")
    return {place: late for place in places if place not in sure}


def _void(line: Line, place: Place, now_ms: int) -> Write:
    lane, key = place
    part = line.part_of(time_of(key))
    row = Row(key, {**NOTHING, "due": time_of(key), "void": 1})
    return Write(line.dues(lane, part), [row], ttl_seconds(until(line, part), now_ms))
