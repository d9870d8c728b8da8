"""Transfer: one message from one queue to another, once, whoever dies on the way (R7).

    1. reserve an id in the target
    2. mark the source row `moving` to that id, conditionally; this kills its receipts
    3. write the message at that id, as any put is written
    4. mark the source row settled

Whoever finds a row that has been moving for a while goes on at step 3 with the same id, so the message is written
once however many do. If the target's bucket is finished already, the row is first marked moving to a new id. If the
target is gone, the message becomes visible again where it was.

A timeline has no ids to reserve: there a message is put as any other, and whoever goes on with the move puts it again.
If it was there already it comes twice, never less than once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed import put, wake
from angelhair.engine.bucketed.examine import MOVING, is_over
from angelhair.engine.bucketed.first import split_origin
from angelhair.engine.bucketed.given import given, void
from angelhair.engine.bucketed.lane import Candidate, Lane, read_marks
from angelhair.engine.bucketed.stretches import stretches
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.schema import is_whole
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, Key, Refused, RowChange, Span, Value, Values
from angelhair.errors import InvalidRequest, StoreError
from angelhair.model import MessageId, NewMessage

DEAD, MOVED = "dead", "moved"


class Target(NamedTuple):
    """Where a message is going, as its source row says it."""

    label: str
    account: str
    queue: str
    incarnation: str
    lane: int
    number: int

    def to_text(self) -> str:
        return "/".join(str(part) for part in self)

    @classmethod
    def from_text(cls, text: str) -> Target:
        label, account, queue, incarnation, lane, number = text.split("/")
        return cls(label, account, queue, incarnation, int(lane), int(number))


class Apart(NamedTuple):
    """A queue in which a message has no place before it is put there."""

    account: str
    queue: str
    incarnation: str
    send: Callable[[NewMessage], Awaitable[put.PutOutcome]]
    """Raises `QueueGone`."""


FindLane = Callable[[Target, bool], Awaitable[Lane | Apart | None]]
"""The lane of a target that still exists in that incarnation, or one of its queue that takes puts now; or None."""


async def begin(
    source: Lane, bucket: int, candidates: Sequence[Candidate], target: Lane, label: str, attempt: str
) -> list[int]:
    """Steps 1 and 2; returns the ids that are moving now. Ids reserved for the others stay void."""
    begin_ms = await _begun_ms(source, bucket)
    first = await put.reserve(target, len(candidates), attempt)
    pending = [
        (
            candidate,
            Target(label, target.account, target.queue, target.incarnation, target.number, first + index).to_text(),
        )
        for index, candidate in enumerate(candidates)
    ]
    return await _mark_all(source, bucket, pending, begin_ms)


async def begin_apart(
    source: Lane, bucket: int, candidates: Sequence[Candidate], target: Apart, label: str, attempt: str
) -> list[int]:
    """Step 2 alone, for a target without ids; the number is nothing but unlike that of any other move."""
    begin_ms = await _begun_ms(source, bucket)
    pending = []
    for candidate in candidates:
        mark = blake2b(f"{attempt}.{candidate.number}".encode(), digest_size=7)
        to = Target(label, target.account, target.queue, target.incarnation, 0, int.from_bytes(mark.digest()))
        pending.append((candidate, to.to_text()))
    return await _mark_all(source, bucket, pending, begin_ms)


async def _begun_ms(source: Lane, bucket: int) -> int:
    """When a move begins. Somebody must look if we die half-way; and a message that arrives with a wrong date would
    expire (R5)."""
    await wake.arm(source, [(limits.MOVE_PATIENCE_MS, bucket)])
    return await wake.index_time_ms(source)


async def _mark_all(
    source: Lane, bucket: int, pending: list[tuple[Candidate, str]], begin_ms: int
) -> list[int]:
    moving: list[int] = []
    while pending:
        flags: dict[str, Value] = {"finished": None}
        opened = next((candidate.opened for candidate, _ in pending if candidate.opened is not None), None)
        if opened is not None:
            flags.update(opened=opened, final=None)
        rows = [_mark(candidate, to, begin_ms) for candidate, to in pending]
        outcome = await change_one(source.store, Change(source.states(bucket), rows, expect_flags=flags))
        if isinstance(outcome, StoreError):
            if moving:
                # These are under way; the others are found again.
                return moving
            raise outcome
        if isinstance(outcome, Applied):
            return moving + [candidate.number for candidate, _ in pending]
        found = outcome.rows
        moving += [item.number for item, to in pending if found.get(item.number, {}).get("moving_to") == to]
        if any(outcome.flags.get(name) != value for name, value in flags.items()):
            return moving
        free = [(item, to) for item, to in pending if _free(item, found.get(item.number, {}))]
        if len(free) == len(pending):
            return moving
        pending = free
    return moving


def _mark(candidate: Candidate, to: str, begin_ms: int) -> RowChange:
    expect: Values
    if candidate.delivery is None:
        expect = {"delivery": None}
    else:
        expect = {"revision": candidate.revision, "settled": None}
    values: dict[str, Value] = {
        "delivery": candidate.delivery or 0,
        "revision": (candidate.revision or 0) + 1,
        "settled": MOVING,
        "moving_to": to,
        "moving_at": begin_ms,
    }
    return RowChange(candidate.number, expect, values)


def _free(candidate: Candidate, row: Values) -> bool:
    if candidate.delivery is None:
        return row.get("delivery") is None
    return row.get("revision") == candidate.revision and row.get("settled") is None


async def resume(source: Lane, bucket: int, numbers: Sequence[int], find: FindLane, attempt: str, now: Moment) -> int:
    """Steps 3 and 4 for rows that are moving; returns how many arrived."""
    near = stretches(source, numbers)
    # The bodies first: one that is still moving then had not been erased when it was read.
    bodies = await source.store.read([Span(source.bodies(bucket), first, last) for first, last in near])
    moving = await _moving(source, bucket, near)
    born = {row.key: row.values for part in bodies for row in part.rows if is_whole(row.values)}
    arrived = 0
    unborn: dict[int, Values] = {}
    for number in numbers:
        state = moving.get(number)
        if state is None:
            continue
        if number in born:
            arrived += await _resume_one(source, bucket, number, state, born[number], find, attempt, now)
        else:
            unborn[number] = state
    if unborn:
        await _let_go(source, bucket, unborn, now)
    return arrived


def _is_torn(state: Values) -> bool:
    """Whether it was marked by a conditional write that has landed in part so far (row 19 of docs/cassandra.md)."""
    return state.get("settled") == MOVING and state.get("moving_to") is None


async def _moving(source: Lane, bucket: int, near: Sequence[tuple[int, int]]) -> dict[Key, Values]:
    """By number, the states of what is moving."""
    spans = [Span(source.states(bucket), first, last) for first, last in near]
    found = await source.store.read(spans)
    if torn := [row.key for part in found for row in part.rows if _is_torn(row.values)]:
        # Read again after a conditional write of the same partition, which has others land first.
        tests = [RowChange(key, {"settled": MOVING, "moving_to": None}, {}) for key in torn]
        await change_one(source.store, Change(source.states(bucket), tests))
        found = await source.store.read(spans)
    return {
        row.key: row.values for part in found for row in part.rows
        if row.values.get("settled") == MOVING and not _is_torn(row.values)
    }


async def _let_go(source: Lane, bucket: int, unborn: dict[int, Values], now: Moment) -> None:
    """What is not there, or in part, was put by somebody who has not been told so yet, and may be: it stays, until the
    queue's retention or a purge takes it like any other."""
    marks = await read_marks(source)
    for number, state in unborn.items():
        date = {"enqueued_at": state.get("moving_at")}
        if is_over(source, marks, number, date, now, source.trusts_clock(now)):
            to, revision = state.get("moving_to"), state.get("revision")
            assert isinstance(to, str) and isinstance(revision, int)
            await _give_back(source, bucket, number, to, revision, now)


