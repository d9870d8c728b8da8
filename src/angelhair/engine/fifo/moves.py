"""Moves: messages go from one fifo queue to another, each once, whoever dies on the way (R7).

    1. the target number of each is the end of the target's log, as it is now
    2. the source's state says `moving` to that number, conditionally; this kills its receipts
    3. one conditional write appends them there, provided that the log still ends where it did
    4. the source's state says that they have gone

Whoever finds a message that has been moving for a while looks at its number in the target: if it is there, by its
origin, it has gone. If another one is there, or the log has gone on, it is first marked to move to another number: the
old one will never take it. If the target is gone, it becomes visible again where it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.engine.fifo.edit import Edit, edit
from angelhair.engine.fifo.judge import judge, present
from angelhair.engine.fifo.keys import Keys
from angelhair.engine.fifo.lane import Lane, Tail, read_marks
from angelhair.engine.fifo.log import learn
from angelhair.engine.fifo.put import append, row_of
from angelhair.engine.fifo.read import bodies_of
from angelhair.engine.fifo.state import DEAD, MOVED, MOVING, Entry, State
from angelhair.engine.marks import QueueGone
from angelhair.engine.schema import LOG_LIGHT
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Refused, RowChange, Span, Values
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage


class Target(NamedTuple):
    """Where a message is going, as its source's state says it."""

    label: str
    account: str
    queue: str
    incarnation: str
    lane: int
    number: int
    before: str = ""
    """Numbers that it was to have before, with `+` between them, where a write may still land: look there, too."""

    @property
    def befores(self) -> list[int]:
        return [int(number) for number in self.before.split("+") if number]

    @property
    def lowest(self) -> int:
        return min([self.number, *self.befores])

    def instead(self, number: int, end: int) -> Target:
        """Another number. What lies below the log's end has been looked at: nothing can land there any more."""
        open_still = [before for before in (*self.befores, self.number) if before >= end and before != number]
        return self._replace(number=number, before="+".join(str(before) for before in open_still))

    def to_text(self) -> str:
        return "/".join(str(part) for part in self)

    @classmethod
    def from_text(cls, text: str) -> Target:
        label, account, queue, incarnation, lane, number, before = text.split("/")
        return cls(label, account, queue, incarnation, int(lane), int(number), before)


Source = tuple[str, int]
"""A group and a number of it."""

FindLane = Callable[[Target], Awaitable[Lane | None]]
"""The lane of a target that still exists in that incarnation; or None."""


async def move(lane: Lane, picks: Sequence[Source], target: Lane, label: str, find: FindLane) -> int:
    """Moves messages that could be delivered now, in this order; returns how many have arrived for sure. All of them
    lie in groups of one lane of the target."""
    tail, keys = await learn(target)
    room = target.first_of(tail.bucket + 1) - keys.end
    picks = picks[: min(room, limits.MOVES)]
    places = {
        pick: Target(label, target.account, target.queue, target.incarnation, target.number, keys.end + offset)
        for offset, pick in enumerate(picks)
    }

    # Of what may be delivered now, also what was delivered too often for that.
    at = (await present(lane, await read_marks(lane)))._replace(limit=None)

    def marking(group: str) -> Edit:
        numbers = [number for name, number in picks if name == group]

        def marked(state: State) -> State | None:
            judged = judge(lane, group, state, at.later(lane.clock.now()), len(numbers))
            if judged.deliverable != numbers:
                return None
            entries = {
                number: (state.touched.get(number) or Entry(number, 0, 0, 0, 0))._replace(
                    settled=MOVING, target=places[group, number].to_text()
                )
                for number in numbers
            }
            return state.changed(entries, judged.settled_below)

        return marked

    outcomes = await edit(lane, {group: marking(group) for group in dict.fromkeys(name for name, _ in picks)})
    return await go_on(lane, [pick for pick in picks if isinstance(outcomes[pick[0]], State)], find)


async def go_on(lane: Lane, moving: Sequence[Source], find: FindLane) -> int:
    """Steps 3 and 4 for messages that are marked; how many have arrived."""
    rows = await bodies_of(lane, [number for _, number in moving])
    by_log: dict[Target, list[Source]] = {}
    for source in moving:
        place = _place(lane, source)
        if place is None:
            continue
        if source[1] not in rows:
            # Purged and dropped before it was marked, by a server that slept: there is nothing to move.
            await _settle(lane, [source], place.label)
            continue
        by_log.setdefault(place._replace(number=0, before=""), []).append(source)
    arrived = 0
    for log, sources in by_log.items():
        arrived += await _into(lane, log, sources, rows, find)
    return arrived


def _entry(lane: Lane, source: Source) -> Entry | None:
    """The message's state, if it is moving."""
    entry = lane.view.states.get(source[0], State()).touched.get(source[1])
    return entry if entry is not None and entry.settled == MOVING else None


def _place(lane: Lane, source: Source) -> Target | None:
    entry = _entry(lane, source)
    return None if entry is None or entry.target is None else Target.from_text(entry.target)


