"""Opening a bucket: what tells a live bucket from one that was dropped (R14).

A message that was never delivered has no state row, so its first claim rests on absence; and in a bucket that was
dropped everything is absent. So every bucket is opened, once in its life, with a token of its own, and a first claim is
conditioned on that token. The drop takes it along.

Somebody who slept may open a bucket after it was dropped. Two rules make that harmless. Whoever has read a token reads
the floor afterwards, and trusts the token only if the floor is not above the bucket: the floor is raised before a drop
begins, so the token is of the bucket's life. And a token is sent once and never again: of an opening whose outcome is
unknown it is read back what became of it. So no token that was ever trusted can come back after the drop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from angelhair import limits
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.marks import pointer_marks
from angelhair.engine.settling import read_surely
from angelhair.engine.store import Applied, Change, Span, Values
from angelhair.errors import Unavailable


async def open_buckets(lane: Lane, found: Mapping[int, Values]) -> dict[int, str]:
    """The tokens of these buckets, whose flags were just read; who has none is opened, who is dropped is left out."""
    tokens = await _tokens(lane, found)
    return {bucket: tokens[bucket] for bucket in await still_there(lane, tokens)}


async def still_there(lane: Lane, buckets: Iterable[int]) -> list[int]:
    """Those of the buckets, whose tokens were read before this, that had not been dropped by then."""
    (pointers,) = await read_surely(lane.store, [Span(lane.pointers)])
    floor = pointer_marks(pointers).floor
    return [bucket for bucket in buckets if bucket >= floor]


async def _tokens(lane: Lane, found: Mapping[int, Values]) -> dict[int, str]:
    tokens: dict[int, str] = {}
    flags = dict(found)
    for _ in range(limits.OPEN_ROUNDS):
        for bucket, values in flags.items():
            if isinstance(token := values.get("opened"), str):
                tokens[bucket] = token
        missing = [bucket for bucket in flags if bucket not in tokens]
        if not missing:
            return tokens
        sent = {bucket: lane.identities.fresh() for bucket in missing}
        outcomes = await lane.store.change(
            [
                Change(lane.states(bucket), expect_flags={"opened": None}, set_flags={"opened": token})
                for bucket, token in sent.items()
            ]
        )
        for bucket, outcome in zip(missing, outcomes, strict=True):
            if isinstance(outcome, Applied):
                tokens[bucket] = sent[bucket]
        unclear = [bucket for bucket in missing if bucket not in tokens]
        if not unclear:
            return tokens
        slices = await lane.store.read([Span(lane.states(bucket), -1, -1) for bucket in unclear])
        flags = {bucket: part.flags for bucket, part in zip(unclear, slices, strict=True)}
    raise Unavailable("a bucket could not be opened")
