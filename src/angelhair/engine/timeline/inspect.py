"""Looking at the shards of a timeline, for people (`timeline shards`, the console)."""

from __future__ import annotations

from typing import NamedTuple

from angelhair.engine.store import Span
from angelhair.engine.timeline import lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import time_of
from angelhair.engine.timeline.read import WAITING, Stretch, read_stretches, waiting_since_ms

_LOOK_ROWS = 16
"""Among so many rows behind the checkpoint that one is looked for that has waited longest; some may be void."""


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
    waiting_since_ms: int | None
    """Since when that message has waited, of those that are due, which has waited longest; now less this is the lag."""


async def shards(line: Line) -> list[ShardSeen]:
    now_ms = await line.time_ms()
    found = await line.store.read([Span(line.shard(lane)) for lane in line.lanes])
    rows = {lane: lock.row_of(part) for lane, part in zip(line.lanes, found, strict=True)}
    lasts = {lane: str(row["last"]) for lane, row in rows.items()}
    stretches = [Stretch(lane, last, max(now_ms, time_of(last)), _LOOK_ROWS) for lane, last in lasts.items()]
    oldest, _ = await read_stretches(line, stretches, WAITING)
    seen = []
    for (lane, row), first in zip(rows.items(), oldest, strict=True):
        waiting = [found for found in first.rows if not found.values.get("void")]
        since_ms = min((waiting_since_ms(line, found) for found in waiting), default=None)
        seen.append(
            ShardSeen(
                lane, line.states[lane], _text(row.get("consumer")), _whole(row.get("fence")) or 0,
                _whole(row.get("taken_at")), _whole(row.get("touched_at")), _whole(row.get("mark")),
                time_of(str(row["last"])), since_ms,
            )
        )
    return seen


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


