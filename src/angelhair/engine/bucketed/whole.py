"""Before a first claim: the message itself, whole (row 19 of docs/cassandra.md).

What is found by its dates may be there in part, or may not be seen again: a put that nobody has confirmed. A message
that was claimed counts as given (`given.py`): whoever goes on with its put, its move or its run leaves it out. So
nobody claims for the first time what he cannot hand out.
"""

from __future__ import annotations

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.examine import remaining_ms
from angelhair.engine.bucketed.lane import Candidate, Lane
from angelhair.engine.bucketed.stretches import stretches
from angelhair.engine.schema import is_whole
from angelhair.engine.store import Span, Values


async def whole_ones(lane: Lane, found: list[tuple[int, Candidate]]) -> list[tuple[int, Candidate]]:
    """Those that were delivered before, and of the others those that are there, with what they say."""
    unread: dict[int, set[int]] = {}
    for bucket, candidate in found:
        if candidate.body is None and not candidate.delivery:
            unread.setdefault(bucket, set()).add(candidate.number)
    if not unread:
        return found
    parts = await lane.store.read(
        [
            Span(lane.bodies(bucket), first, last)
            for bucket, numbers in unread.items() for first, last in stretches(lane, numbers)
        ]
    )
    rows = {int(row.key): row.values for part in parts for row in part.rows}
    now = lane.clock.now()
    whole: list[tuple[int, Candidate]] = []
    for bucket, candidate in found:
        if candidate.number not in unread.get(bucket, ()):
            whole.append((bucket, candidate))
            continue
        values = rows.get(candidate.number, {})
        wait_ms = _wait_ms(lane, candidate, values, now)
        if wait_ms is None:
            whole.append((bucket, _with_content(lane, candidate, values)))
        else:
            lane.view.schedule(bucket, now.monotonic_ms + wait_ms)
    return whole


def _wait_ms(lane: Lane, candidate: Candidate, values: Values, now: Moment) -> int | None:
    """How long it is nobody's yet; None if all of it is there and its time has come."""
    enqueued_at, visible_from = values.get("enqueued_at"), values.get("visible_from")
    if not is_whole(values) or not isinstance(enqueued_at, int):
        return limits.CLOSE_PATIENCE_MS
    if not isinstance(visible_from, int):
        return None
    # Its date may have been seen without its delay, and it was taken for one that has none.
    revision = -1 if candidate.revision is None else candidate.revision
    return remaining_ms(lane, candidate.number, revision, visible_from, visible_from - enqueued_at, now) or None


def _with_content(lane: Lane, candidate: Candidate, values: Values) -> Candidate:
    body, attributes, origin = values["body"], values.get("attributes"), values.get("origin")
    enqueued_at = values["enqueued_at"]
    assert isinstance(body, bytes) and isinstance(enqueued_at, int)
    lane.view.note_size(len(body))
    return candidate._replace(
        body=body, attributes=attributes if isinstance(attributes, str) else None, enqueued_at=enqueued_at,
        origin=origin if isinstance(origin, str) else None,
    )