async def _resume_one(
    source: Lane, bucket: int, number: int, state: Values, body: Values, find: FindLane, attempt: str, now: Moment
) -> bool:
    to, before = state.get("moving_to"), state.get("moving_before")
    moving_at = state.get("moving_at")
    revision = state.get("revision")
    assert isinstance(to, str) and isinstance(moving_at, int) and isinstance(revision, int)
    while True:
        target = Target.from_text(to)
        lane = await find(target, False)
        if isinstance(lane, Apart):
            message = _message(source, number, state, body, target)
            return await _put_apart(source, bucket, number, message, to, revision, lane, now)
        if lane is None or not await _alive(lane):
            await _give_back(source, bucket, number, to, revision, now)
            return False
        if isinstance(before, str) and await _given_before(MessageId.parse(before), target, find, now):
            return await _settle(source, bucket, number, to, target, now)
        placed = put.Placed(target.number, _message(source, number, state, body, target), moving_at)
        now_ms = await wake.index_time_ms(lane)
        old = await put.unwritten_and_old(lane, [target.number], moving_at, now_ms)
        if not old and not put.is_late(lane, placed, now_ms):
            written = await put.write(lane, [placed], now)
            if isinstance(written.outcomes.get(target.number), MessageId):
                return await _settle(source, bucket, number, to, target, now)
            if not written.again:
                return False
        # Its place in the target takes it no more, or with a date that is over: unless it was given out there.
        if await given(lane, [target.number]):
            return await _settle(source, bucket, number, to, target, now)
        try:
            fresh = await _reserved(lane, target, find, f"{attempt}.{number}")
        except LaneSealed:
            # The target lives, and somebody may be given what lies there: it goes on when its lanes stand still.
            return False
        if fresh is None:
            await _give_back(source, bucket, number, to, revision, now)
            return False
        new, before = fresh.to_text(), str(MessageId(target.lane, target.number))
        values: Values = {"moving_to": new, "moving_at": now_ms, "moving_before": before}
        row = RowChange(number, {"settled": MOVING, "moving_to": to}, values)
        outcome = await change_one(source.store, Change(source.states(bucket), [row]))
        if isinstance(outcome, Refused) and outcome.rows.get(number, {}).get("moving_to") != new:
            return False
        if isinstance(outcome, StoreError):
            return False
        to, moving_at = new, now_ms


