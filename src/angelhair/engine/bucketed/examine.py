"""Examine: look into a whole bucket and say what is to be done there.

A message is to be delivered when its time has come by the wall clock, or when its revision has been watched unchanged
for as long as it was meant to be invisible, on the watcher's own monotonic clock (R5): a message that a fast clock
hid for a year comes back when its time-out is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.lane import Candidate, Lane
from angelhair.engine.marks import Marks
from angelhair.engine.schema import BODY_DATES, STATE_DATES
from angelhair.engine.store import Slice, Span, Values

MOVING, ERASED, VOID = "moving", "erased", "void"
"""What a message can be settled as beside `acked` and where it was moved. `void`: it goes by another id now."""


class Wait(NamedTuple):
    """An invisible message: how long it still is, on the watcher's clock."""

    number: int
    remaining_ms: int
    delayed: bool


@dataclass(slots=True)
class Findings:
    """A bucket as one server sees it at one moment."""

    flags: Values
    visible: list[Candidate] = field(default_factory=list)
    waiting: list[Wait] = field(default_factory=list)
    exhausted: dict[int, tuple[int, int]] = field(default_factory=dict)
    moving: list[int] = field(default_factory=list)
    unadmitted: list[tuple[int, int, int]] = field(default_factory=list)
    """(id, enqueued_at, delay) of bodies without a state row."""
    settled: int = 0
    expired: int = 0
    dead: int = 0
    keyed: int = 0
    """When the last idempotency key lapses that a message here came with."""
    bodiless: bool = False
    """A message here has a state and no body: what it came with cannot be told."""
    erased: list[int] = field(default_factory=list)

    @property
    def unsettled(self) -> bool:
        return bool(self.visible or self.waiting or self.exhausted or self.moving or self.unadmitted)

    @property
    def new(self) -> bool:
        """Whether something here could be delivered for the first time."""
        return any(candidate.delivery is None for candidate in self.visible)

    @property
    def next_look_ms(self) -> int | None:
        """In how many milliseconds something here will change by itself; None if nothing will."""
        if self.visible or self.exhausted:
            return 0
        times = [wait.remaining_ms for wait in self.waiting] + [limits.MOVE_PATIENCE_MS for _ in self.moving]
        return min(times, default=None)


async def examine(lane: Lane, marks: Marks, bucket: int, expiring: bool) -> Findings:
    content = Span(lane.bodies(bucket), columns=BODY_DATES)
    states, bodies = await lane.store.read([Span(lane.states(bucket), columns=STATE_DATES), content])
    known = {row.key for row in states.rows if row.values.get("settled") != VOID}
    if not known <= {row.key for row in bodies.rows}:
        # Put and delivered after the bodies were read, and before the states were: now they are there.
        (bodies,) = await lane.store.read([content])
    # What was seen is dated after it was seen: a watch that began too early would end too early.
    now = lane.clock.now()
    return judge(lane, marks, states, bodies, now, expiring and lane.trusts_clock(now))


def judge(lane: Lane, marks: Marks, states: Slice, bodies: Slice, now: Moment, expiring: bool) -> Findings:
    """Sorts a bucket's rows by what is to be done with them."""
    findings = Findings(states.flags)
    view = lane.view
    settings = lane.settings
    missed_ms = view.dead_letters_missed_ms
    missing = missed_ms is not None and now.monotonic_ms - missed_ms < limits.CATALOG_AGE_MS
    limit = settings.max_deliveries if settings.dead_letter_queue and not missing else None
    born = {row.key: row.values for row in bodies.rows}
    for row in states.rows:
        number = int(row.key)
        values = row.values
        body = born.pop(number, None)
        settled = values.get("settled")
        if body is None and settled != VOID:
            # The store is damaged, or nobody has confirmed it. When it was first delivered, or was to come again, are
            # the next best dates.
            findings.bodiless = True
            body = {"enqueued_at": values.get("first_delivered_at") or values.get("visible_at")}
        findings.keyed = max(findings.keyed, _whole(body or {}, "keyed") or 0)
        if values.get("erased_at") is not None:
            findings.erased.append(number)
        if settled == MOVING:
            findings.moving.append(number)
            continue
        if settled is not None:
            findings.settled += 1
            findings.dead += settled == "dead"
            view.watched.pop(number, None)
            continue
        enqueued_at = _whole(body or {}, "enqueued_at")
        if is_over(lane, marks, number, body or {}, now, expiring):
            findings.expired += 1
            continue
        delivery, revision = _whole(values, "delivery") or 0, _whole(values, "revision") or 0
        remaining = remaining_ms(
            lane, number, revision, _whole(values, "visible_at") or 0, _whole(values, "duration") or 0, now
        )
        if remaining > 0:
            findings.waiting.append(Wait(number, remaining, delivery == 0))
        elif limit is not None and delivery >= limit:
            findings.exhausted[number] = (delivery, revision)
        else:
            findings.visible.append(
                Candidate(
                    number, delivery, revision, _whole(values, "first_delivered_at"), None, None, enqueued_at or 0, None
                )
            )
    final = states.flags.get("final") is not None
    token = states.flags.get("opened")
    opened = token if isinstance(token, str) else None
    for key, body in born.items():
        number = int(key)
        findings.keyed = max(findings.keyed, _whole(body, "keyed") or 0)
        enqueued_at = _whole(body, "enqueued_at") or 0
        visible_from = _whole(body, "visible_from")
        delay = visible_from - enqueued_at if visible_from is not None else 0
        if is_over(lane, marks, number, body, now, expiring):
            findings.expired += 1
        elif final:
            findings.unadmitted.append((number, enqueued_at, delay))
        elif visible_from is not None and (remaining := remaining_ms(lane, number, -1, visible_from, delay, now)) > 0:
            findings.waiting.append(Wait(number, remaining, True))
            findings.unadmitted.append((number, enqueued_at, delay))
        else:
            findings.visible.append(Candidate(number, None, None, None, None, None, enqueued_at, None, opened))
            findings.unadmitted.append((number, enqueued_at, delay))
    return findings


def remaining_ms(lane: Lane, number: int, revision: int, visible_at: int, duration: int, now: Moment) -> int:
    """How long the message is still invisible: by the wall clock or by watching, whichever ends first."""
    by_wall = visible_at - now.wall_ms
    if by_wall <= 0:
        return 0
    return min(by_wall, max(0, duration - lane.view.watch(number, revision, now)))


def is_over(lane: Lane, marks: Marks, number: int, body: Values, now: Moment, expiring: bool) -> bool:
    """Whether a message was purged or, by a clock that can be trusted, has outlived the queue's retention."""
    if number < marks.purged:
        return True
    over, since = over_before(lane, now, expiring), kept_since(body)
    return over is not None and since is not None and since <= over


def kept_since(body: Values) -> int | None:
    """From when on a message's retention counts: from when it can be received, so that a delay may be longer."""
    enqueued_at, visible_from = _whole(body, "enqueued_at"), _whole(body, "visible_from")
    return enqueued_at if visible_from is None or enqueued_at is None else max(enqueued_at, visible_from)


def over_before(lane: Lane, now: Moment, expiring: bool) -> int | None:
    """What is kept since then has outlived the queue's retention; None if nothing has, or nobody may say so."""
    retention = lane.settings.retention_ms
    return now.wall_ms - retention if expiring and retention is not None else None


def _whole(values: Values, name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None
