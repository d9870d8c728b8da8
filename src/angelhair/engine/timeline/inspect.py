"""Looking at the shards of a timeline, for people (`timeline shards`, the console)."""

from __future__ import annotations

from typing import NamedTuple

from angelhair.engine.store import Span
from angelhair.engine.timeline import lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import time_of
from angelhair.engine.timeline.read import KEYS_ONLY, Stretch, read_stretches

_LOOK_ROWS = 16
"""Among so many rows behind the checkpoint the first is looked for that is not void."""


class ShardSeen(NamedTuple):
    lane: int
    state: str
    """open, or sealed: it takes no more puts and is worked until it is drained."""
    consumer: str | None
    fence: int
    taken_at_ms: int | None
    touched_at_ms: int | None
    mark_ms: int | None
    last_ms: int | None
    oldest_due_ms: int | None
    """Of the oldest message that is due and not processed; now less this is the lag."""


async def shards(line: Line) -> list[ShardSeen]:
    now_ms = await line.time_ms()
    found = await line.store.read([Span(line.shard(lane)) for lane in line.lanes])
    rows = {lane: lock.row_of(part) for lane, part in zip(line.lanes, found, strict=True)}
    lasts = {lane: str(row["last"]) for lane, row in rows.items()}
    stretches = [Stretch(lane, last, max(now_ms, time_of(last)), _LOOK_ROWS) for lane, last in lasts.items()]
    oldest, _ = await read_stretches(line, stretches, KEYS_ONLY)
    seen = []
    for (lane, row), first in zip(rows.items(), oldest, strict=True):
        due = next((found.values.get("due") for found in first.rows if not found.values.get("void")), None)
        seen.append(
            ShardSeen(
                lane, line.states[lane], _text(row.get("consumer")), _whole(row.get("fence")) or 0,
                _whole(row.get("taken_at")), _whole(row.get("touched_at")), _whole(row.get("mark")),
                time_of(str(row["last"])), _whole(due),
            )
        )
    return seen


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


