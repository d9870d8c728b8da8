"""The kinds of queues, and how a queue behaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from angelhair import limits
from angelhair.errors import InvalidRequest
from angelhair.model.checks import validate_duration, validate_name, validate_whole

DAY_MS = 86_400_000

KINDS = BUCKETED, FIFO, TIMELINE, DATABAG = "bucketed", "fifo", "timeline", "databag"
"""The kinds of queues."""

FIFO_ENDING = ".fifo"
"""What the doors have the names of fifo queues end with, and of no others: clients of SQS tell them by it."""

BY_QUEUE, BY_GROUP = "queue", "group"
"""Among which messages of a fifo queue a key is one message: all of them, or those of its group."""

PART_MS = {"minute": 60_000, "hour": 3_600_000, "day": DAY_MS}
"""How long a part of a timeline is, by its granularity."""


_OF_TIMELINES = ("granularity", "producer_delay_ms", "expire_after_ms", "lock_ms")
_OF_DATABAGS = ("min_partitions", "max_partitions")
_NOT_OF_DATABAGS = {
    "lanes": "a databag has one: min_partitions and max_partitions say how it is cut",
    "delay_ms": "a databag has none: what is put there may be served at once",
    "max_deliveries": "a databag does not count deliveries, and has no dead letters",
    "dead_letter_queue": "a databag does not count deliveries, and has no dead letters",
}
"""What the others have, and why a databag does not."""
NOT_OF_KIND = {
    BUCKETED: ("dedup_scope", *_OF_TIMELINES, *_OF_DATABAGS),
    FIFO: ("repair_timeout_ms", "archive", "priorities", "fair", *_OF_TIMELINES, *_OF_DATABAGS),
    TIMELINE: (
        "bucket_size", "repair_timeout_ms", "retention_ms", "history_ms", "archive", "dedup_window_ms", "dedup_scope",
        "priorities", "fair", *_OF_DATABAGS,
    ),
    DATABAG: (
        "bucket_size", "repair_timeout_ms", "archive", "dedup_scope", "priorities", "fair", *_OF_TIMELINES,
        *_NOT_OF_DATABAGS,
    ),
}
"""Settings that have no meaning for a kind of queue: whoever asks for one is told that. They stand there with what they
have if nobody says anything; so what a queue says of itself can be sent back as it is."""


class _Unsaid(int): ...


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How a queue behaves. Times in milliseconds; None means without end or without limit."""

    kind: str = BUCKETED
    bucket_size: int = 1_000
    lanes: int = _Unsaid(1)
    """Of a timeline its shards, six if nobody says; of other kinds one."""
    visibility_timeout_ms: int = 30_000
    repair_timeout_ms: int = 60_000
    delay_ms: int = 0
    retention_ms: int | None = 4 * DAY_MS
    max_deliveries: int | None = None
    dead_letter_queue: str | None = None
    history_ms: int = DAY_MS
    archive: bool = False
    dedup_window_ms: int = 300_000
    dedup_scope: str = BY_QUEUE
    priorities: int = 1
    fair: bool = True
    granularity: str = "minute"
    """Of a timeline: how much time lies in one partition."""
    producer_delay_ms: int = 60_000
    """Of a timeline: how far ahead of now rows are written at least."""
    expire_after_ms: int | None = 30 * DAY_MS
    """Of a timeline: how long after its time a row goes. None: with its part, once that is worked off."""
    lock_ms: int = 10_000
    """Of a timeline: how long the lock of a shard holds without being touched."""

    min_partitions: int = _Unsaid(limits.BAG_PARTITIONS_LEAST)
    max_partitions: int = limits.BAG_PARTITIONS_MOST
    """Of a databag: between which the number of its partitions moves with the load. Who names no least, and a most that
    is below the usual one, means both; the most that nobody names is as many as there can be."""

    FIXED = ("kind", "bucket_size")
    """What cannot change while a queue lives: ids are cut into buckets by it."""
    FIXED_OF_FIFO = ("lanes",)
    """And of a fifo queue: a group must stay in its lane."""
    FIXED_OF_TIMELINE = ("granularity",)
    """And of a timeline: rows are found by their part."""

    def __post_init__(self) -> None:
        if type(self.lanes) is _Unsaid:
            object.__setattr__(self, "lanes", limits.SHARDS if self.kind == TIMELINE else 1)
        if type(self.min_partitions) is _Unsaid:
            object.__setattr__(self, "min_partitions", self._least_partitions())

    def _least_partitions(self) -> int:
        """If nobody says. Whatever the most is: what is wrong with that is found later, and named by its own name."""
        if self.kind != DATABAG or not isinstance(self.max_partitions, int):
            return limits.BAG_PARTITIONS_LEAST
        return max(1, min(limits.BAG_PARTITIONS_LEAST, self.max_partitions))

    def validated(self) -> QueueSettings:
        """As they are, for a new queue."""
        self._validate()
        for name in NOT_OF_KIND[self.kind]:
            if getattr(self, name) != getattr(_ORDINARY, name):
                raise self._absent(name)
        return self

    def _absent(self, name: str) -> InvalidRequest:
        why = _NOT_OF_DATABAGS.get(name) if self.kind == DATABAG else None
        ordinarily = f"a queue of the kind {self.kind!r} has no such setting"
        return InvalidRequest(name.removesuffix("_ms"), why or ordinarily)

    def _validate(self) -> None:
        validate_whole("bucket_size", self.bucket_size, limits.BUCKET_SIZE_MINIMUM, limits.BUCKET_SIZE_MAXIMUM)
        validate_whole("lanes", self.lanes, 1, self.lanes_maximum)
        validate_duration("visibility_timeout", self.visibility_timeout_ms, 0)
        validate_duration("repair_timeout", self.repair_timeout_ms, limits.REPAIR_TIMEOUT_MINIMUM_MS)
        validate_duration("delay", self.delay_ms, 0)
        validate_duration("history", self.history_ms, 0)
        validate_duration("dedup_window", self.dedup_window_ms, 1_000, limits.TTL_MAXIMUM_SECONDS * 1_000)
        if self.retention_ms is not None:
            validate_duration("retention", self.retention_ms, 1_000)
        if self.max_deliveries is not None:
            validate_whole("max_deliveries", self.max_deliveries, 1, 1_000_000)
        if self.dead_letter_queue is not None:
            validate_name("dead_letter_queue", self.dead_letter_queue)
        for name in ("archive", "fair"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidRequest(name, f"must be true or false, not {getattr(self, name)!r}")
        validate_whole("priorities", self.priorities, 1, limits.PRIORITIES_MAXIMUM)
        if self.kind not in KINDS:
            raise InvalidRequest("kind", f"{self.kind!r} is none; there are {', '.join(KINDS)}")
        if self.dedup_scope not in (BY_QUEUE, BY_GROUP):
            raise InvalidRequest("dedup_scope", f"must be 'queue' or 'group', not {self.dedup_scope!r}")
        self._validate_timeline()
        self._validate_partitions()
        if self.kind == FIFO:
            self._validate_fifo()

    def _validate_fifo(self) -> None:
        validate_duration("dedup_window", self.dedup_window_ms, 1_000, limits.FIFO_WINDOW_MAXIMUM_MS)
        if self.lanes > 1 and self.dedup_scope != BY_GROUP:
            # A group lies in one lane whole, a key's messages do not.
            raise InvalidRequest("dedup_scope", "must be 'group' in a fifo queue with more than one lane")

    def _validate_timeline(self) -> None:
        """Whatever the kind: what is kept with a queue is sound, whoever heeds it."""
        if self.granularity not in PART_MS:
            raise InvalidRequest("granularity", f"must be 'minute', 'hour' or 'day', not {self.granularity!r}")
        validate_duration("producer_delay", self.producer_delay_ms, 0, limits.PRODUCER_DELAY_MAXIMUM_MS)
        validate_duration("lock", self.lock_ms, limits.LOCK_MINIMUM_MS, limits.LOCK_MAXIMUM_MS)
        if self.expire_after_ms is not None:
            least_ms, most_ms = limits.EXPIRE_AFTER_MINIMUM_MS, limits.EXPIRE_AFTER_MAXIMUM_MS
            validate_duration("expire_after", self.expire_after_ms, least_ms, most_ms)

    def _validate_partitions(self) -> None:
        """Whatever the kind, as above."""
        validate_whole("min_partitions", self.min_partitions, 1, limits.BAG_SLICES)
        validate_whole("max_partitions", self.max_partitions, 1, limits.BAG_SLICES)
        if self.min_partitions > self.max_partitions:
            raise InvalidRequest(
                "min_partitions",
                f"{self.min_partitions} is more than max_partitions, which is {self.max_partitions}: set both, the "
                "first no higher than the second",
            )

    @property
    def lanes_maximum(self) -> int:
        return limits.SHARDS_MAXIMUM if self.kind == TIMELINE else limits.LANES_MAXIMUM

    @property
    def part_ms(self) -> int:
        return PART_MS[self.granularity]

    @property
    def fixed(self) -> tuple[str, ...]:
        """What of this queue cannot change while it lives."""
        endless = ("expire_after_ms",) if self.expire_after_ms is None else ()  # its rows would never go
        more = {FIFO: self.FIXED_OF_FIFO, TIMELINE: (*self.FIXED_OF_TIMELINE, *endless)}
        return (*self.FIXED, *more.get(self.kind, ()), *NOT_OF_KIND[self.kind])

    def changed(self, changes: Mapping[str, Any]) -> QueueSettings:
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise InvalidRequest(name, "is not a setting of a queue")
            if name in self.fixed and changes[name] != getattr(self, name):
                if name in NOT_OF_KIND[self.kind]:
                    raise self._absent(name)
                raise InvalidRequest(name, "cannot change after the queue was created")
        changed = replace(self, **changes)
        # A queue of an earlier version may have what it has no use for: that is no reason to refuse another change.
        try:
            changed._validate()
        except InvalidRequest as error:
            if error.field != "min_partitions" or "min_partitions" in changes:
                raise
            # Who named the other one is told of that.
            least, most = changed.min_partitions, changed.max_partitions
            reason = f"{most} is less than min_partitions, which is {least}: set both, the second no higher"
            raise InvalidRequest("max_partitions", reason) from None
        if self.kind == TIMELINE and self._lives_longer(changed):
            raise InvalidRequest(
                "expire_after", "cannot grow: rows of before live for less, and would go before anybody renews them"
            )
        return changed

    def _lives_longer(self, changed: QueueSettings) -> bool:
        """What nobody has worked off is renewed when half of the life is over that rows are given now."""
        before_ms, after_ms = self.expire_after_ms, changed.expire_after_ms
        return before_ms is not None and (after_ms is None or after_ms > before_ms)

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> QueueSettings:
        """Settings that a newer server wrote are passed over, so that an older one goes on serving."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})


_ORDINARY = QueueSettings()
