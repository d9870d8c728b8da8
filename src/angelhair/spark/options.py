"""The options of a read, checked before anything is read. Spark hands them over with their names in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from angelhair.errors import InvalidRequest
from angelhair.settings import ACCOUNT
from angelhair.spark.columns import COLUMNS, checked_names
from angelhair.spark.place import PLACE_OPTIONS, Place
from angelhair.spark.planning import COMMITTED, FINAL, ISOLATIONS
from angelhair.spark.points import EARLIEST, LATEST, Point, point

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Off by default in Spark, which refuses readers that take filters unless it is on."""

PAYLOADS = ("binary", "string")

MOST_BUCKETS = 100
"""Of one partition: some 100,000 messages, a second or so of reading, which is what one failed task costs."""

TRIGGER_DELAY_SECONDS = 900
"""As long as other streaming sources wait."""

BATCH_ONLY, STREAM_ONLY = ("end",), (
    "maxMessagesPerTrigger", "maxBytesPerTrigger", "minMessagesPerTrigger", "maxTriggerDelay"
)

READ_OPTIONS = {
    "queue": "The queue. Needed.",
    "account": f"Whose queue it is; by default {ACCOUNT}, as for a server without access keys.",
    **PLACE_OPTIONS,
    "isolation": "committed: all that is there (a batch's default). final: ids and bodies that are settled (a "
    "stream's). finished: what never changes again.",
    "columns": f"Which columns, with commas; by default all: {', '.join(COLUMNS)}.",
    "payload": f"What a body is: {' or '.join(PAYLOADS)}. By default binary.",
    "minPartitions": "Spark partitions at least, if there are buckets enough. By default two.",
    "maxBucketsPerPartition": f"Buckets in one Spark partition at most. By default {MOST_BUCKETS}.",
    "start": "Where a read begins: earliest (the default), latest, archived (the archive mark), ids by lane such as "
    '{"0": 17}, or a time such as 2026-01-31T12:00:00Z, by `enqueued_at`.',
    "end": "Where a batch ends, in the same words, not included; by default latest. A stream has no end.",
    "maxMessagesPerTrigger": "A stream's batch holds so many messages at most.",
    "maxBytesPerTrigger": "A stream's batch holds about so many bytes of bodies, by the size of what comes next.",
    "minMessagesPerTrigger": "A stream waits until so many are there, for maxTriggerDelay at most.",
    "maxTriggerDelay": f"Seconds that a stream waits for minMessagesPerTrigger; by default {TRIGGER_DELAY_SECONDS}.",
    "failOnDataLoss": "Whether what was dropped before it was read is an error (true, the default) or passed over.",
    "pushdown": "Whether filters choose the buckets that are read: by default true after `register(spark)`, else "
    f"false, as the session has to allow it by {PUSHDOWN}.",
}
"""Every option of a read, with what it does."""


BEGINNING, END = Point(mark=EARLIEST), Point(mark=LATEST)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    place: Place
    queue: str
    account: str = ACCOUNT
    isolation: str = COMMITTED
    columns: tuple[str, ...] = tuple(COLUMNS)
    payload: str = "binary"
    min_partitions: int = 2
    most_buckets: int = MOST_BUCKETS
    fail_on_data_loss: bool = True
    pushdown: bool = False
    start: Point = BEGINNING
    end: Point = END
    max_messages: int | None = None
    max_bytes: int | None = None
    min_messages: int | None = None
    max_trigger_delay_seconds: int = TRIGGER_DELAY_SECONDS

    @classmethod
    def of(cls, options: Mapping[str, str], streaming: bool | None = False, pushdown: bool = False) -> ReadOptions:
        """`streaming`: None while it is not known which of the two is wanted. `pushdown`: whether filters are taken
        where the options do not say."""
        known = {name.lower() for name in READ_OPTIONS}
        for name in options:
            if name.lower() not in known:
                raise InvalidRequest(name, f"is no option of a read; there are {', '.join(READ_OPTIONS)}")
        for name in BATCH_ONLY if streaming else STREAM_ONLY:
            if streaming is not None and name.lower() in options:
                raise InvalidRequest(name, f"is for a {'batch' if streaming else 'stream'}, and this is none")
        queue = options.get("queue")
        if not queue:
            raise InvalidRequest("queue", "is missing: which queue?")
        columns = options.get("columns")
        return cls(
            Place.of(options),
            queue,
            options.get("account") or ACCOUNT,
            one_of(options, "isolation", ISOLATIONS, FINAL if streaming else COMMITTED),
            checked_names([name.strip() for name in columns.split(",")], "columns") if columns else tuple(COLUMNS),
            one_of(options, "payload", PAYLOADS, "binary"),
            positive(options, "minPartitions", 2),
            positive(options, "maxBucketsPerPartition", MOST_BUCKETS),
            one_of(options, "failOnDataLoss", ("true", "false"), "true") == "true",
            one_of(options, "pushdown", ("true", "false"), str(pushdown).lower()) == "true",
            point("start", options.get("start") or EARLIEST),
            point("end", options.get("end") or LATEST),
            positive(options, "maxMessagesPerTrigger", None),
            positive(options, "maxBytesPerTrigger", None),
            positive(options, "minMessagesPerTrigger", None),
            positive(options, "maxTriggerDelay", TRIGGER_DELAY_SECONDS),
        )._checked()

    def _checked(self) -> ReadOptions:
        limits = [name for name in ("max_messages", "max_bytes", "min_messages") if getattr(self, name) is not None]
        if len(limits) > 1:
            others = "maxBytesPerTrigger and minMessagesPerTrigger"
            raise InvalidRequest("maxMessagesPerTrigger", f"{others}: Spark takes one of them, not more")
        return self


def one_of(options: Mapping[str, str], name: str, allowed: tuple[str, ...], default: str) -> str:
    value = (options.get(name.lower()) or default).lower()
    if value not in allowed:
        raise InvalidRequest(name, f"{value!r} is none of {', '.join(allowed)}")
    return value


D = TypeVar("D", int, None)


def positive(options: Mapping[str, str], name: str, default: D) -> int | D:
    text = options.get(name.lower())
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidRequest(name, f"must be a whole number above 0, not {text!r}")
    return int(text)