async def _put_apart(
    source: Lane, bucket: int, number: int, message: NewMessage, to: str, revision: int, target: Apart, now: Moment
) -> bool:
    try:
        outcome = await target.send(message)
    except QueueGone:
        outcome = InvalidRequest("destination", "is gone")
    if isinstance(outcome, MessageId):
        return await _settle(source, bucket, number, to, Target.from_text(to), now)
    if isinstance(outcome, InvalidRequest):
        # It would be refused for ever.
        await _give_back(source, bucket, number, to, revision, now)
    return False


async def _given_before(before: MessageId, target: Target, find: FindLane, now: Moment) -> bool:
    """Whether it was given out in the target before it went on to another id there. If not, it never will be."""
    lane = await find(target._replace(lane=before.lane, number=before.number), False)
    return isinstance(lane, Lane) and bool(await void(lane, [before.number], now))


async def _reserved(lane: Lane, target: Target, find: FindLane, attempt: str) -> Target | None:
    """Another id in the target: in the same lane, or if that takes no more in one that does. None when the target is
    gone. Raises `LaneSealed`."""
    try:
        return target._replace(number=await put.reserve(lane, 1, attempt))
    except LaneSealed:
        opened = await find(target, True)
    except QueueGone:
        return None
    try:
        if isinstance(opened, Lane):
            return target._replace(lane=opened.number, number=await put.reserve(opened, 1, attempt))
    except QueueGone:
        pass
    return None


async def _settle(source: Lane, bucket: int, number: int, to: str, target: Target, now: Moment) -> bool:
    """Step 4."""
    values: Values = {"settled": target.label, "settled_at": now.wall_ms}
    row = RowChange(number, {"settled": MOVING, "moving_to": to}, values)
    return isinstance(await change_one(source.store, Change(source.states(bucket), [row])), Applied | Refused)


async def _alive(lane: Lane) -> bool:
    try:
        await read_marks(lane)
    except QueueGone:
        return False
    return True


async def _give_back(source: Lane, bucket: int, number: int, to: str, revision: int, now: Moment) -> None:
    """The target is gone, or the message is over: it is again where it was."""
    values: Values = {
        "settled": None,
        "moving_to": None,
        "moving_at": None,
        "moving_before": None,
        "revision": revision + 1,
        "visible_at": now.wall_ms,
        "duration": 0,
    }
    row = RowChange(number, {"settled": MOVING, "moving_to": to}, values)
    await change_one(source.store, Change(source.states(bucket), [row]))
    source.view.schedule(bucket, now.monotonic_ms)


def _message(source: Lane, number: int, state: Values, body: Values, target: Target) -> NewMessage:
    """The same bytes whoever writes them: nothing here depends on who resumes, or when."""
    changed = state.get("body")
    content = changed if isinstance(changed, bytes) else body.get("body")
    attributes, text = body.get("attributes"), body.get("origin")
    assert isinstance(content, bytes)
    origin, first = split_origin(text if isinstance(text, str) else None)
    if target.label == MOVED:
        origin = None
    elif origin is None:
        origin = f"{source.account}/{source.queue}/{MessageId(source.number, number) if first is None else first.id}"
    return NewMessage(
        content,
        attributes if isinstance(attributes, str) else None,
        0,
        None,
        origin,
    )
