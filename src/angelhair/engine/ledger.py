"""The ledger: which runs of messages were begun, and which are in the queue (R10). A run is many messages that are put
once, however often it is tried; Spark's tasks write by it.

It is what `dedup` does for one message, with one row for all of a run, whatever the kind of queue: before any message
is written the row says `pending`, and what whoever goes on has to know; when all of them are in the queue it says
`committed`. What lies between is its kind's: `runs.py` for a bucketed queue, `fifo/runs.py` for a fifo queue.

    begin     the row; or the row as an earlier try left it
    finish    the messages; then the row is committed

Both halves may be repeated, by several at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.keys import COMMITTED, PENDING
from angelhair.engine.settling import change_one, read_surely
from angelhair.engine.store import Applied, Change, Partition, Refused, RowChange, Span, Store, Values
from angelhair.errors import InvalidRequest, OutcomeUnknown, StoreError, StoreRefused

Accept = Callable[[set[int]], None]
"""Told which messages have a key that another message has, before the run is said to be in the queue. If it raises, the
run stays as it is, and is told so again the next time."""


def accept_all(_: set[int]) -> None:
    """Messages whose keys are known are left out."""


class Run(NamedTuple):
    """What is to be put once. Every try says the same."""

    writer: str
    """Whose run it is, such as one task's share of one batch of one query."""
    block: int
    """Which of the writer's runs."""
    messages: int
    digest: str
    """Of the messages: a try with others is refused, as nobody could say which of them are in the queue."""
    window_ms: int
    """For how long after the first try it can be told what was given out, and so for how long it can be tried again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The ledger's row."""

    status: str
    lane: int
    id: int
    messages: int
    digest: str
    attempt: str
    begun_at: int
    lapses_at: int
    first_at: int | None = None
    """When it was first begun. Delays count from then, whatever date the messages have got since."""
    rest: str | None = None
    """Which of the messages are at `id` and behind it, when it is not all of them."""
    before: str | None = None
    """Lane, id and rest as they were: what has gone on from there is voided before it is written here. Of a fifo queue:
    where the log of each lane ended when the run was begun."""

    @property
    def values(self) -> Values:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def offsets(self) -> Sequence[int]:
        return range(self.messages) if self.rest is None else offsets_of(self.rest)

    @property
    def place(self) -> str:
        return f"{self.lane}/{self.id}/{self.rest or ''}"

    @property
    def gone_on_from(self) -> tuple[int, dict[int, int]] | None:
        """The lane, and by id which of the messages had it."""
        if self.before is None:
            return None
        lane, first, rest = self.before.split("/")
        offsets = offsets_of(rest) if rest else range(self.messages)
        left = set(self.offsets)
        return int(lane), {int(first) + index: offset for index, offset in enumerate(offsets) if offset in left}

    @property
    def ends(self) -> list[int]:
        """Of a fifo queue, lane by lane."""
        return [int(end) for end in (self.before or "").split("+")]


async def read(store: Store, incarnation: str, run: Run) -> Entry | None:
    """The run's row. The queue may have been deleted and made again since it was remembered, and its ledger is not the
    new one's (R6): that is for the caller to see."""
    (found,) = await read_surely(store, [Span(_partition(incarnation, run), run.block, run.block)])
    return _entry(found.rows[0].values) if found.rows else None


async def enter(store: Store, incarnation: str, run: Run, entry: Entry) -> Entry:
    """The row of a run that has none: ours, or that of who was faster."""
    return await _set(store, incarnation, run, {"status": None}, entry)


async def rewrite(store: Store, incarnation: str, run: Run, before: Entry, entry: Entry) -> Entry:
    """The row as it stands afterwards: ours, or that of who was faster."""
    return await _set(store, incarnation, run, {"status": PENDING, "attempt": before.attempt}, entry)


async def commit(store: Store, incarnation: str, run: Run, entry: Entry) -> Entry:
    return await rewrite(store, incarnation, run, entry, replace(entry, status=COMMITTED))


def resumed(run: Run, entry: Entry) -> Entry | None:
    """The row, to go on with what another try has begun; None when there is nothing left to do."""
    if entry.messages != run.messages:
        raise InvalidRequest(
            "messages", f"of block {run.block} were {entry.messages} when {run.writer} first tried, and are "
            f"{run.messages} now: what is written again has to be cut into the same blocks"
        )
    if entry.digest != run.digest:
        raise InvalidRequest(
            "messages", f"of block {run.block} are others than when {run.writer} first tried: what is written again "
            "has to be the same, in the same order"
        )
    if entry.status == COMMITTED:
        return None
    return entry


def in_time(run: Run, entry: Entry, now_ms: int) -> None:
    """After its time nobody can tell what was put and given out; and long after it the row may be a late copy of the
    first."""
    if entry.lapses_at <= now_ms:
        raise lapsed(run, entry)


def lapsed(run: Run, entry: Entry) -> StoreRefused:
    return StoreRefused(
        f"block {run.block} of {run.writer} was begun too long ago: which of its {run.messages} messages, from "
        f"{entry.lane}-{entry.id} on, are in the queue cannot be told any more"
    )


async def _set(store: Store, incarnation: str, run: Run, expect: Values, entry: Entry) -> Entry:
    change = Change(
        _partition(incarnation, run), [RowChange(run.block, expect, entry.values)],
        ttl_seconds=max(limits.LEDGER_SECONDS, -(-run.window_ms // 1000)),
    )
    outcome = await change_one(store, change)
    if isinstance(outcome, StoreError):
        raise outcome
    if isinstance(outcome, Applied):
        return entry
    assert isinstance(outcome, Refused)
    row = outcome.rows.get(run.block)
    if row is None or row.get("status") is None:
        raise OutcomeUnknown("the ledger's row has lapsed meanwhile")
    return _entry(row)


def _entry(row: Values) -> Entry:
    return Entry(**{name: row.get(name) for name in Entry.__slots__})  # type: ignore[arg-type]


def _partition(incarnation: str, run: Run) -> Partition:
    return places.ledger(incarnation, name_of(run))


def name_of(run: Run) -> str:
    """Of its writer, however long that is."""
    return hashlib.blake2b(run.writer.encode(), digest_size=16).hexdigest()


def ranges(offsets: Sequence[int]) -> str:
    """0-4,7 for 0, 1, 2, 3, 4 and 7."""
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def offsets_of(ranges: str) -> list[int]:
    offsets: list[int] = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        offsets.extend(range(int(first), int(last or first) + 1))
    return offsets
