"""The options of a read, checked before anything is read. Spark hands them over with their names in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from angelhair.errors import InvalidRequest
from angelhair.settings import ACCOUNT
from angelhair.spark.columns import BINARY, COLUMNS, KEPT_IN, PAYLOADS, VARIANT, checked_names
from angelhair.spark.place import PLACE_OPTIONS, Place
from angelhair.spark.planning import COMMITTED, FINAL, ISOLATIONS
from angelhair.spark.points import EARLIEST, LATEST, Point, Times, point

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Off by default in Spark, which refuses readers that take filters unless it is on."""

MOST_BUCKETS = 100
"""Of one partition: some 100,000 messages, a second or so of reading, which is what one failed task costs."""

TRIGGER_DELAY_SECONDS = 900
"""As long as other streaming sources wait."""

BATCH_ONLY, STREAM_ONLY = ("end", "lake"), (
    "maxMessagesPerTrigger", "maxBytesPerTrigger", "minMessagesPerTrigger", "maxTriggerDelay", "progressName"
)

READ_OPTIONS = {
    "queue": "The queue. Needed.",
    "account": f"Whose queue it is; by default {ACCOUNT}, as for a server without access keys.",
    **PLACE_OPTIONS,
    "isolation": "committed: all that is there (a batch's default). final: ids and bodies that are settled (a "
    "stream's). finished: what never changes again.",
    "lake": "Where the queue's lake is, as `angelhair pipeline archive --lake` has it: what is in the lake is read "
    "from there, the rest from the queue, each message once. For a batch.",
    "columns": f"Which columns, with commas; by default {', '.join(COLUMNS)}, and with `lake` {KEPT_IN.name}.",
    "includeAttributes": "Whether `attributes` is among the columns where `columns` does not say. By default true.",
    "payload": f"What a body is: {', '.join(PAYLOADS)}. By default {BINARY}. As {VARIANT}, what is no JSON is null.",
    "minPartitions": "Spark partitions at least, if there are buckets enough. By default two.",
    "maxBucketsPerPartition": f"Buckets in one Spark partition at most. By default {MOST_BUCKETS}.",
    "start": "Where a read begins: earliest (the default), latest, archived (the archive mark), ids by lane such as "
    '{"0": 17}, or a time such as 2026-01-31T12:00:00Z, by `enqueued_at`.',
    "end": "Where a batch ends, in the same words, not included; by default latest. A stream has no end.",
    "maxMessagesPerTrigger": "A stream's batch holds so many messages at most.",
    "maxBytesPerTrigger": "A stream's batch holds about so many bytes of bodies, by the size of what comes next.",
    "minMessagesPerTrigger": "A stream waits until so many are there, for maxTriggerDelay at most.",
    "maxTriggerDelay": f"Seconds that a stream waits for minMessagesPerTrigger; by default {TRIGGER_DELAY_SECONDS}.",
    "progressName": "What a stream is called beside its lag in a query's progress. By default the queue's name.",
    "failOnDataLoss": "Whether it is an error (true, the default) that ids which were asked for are not there any "
    "more, or never were; else they are passed over.",
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
    payload: str = BINARY
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
    lake: str | None = None
    """The folder above the queue's table."""
    progress_name: str | None = None

    @property
    def times(self) -> Times:
        """When what is asked for was put, as far as that is said by times."""
        return Times(self.start.time_ms, self.end.time_ms)

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
        return cls(
            Place.of(options),
            queue,
            options.get("account") or ACCOUNT,
            one_of(options, "isolation", ISOLATIONS, FINAL if streaming else COMMITTED),
            _columns(options),
            one_of(options, "payload", PAYLOADS, BINARY),
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
            _lake(options),
            options.get("progressname") or queue,
        )._checked()

    def _checked(self) -> ReadOptions:
        limits = [name for name in ("max_messages", "max_bytes", "min_messages") if getattr(self, name) is not None]
        if len(limits) > 1:
            others = "maxBytesPerTrigger and minMessagesPerTrigger"
            raise InvalidRequest("maxMessagesPerTrigger", f"{others}: Spark takes one of them, not more")
        return self


def refuse_marks(options: ReadOptions, kind: str, time: str) -> None:
    """For a kind that has no buckets. `time`: the column that one filters by, in place of a beginning and an end."""
    if options.lake is not None:
        raise InvalidRequest("lake", f"a {kind} has none")
    if options.isolation != COMMITTED:
        raise InvalidRequest("isolation", f"a {kind} has neither final nor finished buckets; it is read as it is")
    for name, given, default in (("start", options.start, BEGINNING), ("end", options.end, END)):
        if given != default:
            raise InvalidRequest(name, f"a {kind} is read from end to end: filter by `{time}`")


def _columns(options: Mapping[str, str]) -> tuple[str, ...]:
    named = options.get("columns")
    if named:
        return checked_names([name.strip() for name in named.split(",")], "columns")
    left_out = () if one_of(options, "includeAttributes", ("true", "false"), "true") == "true" else ("attributes",)
    more = (KEPT_IN.name,) if options.get("lake") else ()
    return tuple(name for name in (*COLUMNS, *more) if name not in left_out)


def _lake(options: Mapping[str, str]) -> str | None:
    """Tasks have another working directory than who names a folder."""
    lake = options.get("lake")
    return lake if not lake or "://" in lake else str(Path(lake).absolute())


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
