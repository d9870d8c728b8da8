"""The options of a write, checked before anything is written. Spark hands them over with their names in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from angelhair.errors import InvalidRequest
from angelhair.settings import ACCOUNT
from angelhair.spark.options import one_of, positive
from angelhair.spark.place import PLACE_OPTIONS, Place

IGNORE, FAIL = "ignore", "fail"

BLOCK_MESSAGES = 40_000
"""Messages whose ids are reserved at a time: some buckets, and one row of the ledger. Around the messages themselves a
block takes three small writes, each a wait for others on an embedded file: of 10,000 they took a fifth of the time."""

BLOCK_BYTES = 16 * 1024 * 1024
"""Of bodies in one block, at most, unless one body is larger: what a task holds in memory."""

RETRY_WINDOW_SECONDS = 86_400
"""As long as a queue keeps its finished buckets by default: so nothing is kept longer for it."""

WRITE_OPTIONS = {
    "queue": "The queue. Needed; it must be there.",
    "account": f"Whose queue it is; by default {ACCOUNT}, as for a server without access keys.",
    **PLACE_OPTIONS,
    "writeId": "The name of a batch. What was written under it is not written again, so a job that failed can be run "
    "again with the same rows. By default every write has a name of its own. A stream needs none.",
    "onConflict": f"What a `key` that the queue knows already means: {IGNORE} (the default; the row is left out) or "
    f"{FAIL}.",
    "retryWindow": "Seconds after which a write that ended half way can no longer be gone on with; finished buckets "
    f"with its messages are kept as long. By default {RETRY_WINDOW_SECONDS}. In a fifo queue never more than its "
    "`dedup_window`.",
    "blockMessages": f"Messages that are put at a time, at most; by default {BLOCK_MESSAGES}.",
    "maxMessagesPerSecond": "Of each task, at most. By default as fast as it goes.",
}
"""Every option of a write, with what it does."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    place: Place
    queue: str
    account: str = ACCOUNT
    write_id: str | None = None
    fails_on_conflict: bool = False
    retry_window_seconds: int = RETRY_WINDOW_SECONDS
    block_messages: int = BLOCK_MESSAGES
    most_a_second: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], streaming: bool = False) -> WriteOptions:
        known = {name.lower() for name in WRITE_OPTIONS}
        for name in options:
            # Spark's own; every stream has them.
            if name.lower() not in known and name.lower() not in ("path", "checkpointlocation"):
                raise InvalidRequest(name, f"is no option of a write; there are {', '.join(WRITE_OPTIONS)}")
        if not options.get("queue"):
            raise InvalidRequest("queue", "is missing: which queue?")
        if streaming and options.get("writeid"):
            raise InvalidRequest("writeId", "is for a batch: a stream's batches have names already")
        rate = positive(options, "maxMessagesPerSecond", None)
        most = positive(options, "blockMessages", BLOCK_MESSAGES)
        return cls(
            Place.of(options),
            options["queue"],
            options.get("account") or ACCOUNT,
            options.get("writeid") or None,
            one_of(options, "onConflict", (IGNORE, FAIL), IGNORE) == FAIL,
            positive(options, "retryWindow", RETRY_WINDOW_SECONDS),
            # What is put at a time is never more than a second's worth: else a slow rate would come in bursts.
            most if rate is None else min(most, rate),
            rate,
        )
