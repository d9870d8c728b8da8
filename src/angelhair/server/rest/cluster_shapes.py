"""What this door says about the servers of a store."""

from __future__ import annotations

from angelhair.server.rest.shapes import Count, Shape, Time


class Member(Shape, kw_only=True):
    """A process of a server. `id`: of this life of it; `lanes`, `shards`: how many it does the work of, of bucketed and
    fifo queues and of timelines."""

    id: str
    address: str
    host: str
    process: Count
    version: str
    started_at: Time
    lanes: Count
    shards: Count


class Cluster(Shape):
    """The processes that serve this store, in the order of their ids. `server`: which of them has answered."""

    server: str
    members: list[Member]
