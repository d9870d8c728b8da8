"""What this door gives about the shards of timelines, and those who work on them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from angelhair.server.rest.shapes import Count, LaneNumber, Name, Shape, Time

Spent = Annotated[float, Meta(ge=0)]


class ShardHeld(Shape):
    """A shard that the consumer holds. Its fence grows whenever it changes hands."""

    shard: LaneNumber
    fence: Count


class Share(Shape):
    """The shards that a consumer holds, the time after which its silence loses them, and what is left of it."""

    consumer: Name
    shards: list[ShardHeld]
    lock: Spent
    left: Spent


class Shard(Shape, kw_only=True):
    """A shard and who works on it. `mark`: read up to there; `last`: all processed up to there; `lag`: for how long the
    oldest message that is due has waited since it could first be delivered. `sealed`: of a number of shards that is no
    more; it is worked on until it is empty."""

    shard: LaneNumber
    state: Literal["open", "sealed"]
    lock: Literal["free", "held", "lapsed"]
    consumer: str | None
    fence: Count
    taken_at: Time | None
    touched_at: Time | None
    mark: Time | None
    last: Time | None
    lag: Spent | None


class Shards(Shape):
    """In the order of their numbers."""

    shards: list[Shard]
