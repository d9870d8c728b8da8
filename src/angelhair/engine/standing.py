"""What the first put with a key has written, for who goes on with it."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.bucketed import put
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.bucketed.stretches import stretches
from angelhair.engine.settling import read_surely
from angelhair.engine.store import Span, Values
from angelhair.model import NewMessage


async def as_they_stand(lane: Lane, wanted: Sequence[put.Placed], now_ms: int) -> dict[int, put.Placed | None]:
    """By id, what the first put with its key wrote, if it came so far: two writers must not mix their columns in one
    row. None when it has expired unseen: under its id it stays so, whoever writes there. Or when nobody has written it
    for so long that soon it would."""
    spans = [
        Span(lane.bodies(bucket), first, last)
        for bucket, inside in lane.by_bucket(placed.number for placed in wanted).items()
        for first, last in stretches(lane, inside)
    ]
    rows = {row.key: row.values for part in await read_surely(lane.store, spans) for row in part.rows}
    return {placed.number: _as_it_stands(lane, placed, rows.get(placed.number), now_ms) for placed in wanted}


def _as_it_stands(lane: Lane, placed: put.Placed, row: Values | None, now_ms: int) -> put.Placed | None:
    if row is None:
        return None if put.is_old(lane, placed.enqueued_at, now_ms) or put.is_late(lane, placed, now_ms) else placed
    body, attributes, enqueued_at = (row.get(name) for name in ("body", "attributes", "enqueued_at"))
    visible_from, keyed, origin = row.get("visible_from"), row.get("keyed"), row.get("origin")
    stands = placed
    if isinstance(body, bytes) and isinstance(enqueued_at, int):
        delay_ms = visible_from - enqueued_at if isinstance(visible_from, int) else 0
        text = attributes if isinstance(attributes, str) else None
        came_from = origin if isinstance(origin, str) else None
        message = NewMessage(body, text, delay_ms, placed.message.key, came_from)
        lapses_at = max(placed.lapses_at, keyed if isinstance(keyed, int) else 0)
        stands = placed._replace(message=message, enqueued_at=enqueued_at, lapses_at=lapses_at)
    return None if put.is_late(lane, stands, now_ms) else stands