async def _into(
    lane: Lane, log: Target, sources: Sequence[Source], rows: Mapping[int, Values], find: FindLane
) -> int:
    """Messages that move to one log, each by its number there."""
    target = await find(log)
    arrived, fresh = 0, False
    for _ in range(limits.RECEIVE_ROUNDS + len(sources)):
        placed = sorted((place, source) for source in sources if (place := _place(lane, source)) is not None)
        if not placed:
            break
        try:
            if target is None:
                raise QueueGone(log.queue)
            tail, keys = await learn(target)
            passed = [item for item in placed if item[0].lowest < keys.end]
            if passed:
                arrived += await _look(lane, target, passed, rows, keys.end)
                continue
            room = target.first_of(tail.bucket + 1) - keys.end
            run = [item for offset, item in enumerate(placed[:room]) if item[0].number == keys.end + offset]
            if not run:
                if not fresh:
                    # Perhaps it is only we who do not know better.
                    fresh = target.view.behind = True
                    continue
                # Beyond the log's end: whoever marked it did not come to mark those before it. It is appended at the
                # end. A write for the number that it had may still land before that: so it is remembered, too.
                place, source = placed[0]
                await _mark_again(lane, {source: place.instead(keys.end, keys.end)})
                continue
            if await _append(lane, target, tail, keys, run, rows):
                arrived += await _settle(lane, [source for _, source in run], log.label)
            target.view.behind = True
        except QueueGone:
            await _settle(lane, [source for _, source in placed], None)
            break
    return arrived


async def _look(
    lane: Lane, target: Lane, passed: Sequence[tuple[Target, Source]], rows: Mapping[int, Values], end: int
) -> int:
    """The log has gone beyond these numbers: what is there has arrived, and what is not there never will there."""
    numbers = sorted({number for place, _ in passed for number in (place.number, *place.befores) if number < end})
    spans = [
        Span(target.log(target.bucket_of(number)), number, number, None, LOG_LIGHT) for number in numbers
    ]
    found = {
        number: tuple(part.rows[0].values.get(name) for name in _SAME) if part.rows else None
        for number, part in zip(numbers, await target.store.read(spans), strict=True)
    }
    there: list[tuple[Target, Source]] = []
    missing: list[tuple[Target, Source]] = []
    for place, source in passed:
        message = _message(lane, source, rows.get(source[1], {}), place.label)
        wanted = (message.origin, message.group, message.key)
        arrived_at = [number for number in (place.number, *place.befores) if found.get(number) == wanted]
        (there if arrived_at else missing).append((place, source))
    arrived = await _settle(lane, [source for _, source in there], passed[0][0].label) if there else 0
    again = {source: place.instead(end + offset, end) for offset, (place, source) in enumerate(missing)}
    await _mark_again(lane, again)
    return arrived


async def _mark_again(lane: Lane, places: Mapping[Source, Target]) -> None:
    """They move to another number."""
    entries = {
        source: entry._replace(target=place.to_text())
        for source, place in places.items()
        if (entry := _entry(lane, source)) is not None
    }
    if entries:
        await _replace(lane, entries)


_SAME = ("origin", "message_group", "dedup_id")
"""What tells a message of ours in the target from another."""


async def _append(
    lane: Lane,
    target: Lane,
    tail: Tail,
    keys: Keys,
    run: Sequence[tuple[Target, Source]],
    rows: Mapping[int, Values],
) -> bool:
    """True when they are there. False when the log has gone on, with them or without. Raises what it met."""
    enqueued_at = max(await target.time_ms(), keys.newest_at)
    changes = [
        RowChange(place.number, {}, row_of(_message(lane, source, rows.get(source[1], {}), place.label), enqueued_at))
        for place, source in run
    ]
    outcome = await change_one(target.store, append(target, tail, run[0][0].number, changes, lane.identities.fresh()))
    if isinstance(outcome, StoreError):
        target.view.forget_log()
        raise outcome
    if isinstance(outcome, Refused):
        if outcome.flags.get("deleted") or outcome.flags.get("opened") is None:
            target.view.forget_log()
        if outcome.flags.get("deleted"):
            raise QueueGone(target.queue)
    return isinstance(outcome, Applied)


def _message(lane: Lane, source: Source, row: Values, label: str) -> NewMessage:
    """The same whoever writes it."""
    group, number = source
    body, attributes, key = row.get("body"), row.get("attributes"), row.get("dedup_id")
    place = MessageId(lane.number, number)
    # What was moved back comes from nowhere that it could be moved back to.
    origin = f"{MOVED}/{lane.account}.{lane.queue}.{place}"
    if label == DEAD:
        origin = f"{lane.account}/{lane.queue}/{place}"
    return NewMessage(
        body if isinstance(body, bytes) else b"",
        attributes if isinstance(attributes, str) else None,
        None,
        key if isinstance(key, str) else None,
        origin,
        group,
    )


async def _settle(lane: Lane, sources: Sequence[Source], label: str | None) -> int:
    """Step 4; or, without a label, back to where they were. How many of them are settled now."""
    becomes = {
        source: entry._replace(settled=label, target=None, visible_at=0, duration=0)
        for source in sources
        if (entry := _entry(lane, source)) is not None
    }
    await _replace(lane, becomes)
    return sum(lane.view.states.get(group, State()).settled(number) for group, number in sources)


async def _replace(lane: Lane, entries: Mapping[Source, Entry]) -> None:
    """Changes messages that are still moving to where they were: one change for each group."""
    before = {source: _entry(lane, source) for source in entries}

    def replacing(group: str) -> Edit:
        def replaced(state: State) -> State | None:
            changed = {}
            for source, entry in entries.items():
                was, found = before[source], state.touched.get(source[1])
                if source[0] == group and was is not None and found is not None:
                    if found.settled == MOVING and found.target == was.target:
                        changed[source[1]] = entry
            return state.changed(changed) if changed else None

        return replaced

    groups = dict.fromkeys(group for group, _ in entries)
    for outcome in (await edit(lane, {group: replacing(group) for group in groups})).values():
        if isinstance(outcome, StoreError):
            raise outcome
