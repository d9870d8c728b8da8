"""The log of a lane: where it ends, how it grows, how its next bucket is opened (R12).

A message's number is its place in the log. The partition of a bucket holds its rows and, as flags, the next number and
the token of its opening; every put is conditioned on both. So there are no gaps and nothing to repair, and whoever
slept while a bucket was filled, finished and dropped is refused: no opening is ever sent twice under one token.

A bucket is full when its next number is the first of the one behind it. Then that one is opened, and the lane's own row
(`sequences`) says that it is the last now. Only what stands there is ever put to.
"""

from __future__ import annotations

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.fifo.keys import Keys
from angelhair.engine.fifo.lane import Lane, Tail, tail_of
from angelhair.engine.marks import QueueGone
from angelhair.engine.schema import LOG_LIGHT
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, Refused, RowChange, Slice, Span, Values
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable


async def learn(lane: Lane) -> tuple[Tail, Keys]:
    """The log's end with room behind it, and the keys of the window up to there. Raises `QueueGone`."""
    view = lane.view
    if view.keys is not None and not view.keys.fits(lane.settings):
        view.forget_log()
    for _ in range(limits.RESERVE_ROUNDS):
        if view.tail is None or view.keys is None:
            await _read_back(lane)
        elif view.behind:
            await _catch_up(lane)
        tail, keys = view.tail, view.keys
        if tail is None or keys is None:
            continue
        if keys.end == lane.first_of(tail.bucket + 1):
            await _open_next(lane, tail)
        elif lane.bucket_of(keys.end) == tail.bucket:
            return tail, keys
        else:
            # Another put of this server has learned of a later bucket: only a bucket that is full is left for the next.
            view.behind = True
    raise Unavailable("too many servers put to this lane at once")


async def _read_back(lane: Lane) -> None:
    """All that the window holds, from the log's end back."""
    (sequence,) = await lane.store.read([Span(lane.sequence)])
    tail = tail_of(lane, sequence)
    horizon_ms = Keys(lane.settings, 0).horizon_ms(await lane.time_ms())
    slices = [await _light(lane, tail.bucket, lane.first_of(tail.bucket))]
    _check(lane, tail, slices[0])
    bucket = tail.bucket
    while bucket > 0 and not _reaches(slices[0], horizon_ms):
        bucket -= 1
        found = await _light(lane, bucket, lane.first_of(bucket))
        if not found.rows:
            # Dropped: nothing is, before the window has left it.
            bucket += 1
            break
        slices.insert(0, found)
    keys = Keys(lane.settings, lane.first_of(bucket))
    for found in slices:
        keys.add_rows(found.rows)
    lane.view.tail, lane.view.keys, lane.view.behind = tail, keys, False


def _reaches(found: Slice, horizon_ms: int) -> bool:
    """Whether the first of these rows is older than the window: dates never fall."""
    if not found.rows:
        return False
    enqueued_at = found.rows[0].values.get("enqueued_at")
    return isinstance(enqueued_at, int) and enqueued_at < horizon_ms


async def _catch_up(lane: Lane) -> None:
    """Reads what others have put since."""
    view = lane.view
    keys = view.keys
    assert keys is not None
    (sequence,) = await lane.store.read([Span(lane.sequence)])
    tail = tail_of(lane, sequence)
    bucket = lane.bucket_of(keys.end)
    while bucket <= tail.bucket:
        found = await _light(lane, bucket, keys.end)
        if bucket == tail.bucket:
            _check(lane, tail, found)
        keys.add_rows(found.rows)
        if bucket < tail.bucket and lane.bucket_of(keys.end) == bucket:
            # Below the last one every bucket is full; this one was dropped while we slept.
            view.forget_log()
            return
        bucket += 1
    if view.keys is keys:
        view.tail, view.behind = tail, False


def _check(lane: Lane, tail: Tail, found: Slice) -> None:
    if found.flags.get("opened") != tail.token or found.flags.get("deleted"):
        raise QueueGone(lane.queue)


async def _light(lane: Lane, bucket: int, first: int) -> Slice:
    (found,) = await lane.store.read([Span(lane.log(bucket), first, None, None, LOG_LIGHT)])
    return found


async def _open_next(lane: Lane, tail: Tail) -> None:
    """The bucket behind a full one becomes the last. Raises what kept it from that; nothing was put then."""
    bucket = tail.bucket + 1
    token = await _opened(lane, bucket)
    expect: Values = {"next": tail.bucket, "attempt": tail.token, "deleted": None}
    row = RowChange(places.SEQUENCE_ROW, expect, {"next": bucket, "attempt": token})
    outcome = await change_one(lane.store, Change(lane.sequence, [row]))
    if isinstance(outcome, StoreError):
        raise Unavailable(str(outcome))
    lane.view.tail = Tail(bucket, token)
    if isinstance(outcome, Refused):
        # By ourselves, perhaps, or by who was faster; or it is long ago.
        lane.view.behind = True


async def _opened(lane: Lane, bucket: int) -> str:
    """The token with which a bucket is open."""
    for _ in range(limits.OPEN_ROUNDS):
        token = lane.identities.fresh()
        (outcome,) = await lane.store.change(
            [
                Change(
                    lane.log(bucket),
                    expect_flags={"opened": None, "deleted": None},
                    set_flags={"opened": token, "next": lane.first_of(bucket)},
                )
            ]
        )
        if isinstance(outcome, Applied):
            return token
        if isinstance(outcome, Refused):
            found = outcome.flags.get("opened")
            if isinstance(found, str):
                return found
            raise QueueGone(lane.queue)
        if not isinstance(outcome, OutcomeUnknown):
            raise outcome
        # A copy of this opening may land at any time: it must not be one that somebody believes in.
    raise Unavailable("the next bucket of the log could not be opened")
