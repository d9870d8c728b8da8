"""What the client's verbs take and give. Times are in seconds, moments are aware of their time zone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeAlias, TypedDict

from angelhair.errors import AngelhairError

Seconds: TypeAlias = float
"""Fractions are allowed, down to a millisecond."""


class QueueSettings(TypedDict, total=False):
    """What can be chosen about a queue. What is left out takes its default, or stays as it is."""

    kind: str
    bucket_size: int
    lanes: int
    visibility_timeout: Seconds
    repair_timeout: Seconds
    delay: Seconds
    retention: Seconds | None
    """None: for ever."""
    max_deliveries: int | None
    dead_letter_queue: str | None
    history: Seconds
    archive: bool
    dedup_window: Seconds
    dedup_scope: str
    priorities: int
    fair: bool
    shards: int
    """Of a timeline, in place of lanes."""
    granularity: str
    """minute, hour or day."""
    producer_delay: Seconds
    expire_after: Seconds | None
    lock: Seconds
    min_partitions: int
    max_partitions: int
    """Of a databag."""


class Statistics(NamedTuple):
    """What a queue holds; estimates unless `exact`."""

    visible: int
    in_flight: int
    delayed: int
    dead: int
    oldest_age: Seconds | None
    exact: bool


@dataclass(frozen=True, slots=True)
class Partitions:
    """How a databag is cut, as it is in force on the server that was asked since its last sync. What is stored, in the
    queue's settings, may be newer; it is in force within `sync`."""

    count: int
    min_partitions: int
    max_partitions: int
    visibility_timeout: Seconds
    sync: Seconds
    locked: int
    """Those that have served, and serve nothing until their time is over."""
    epochs: int
    duplicates: int
    """Messages that were served after they had been deleted, as far as the store shows it."""


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    kind: str
    settings: QueueSettings
    changeable: tuple[str, ...]
    fixed: tuple[str, ...]
    statistics: Statistics | None
    """None in the answer to a change, which does not count."""
    created_at: datetime
    changed_at: datetime
    warnings: tuple[str, ...] = ()
    """What cannot work as it is set, in words for people."""
    partitions: Partitions | None = None
    """Of a databag; None in the answer to a change, as above."""


class TopicSettings(TypedDict, total=False):
    """What can be chosen about a topic. What is left out takes its default."""

    kind: str
    """standard or fifo."""
    content_dedup: bool
    dedup_scope: str
    """topic or group."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    kind: str
    content_dedup: bool
    dedup_scope: str
    queues: tuple[str, ...] | None
    """Who is subscribed; None in the answer to its making, which does not look."""
    others: int | None
    """How many subscriptions there are beside those."""
    created_at: datetime
    changed_at: datetime


class Draft(NamedTuple):
    """A message to be put, with what is to be said about it. `put_many` takes these beside plain bodies."""

    body: bytes | str
    content_type: str | None = None
    delay: Seconds | None = None
    due: datetime | None = None
    key: str | None = None
    """Puts with one key within the queue's window are one message."""
    group: str | None = None
    """Whose message it is: who floods a fair queue is served after the others."""
    priority: int | None = None
    """A higher one is served first; None is 0."""


class PutOutcome(NamedTuple):
    """What became of one message of many: an id, or an error."""

    id: str | None
    error: AngelhairError | None


class AckFailure(NamedTuple):
    """A receipt that did not settle its message, and why."""

    receipt: Receipt
    error: AngelhairError


class Delivered(Protocol):
    """What names one delivery: a `Message`, or a `Receipt` that was kept of one."""

    @property
    def queue(self) -> str: ...
    @property
    def receipt(self) -> str: ...


class Receipt(NamedTuple):
    queue: str
    receipt: str


class Origin(NamedTuple):
    queue: str
    id: str


@dataclass(frozen=True, slots=True)
class PeekedMessage:
    """A message that was looked at and not taken."""

    queue: str
    id: str
    body: bytes
    content_type: str | None
    deliveries: int
    enqueued_at: datetime
    origin: Origin | None
    """Where it came from, if it was moved here."""
    group: str | None = field(default=None, kw_only=True)
    priority: int = field(default=0, kw_only=True)
    due: datetime | None = field(default=None, kw_only=True)
    """Of a timeline: when its producer wanted it."""

    @property
    def text(self) -> str:
        """The body as text; UnicodeDecodeError if it is none."""
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Message(PeekedMessage):
    """A message that is ours until its visibility ends."""

    receipt: str = field(repr=False)
    """Good for this delivery only."""
    first_delivered_at: datetime
    visible_at: datetime
    """When others get it, by the server's clock, unless it is settled or extended before."""

    @property
    def is_of_databag(self) -> bool:
        """It is settled by its id. What is hidden is its partition: that is not extended, and not given back early."""
        return self.receipt == self.id


class LanePointers(NamedTuple):
    """Where a lane stands: the next id, and marks that count buckets (`purged`: ids)."""

    lane: int
    next_id: int
    reader: int
    final: int
    settled: int
    repair: int
    floor: int
    dropped: int
    purged: int
    archived: int


class Bucket(NamedTuple):
    bucket: int
    state: str
    """open, closed, final, settled, finished or dropped."""
    messages: int
    settled: int
    visible: int
    in_flight: int
    delayed: int


class Member(NamedTuple):
    """A process of a server."""

    id: str
    """Of this life of it."""
    address: str
    host: str
    process: int
    """Its number among the processes of one server."""
    version: str
    started_at: datetime
    lanes: int
    """How many it does the work of, of bucketed and fifo queues."""
    shards: int
    """And of timelines."""


class Cluster(NamedTuple):
    """The servers of one store."""

    server: str
    """The id of the one that has answered."""
    members: tuple[Member, ...]


class Shard(NamedTuple):
    """A shard of a timeline, and who works on it."""

    shard: int
    state: str
    """open, or sealed: worked on until it is empty."""
    lock: str
    """held, lapsed or free, as far as clocks can tell."""
    consumer: str | None
    fence: int
    """Grows whenever the shard changes hands."""
    taken_at: datetime | None
    touched_at: datetime | None
    mark: datetime | None
    """Up to here it was read."""
    last: datetime | None
    """Up to here all is processed."""
    lag: Seconds | None
    """Since when the oldest message that is due waits; None if none does."""


class Share(NamedTuple):
    """The shards that a consumer holds, by number with the fence of each, and for how long without another touch."""

    shards: Mapping[int, int]
    lock: Seconds
    left: Seconds
