"""Put: one conditional write appends all that waits for a lane (R12), each key once (R10).

What was put before under a key of the window is answered with the id of that time. That is also how a put of unknown
outcome is settled: it is repeated, and if it is refused the rows behind the known end are read. Our own are among them,
under our keys, or they will never be: the log has gone on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from angelhair import limits
from angelhair.engine.fifo.keys import Keys
from angelhair.engine.fifo.lane import Lane, Tail
from angelhair.engine.fifo.log import learn
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, ChangeOutcome, Refused, RowChange, Span, Value
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError, Unavailable
from angelhair.model import MessageId, NewMessage

PutOutcome = MessageId | AngelhairError
ByLane = dict[int, tuple[Lane, list[tuple[int, NewMessage]]]]
"""By its number each lane, and what is put there, in order, under numbers that the caller gives."""


class Deadline(NamedTuple):
    """For who may have put the same before: when the window may forget it. What is not there by then is not sent."""

    at_ms: int
    error: AngelhairError
    """What is said of it."""


def lane_of(group: str, lanes: int) -> int:
    """Which lane a group lies in, the same on every server."""
    return int.from_bytes(blake2b(group.encode(), digest_size=8).digest()) % lanes


def in_lanes(lane: Callable[[int], Lane], lanes: int, messages: Iterable[tuple[int, NewMessage]]) -> ByLane:
    found: ByLane = {}
    for index, message in messages:
        number = lane_of(message.group or "", lanes)
        if number not in found:
            found[number] = (lane(number), [])
        found[number][1].append((index, message))
    return found


async def put(
    messages: ByLane, deadline: Deadline | None = None, found: set[int] | None = None
) -> dict[int, PutOutcome]:
    """For each message, by the number that the caller gave it, its id or the error that it met. `found` is told which
    were there already, put by whomever.

    Raises only what concerns all of them, before anything was put: `QueueGone` when the memory of the queue is old.
    """
    puttings = [_Putting(lane, there, deadline) for lane, there in messages.values()]
    for _ in range(limits.RESERVE_ROUNDS + sum(len(putting.pending) for putting in puttings)):
        changing = [(putting, change) for putting in puttings if (change := await putting.prepare()) is not None]
        if not changing:
            break
        unsure: set[int] = set()
        store = changing[0][0].lane.store
        outcomes = await change_settled(store, [change for _, change in changing], unsure)
        for index, ((putting, _), outcome) in enumerate(zip(changing, outcomes, strict=True)):
            putting.take(outcome, index in unsure)
    answers: dict[int, PutOutcome] = {}
    gone = True
    for putting in puttings:
        putting.give_up(Unavailable("too many servers put to this lane at once"))
        answers.update(putting.answers)
        gone = gone and putting.gone and not putting.begun
        if found is not None:
            found |= putting.found
    if gone:
        raise QueueGone("the queue was deleted before anything was put")
    return answers


class _Putting:
    """The puts of one lane, and how far they have come."""

    def __init__(self, lane: Lane, messages: Sequence[tuple[int, NewMessage]], deadline: Deadline | None) -> None:
        self.lane = lane
        self.pending = list(messages)
        self.answers: dict[int, PutOutcome] = {}
        self.found: set[int] = set()
        self.gone = False
        self.begun = False
        """Something was put, or perhaps was."""
        self._batch: list[tuple[int, NewMessage]] = []
        self._doubtful: dict[int, int] = {}
        """Messages that were sent for this number or a later one, and perhaps landed there."""
        self._first = 0
        self._enqueued_at = 0
        self._checked = False
        self._deadline = deadline

    async def prepare(self) -> Change | None:
        """The next conditional write; None when nothing is left to do."""
        if not self.pending:
            return None
        try:
            tail, keys = await learn(self.lane)
            now_ms = await self.lane.time_ms()
            self._choose(tail, keys, now_ms)
            if not self.pending and not self._checked:
                await self._check(tail)
        except QueueGone:
            self._stop(Unavailable("the queue was deleted while it was being put to"))
            self.gone = True
            return None
        except StoreError as error:
            # What is still pending was not sent, or was refused.
            self.give_up(Unavailable(str(error)))
            return None
        return self._change(tail, keys) if self._batch else None

    def _choose(self, tail: Tail, keys: Keys, now_ms: int) -> None:
        room = self.lane.first_of(tail.bucket + 1) - keys.end
        self._batch, names, size = [], set[str](), 0
        left: list[tuple[int, NewMessage]] = []
        for index, message in self.pending:
            number = keys.find(message.group, message.key, now_ms)
            if index in self._doubtful:
                # Ours, however long we slept since it was sent: the window is for who puts again.
                since = keys.put_since(self._doubtful[index], message.group, message.key)
                number = since if number is None else number
                if number is None and keys.first > self._doubtful[index]:
                    self.answers[index] = OutcomeUnknown("it was sent too long ago to tell whether it was put")
                    continue
                # If it is not there it never will be: the log has gone on.
                del self._doubtful[index]
            if number is not None:
                self.answers[index] = MessageId(self.lane.number, number)
                self.found.add(index)
                continue
            if self._deadline is not None and now_ms >= self._deadline.at_ms:
                self.answers[index] = self._deadline.error
                continue
            left.append((index, message))
            name = keys.name(message.group, message.key)
            size += len(message.body)
            full = len(self._batch) >= min(room, limits.CHANGE_ROWS) or (self._batch and size > limits.LOG_BYTES)
            if not full and name not in names:
                # Another one with this key waits for the next round: then it is known.
                names.add(name)
                self._batch.append((index, message))
            elif full:
                room = 0
        self.pending = left
        keys.forget(now_ms)
        # Never before the last one: what is older than the window must lie before what is not.
        self._enqueued_at = max(now_ms, keys.newest_at)

    async def _check(self, tail: Tail) -> None:
        """Everything was there before: that the queue is still the one that is remembered, no write has shown."""
        (found,) = await self.lane.store.read([Span(self.lane.log(tail.bucket), -1, -1)])
        if found.flags.get("opened") != tail.token or found.flags.get("deleted"):
            self.answers.clear()
            raise QueueGone(self.lane.queue)

    def _change(self, tail: Tail, keys: Keys) -> Change:
        self._first = keys.end
        rows = [
            RowChange(keys.end + offset, {}, row_of(message, self._enqueued_at))
            for offset, (_, message) in enumerate(self._batch)
        ]
        return append(self.lane, tail, keys.end, rows, self.lane.identities.fresh())

    def take(self, outcome: ChangeOutcome, unsure: bool) -> None:
        view = self.lane.view
        if isinstance(outcome, Applied):
            self.begun = self._checked = True
            keys = view.keys
            if keys is None or keys.end != self._first:
                # Somebody else of this server has learned of these rows already.
                view.behind = True
            for offset, (index, message) in enumerate(self._batch):
                if keys is not None and keys.end == self._first + offset:
                    keys.add(keys.end, message.group, message.key, self._enqueued_at)
                self.answers[index] = MessageId(self.lane.number, self._first + offset)
            done = {index for index, _ in self._batch}
            self.pending = [item for item in self.pending if item[0] not in done]
        elif isinstance(outcome, Refused):
            view.behind = True
            self.begun = self.begun or unsure
            for index, _ in self._batch if unsure else ():
                self._doubtful.setdefault(index, self._first)
            if outcome.flags.get("deleted"):
                self._stop(OutcomeUnknown("the queue was deleted while it was being put to"), unsure)
                self.gone = True
            elif outcome.flags.get("opened") is None:
                view.forget_log()
        else:
            self.begun = self.begun or isinstance(outcome, OutcomeUnknown)
            view.forget_log()
            self.answers.update((index, outcome) for index, _ in self._batch)
            sent = {index for index, _ in self._batch}
            self.pending = [item for item in self.pending if item[0] not in sent]
            self.give_up(Unavailable(str(outcome)))

    def _stop(self, error: AngelhairError, unsure: bool = False) -> None:
        """The queue is gone: of what was sent nobody may know, of the rest it is sure that it was not put."""
        if unsure:
            sent = {index for index, _ in self._batch}
            self.answers.update(dict.fromkeys(sent, error))
            self.pending = [item for item in self.pending if item[0] not in sent]
        self.give_up(Unavailable("the queue was deleted while it was being put to"))

    def give_up(self, error: AngelhairError) -> None:
        unknown = OutcomeUnknown(str(error))
        self.answers.update((index, unknown if index in self._doubtful else error) for index, _ in self.pending)
        self.pending = []


def append(lane: Lane, tail: Tail, first: int, rows: Sequence[RowChange], attempt: str) -> Change:
    """The change that makes these rows the log's next ones."""
    return Change(
        lane.log(tail.bucket),
        rows,
        expect_flags={"opened": tail.token, "next": first, "deleted": None},
        set_flags={"next": first + len(rows), "attempt": attempt},
    )


def row_of(message: NewMessage, enqueued_at: int) -> dict[str, Value]:
    """Only what is there: on Cassandra every None written would be a tombstone that readers have to step over."""
    values: dict[str, Value] = {
        "body": message.body,
        "message_group": message.group,
        "dedup_id": message.key,
        "enqueued_at": enqueued_at,
    }
    if message.attributes is not None:
        values["attributes"] = message.attributes
    if message.origin is not None:
        values["origin"] = message.origin
    return values
