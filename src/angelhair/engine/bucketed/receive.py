"""Receive: what has become visible again first, then what is new (A2, A9).

One group serves all receives that wait for the lane: one read of the lane's marks, at most a few reads to find
candidates, one conditional write per bucket to claim them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import receipts
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.claim import Claims, Wish, claim
from angelhair.engine.bucketed.examine import examine
from angelhair.engine.bucketed.first import split_origin
from angelhair.engine.bucketed.lane import Candidate, Lane, read_marks
from angelhair.engine.bucketed.opening import open_buckets, still_there
from angelhair.engine.bucketed.reader import close_passed, read_new
from angelhair.engine.bucketed.stretches import stretches
from angelhair.engine.bucketed.whole import whole_ones
from angelhair.engine.identities import Identities
from angelhair.engine.making import maker
from angelhair.engine.marks import Marks
from angelhair.engine.store import Row, Span, Value
from angelhair.engine.waiting import Waiting
from angelhair.errors import StoreError
from angelhair.model import Delivery, MessageId

_delivered, _id, _wish = maker(Delivery), maker(MessageId), maker(Wish)


async def receive(lane: Lane, group: Sequence[Waiting], identities: Identities, now: Moment, expiring: bool) -> None:
    """Serves the group from this lane as far as it goes. Raises only what concerns the whole group."""
    lane.view.received_ms = now.monotonic_ms
    marks = await read_marks(lane)
    await wake.look_for_due(lane, marks, now)
    rounds = limits.RECEIVE_ROUNDS
    given: set[int] = set()
    while rounds and (needed := sum(waiting.missing for waiting in group)) and _room(group):
        portion = min(needed, lane.view.portion)
        found = await _find(lane, marks, portion, given, now, expiring)
        if not found:
            break
        lost = await _serve(lane, group, found, given, identities.fresh(), lane.clock.now())
        if any(waiting.error is not None for waiting in group) or (not lost and len(found) < portion):
            break
        if lost:
            rounds -= 1
            marks = await read_marks(lane)
    await close_passed(lane, marks, now)


def _room(group: Sequence[Waiting]) -> bool:
    """Whether what was found so far leaves room in memory for more."""
    found = sum(len(delivery.body) for waiting in group for delivery in waiting.deliveries)
    return found < limits.RECEIVE_BYTES


async def _find(
    lane: Lane, marks: Marks, needed: int, given: set[int], now: Moment, expiring: bool
) -> list[tuple[int, Candidate]]:
    """Up to `needed` candidates, those that were delivered before in front; none that this very answer holds already,
    though with a time-out of 0 it is visible again at once."""
    view = lane.view
    if len(view.again) < needed:
        # As late as it is: what this very receive has scheduled, having lost a race, is looked into too.
        due = view.take_due(lane.clock.now(), limits.EXAMINED_BUCKETS)
        try:
            while due:
                if due[0] >= marks.repair and due[0] not in view.finished:
                    await _look_into(lane, marks, due[0], now, expiring)
                due.pop(0)
        finally:
            for bucket in due:
                view.schedule(bucket, now.monotonic_ms)
    found = await _again(lane, needed, given)
    if len(found) < needed:
        if len(view.fresh) < needed - len(found):
            try:
                await read_new(lane, marks, needed - len(found), now, expiring)
            except BaseException:
                view.again.extendleft(reversed(found))
                raise
        found.extend(_take(view.fresh, needed - len(found), given))
    if len({candidate.number for _, candidate in found}) < len(found):
        # One was found twice, as one that is new and as one that others have delivered meanwhile.
        once = {candidate.number: (bucket, candidate) for bucket, candidate in reversed(found)}
        found = list(reversed(once.values()))
    return [item for item in found if item[1].number >= marks.purged and item[0] >= marks.floor]


async def _again(lane: Lane, needed: int, given: set[int]) -> list[tuple[int, Candidate]]:
    """Those that are visible again, whole; what is there in part makes room for what lies behind it."""
    view = lane.view
    found: list[tuple[int, Candidate]] = []
    wanted = needed
    try:
        while taken := _take(view.again, wanted, given):
            found += taken
            whole = await whole_ones(lane, taken)
            found[-len(taken) :] = whole
            if len(whole) == len(taken) or len(found) >= needed:
                break
            # Where some are in part many may be: a put of many messages that nobody has confirmed.
            wanted = max(needed, min(2 * wanted, view.portion))
    except BaseException:
        view.again.extendleft(reversed(found))
        raise
    view.again.extendleft(reversed(found[needed:]))
    return found[:needed]


async def _look_into(lane: Lane, marks: Marks, bucket: int, now: Moment, expiring: bool) -> None:
    """Examines a bucket whose time has come and takes note of what it holds."""
    view = lane.view
    findings = await examine(lane, marks, bucket, expiring)
    if findings.flags.get("finished") is not None:
        view.remember_finished(bucket)
        return
    opened = view.open.get(bucket)
    token = findings.flags.get("opened")
    if findings.new and (bucket < marks.reader if opened is None else opened.token != token):
        if token is None:
            await open_buckets(lane, {bucket: findings.flags})
            view.schedule(bucket, now.monotonic_ms)
            return
        if not await still_there(lane, [bucket]):
            return
    known = {candidate.number for held, candidate in view.again if held == bucket}
    known.update(candidate.number for held, candidate in view.fresh if held == bucket)
    for candidate in findings.visible:
        # What an open bucket has not been read up to yet is new, and waits for its turn.
        unread = candidate.delivery is None and (
            bucket >= marks.reader and (opened is None or candidate.number >= opened.position)
        )
        if candidate.number not in known and not unread:
            view.again.append((bucket, candidate))
    view.exhausted.update(findings.exhausted)
    view.moving.update(dict.fromkeys(findings.moving))
    waits = [wait.remaining_ms for wait in findings.waiting]
    if waits:
        view.schedule(bucket, now.monotonic_ms + min(waits))


def _take(candidates: deque[tuple[int, Candidate]], most: int, given: set[int]) -> list[tuple[int, Candidate]]:
    if not given:
        return [candidates.popleft() for _ in range(min(most, len(candidates)))]
    taken: list[tuple[int, Candidate]] = []
    left: list[tuple[int, Candidate]] = []
    while candidates and len(taken) < most:
        item = candidates.popleft()
        (left if item[1].number in given else taken).append(item)
    candidates.extendleft(reversed(left))
    return taken


async def _serve(
    lane: Lane, group: Sequence[Waiting], found: list[tuple[int, Candidate]], given: set[int], token: str, now: Moment
) -> bool:
    """Claims the candidates for the group and hands them out. True when some were lost to others. `given`: by their
    numbers here, which are not the ids that users see of what has waited elsewhere."""
    wishes: list[Wish] = []
    owners: dict[int, Waiting] = {}
    for waiting in group:
        visibility_ms = waiting.ask.visibility_ms
        if visibility_ms is None:
            visibility_ms = lane.settings.visibility_timeout_ms
        share = found[len(wishes) : len(wishes) + waiting.missing]
        wishes += [_wish((bucket, candidate, visibility_ms)) for bucket, candidate in share]
        owners.update([(candidate.number, waiting) for _, candidate in share])
    buckets = {wish.bucket for wish in wishes}
    lane.view.claiming.update(buckets)
    armed = False
    try:
        await wake.arm(lane, {(wish.visibility_ms, wish.bucket) for wish in wishes})
        armed = True
        claims = await claim(lane, wishes, token, now)
        bodies = await _bodies_of(lane, claims)
    except StoreError as error:
        # Nothing was handed out. What may have been claimed comes back after its time-out; the rest is found again.
        for wish in wishes:
            lane.view.schedule(wish.bucket, now.monotonic_ms + (wish.visibility_ms if armed else 0))
            lane.view.reopen(wish.bucket)
        for waiting in group:
            waiting.error = error
        return False
    except BaseException:
        for wish in wishes:
            lane.view.schedule(wish.bucket, now.monotonic_ms)
            lane.view.reopen(wish.bucket)
        raise
    finally:
        lane.view.claiming -= Counter(buckets)
    handed_out = 0
    for wish in claims.won:
        number = wish.candidate.number
        delivery = _delivery(lane, wish, bodies.get(number), now)
        if delivery is not None:
            owners[number].deliveries.append(delivery)
            given.add(number)
            handed_out += 1
    for bucket, visibility_ms in {(wish.bucket, wish.visibility_ms) for wish in claims.won}:
        lane.view.schedule(bucket, now.monotonic_ms + visibility_ms)
    if claims.unknown is not None:
        for waiting in group:
            waiting.error = claims.unknown
    return handed_out < len(wishes)


async def _bodies_of(lane: Lane, claims: Claims) -> dict[int, dict[str, Value]]:
    """The bodies that are not in memory, and those that were changed since they were put."""
    needed: dict[int, list[int]] = {}
    for wish in claims.won:
        if wish.candidate.body is None:
            needed.setdefault(wish.bucket, []).append(wish.candidate.number)
    if not needed:
        return {}
    spans: list[Span] = []
    for bucket, numbers in needed.items():
        for first, last in stretches(lane, numbers):
            spans.append(Span(lane.bodies(bucket), first, last))
            spans.append(Span(lane.states(bucket), first, last, None, ("body", "delivery", "settled")))
    found = await lane.store.read(spans)
    wanted = {number for numbers in needed.values() for number in numbers}
    bodies: dict[int, dict[str, Value]] = {}
    for index in range(0, len(found), 2):
        states = found[index + 1]
        if any(row.key in wanted and not row.values.get("body") for row in found[index].rows):
            # Empty, or erased since it was claimed: the state says which, if it is read after the body.
            (states,) = await lane.store.read([spans[index + 1]])
        _collect(bodies, found[index].rows, states.rows, wanted)
    return bodies


def _collect(bodies: dict[int, dict[str, Value]], rows: Sequence[Row], states: Sequence[Row], wanted: set[int]) -> None:
    changed = {row.key: row.values.get("body") for row in states}
    settled = {row.key for row in states if row.values.get("settled") is not None}
    for row in rows:
        if row.key in wanted and row.key not in settled:
            values = dict(row.values)
            if changed.get(row.key) is not None:
                values["body"] = changed[row.key]
            bodies[int(row.key)] = values


def _content(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "body": row.get("body"),
        "attributes": row.get("attributes"),
        "enqueued_at": row.get("enqueued_at") or 0,
        "origin": row.get("origin"),
    }


def _delivery(lane: Lane, wish: Wish, row: dict[str, Value] | None, now: Moment) -> Delivery | None:
    candidate = wish.candidate
    if candidate.body is None:
        candidate = candidate._replace(**_content(row or {}))
        if candidate.body is None:
            return None
        lane.view.note_size(len(candidate.body))
    number, delivered, _, first_delivered_at, body, attributes, enqueued_at, origin, _ = candidate
    delivery = (delivered or 0) + 1
    shown = _id((lane.number, number))
    if origin is not None:
        origin, first = split_origin(origin)
        shown, enqueued_at = first or (shown, enqueued_at)
    return _delivered(
        (
            shown,
            receipts.encode(lane.incarnation, lane.secret, lane.number, number, delivery),
            body,
            attributes,
            delivery,
            enqueued_at,
            first_delivered_at if first_delivered_at is not None else now.wall_ms,
            now.wall_ms + wish.visibility_ms,
            origin,
            None,
            lane.rank.priority,
            None,
        )
    )
