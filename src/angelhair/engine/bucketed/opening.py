"""Opening a bucket: what tells a live bucket from one that was dropped (R14).

A message that was never delivered has no state row, so its first claim rests on absence; and in a bucket that was
dropped everything is absent. So every bucket is opened, once in its life, with a token of its own, before its bodies
are read, and a first claim is conditioned on the token that its server read then. The drop takes the token along.

A token is sent once and never again: of an opening whose outcome is unknown it is read back what became of it. So an
opening that lands after the drop brings a token that nobody has read a body under.
"""

from __future__ import annotations

from collections.abc import Mapping

from angelhair import limits
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.store import Applied, Change, Span, Values
from angelhair.errors import Unavailable


async def open_buckets(lane: Lane, found: Mapping[int, Values]) -> dict[int, str]:
    """The tokens of these buckets, whose flags were just read. Those that have none are opened."""
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
