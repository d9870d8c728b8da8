"""Consumers share the shards of a timeline: who has too many gives some back, who has few takes what is free (W5, W8).

A consumer is a name with a beat in a plain row, and the locks of its shards. Who is alive is watched: a beat that does
not change for the time of a lock on our own clock is a dead one's. A share is the whole number of shards that is enough
if every living consumer takes as many, or as many as it wants at most. Shards that nobody works on go to whoever has
least; after a while to anybody, beyond its share if need be.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.settling import must_write
from angelhair.engine.store import Row, Slice, Span, Values, Write
from angelhair.engine.timeline import lock
from angelhair.engine.timeline.aside import set_aside
from angelhair.engine.timeline.lane import Line, Session
from angelhair.engine.timeline.window import Held


class Share(NamedTuple):
    """What a consumer holds after a touch."""

    lanes: tuple[int, ...]
    fences: Mapping[int, int]
    lock_ms: int
    held_until_ms: int
    """On the server's monotonic clock: until then all of them may be believed in."""


def session_of(line: Line, consumer: str, now: Moment) -> Session:
    """The session of a consumer that was heard of now."""
    session = line.sessions.by_name.get(consumer)
    if session is None:
        # What an earlier one, which said goodbye, is still about must not take this one's locks for its own.
        session = line.sessions.by_name[consumer] = Session(consumer, f"{line.server}/{line.identities.fresh()}")
    session.heard_ms = now.monotonic_ms
    return session


def touch_due(line: Line, session: Session, now: Moment) -> bool:
    every_ms = line.settings.lock_ms // limits.TIMELINE_TOUCHES
    return session.touched_ms is None or now.monotonic_ms - session.touched_ms >= every_ms


async def touch(line: Line, session: Session, asked: bool = True) -> Share:
    """Beats, gives back what is too much, takes what is free, and touches all that is held. `asked`: by the consumer
    itself, so that it is here and nowhere else. Raises `QueueGone`."""
    if not session.touching:
        session.touching = True
        try:
            await _touch(line, session, asked)
        finally:
            session.touching = False
        if session.left:
            await leave(line, session)
    return share_of(line, session)


def share_of(line: Line, session: Session) -> Share:
    now = line.clock.now()
    helds = [held for held in line.held_by(session) if held.believed(now)]
    until_ms = min((held.believed_until_ms for held in helds), default=now.monotonic_ms)
    fences = {held.lane: held.fence for held in helds}
    return Share(tuple(fences), fences, line.settings.lock_ms, until_ms)


async def _touch(line: Line, session: Session, asked: bool) -> None:
    # From before it is sent: a beat must not look younger to us than it is.
    begun = line.clock.now()
    # What is ours is touched first: nothing that follows may make us late. The mark goes along, as that costs nothing
    # more. Where it was raised a moment ago, that was a touch.
    helds = [held for held in line.held_by(session) if not held.fresh(begun)]
    kept = await lock.keep(line, helds, await line.time_ms() + line.lead_ms)
    session.beat += 1
    await must_write(line.store, [_beat(line, session)])
    lanes = line.lanes
    spans = [Span(places.consumers(line.incarnation), limit=limits.TIMELINE_CONSUMERS)]
    found = await line.store.read([*spans, *(Span(line.shard(lane)) for lane in lanes)])
    now = line.clock.now()
    alive = _alive(line, session, found[0], now)
    rows = {lane: lock.row_of(part) for lane, part in zip(lanes, found[1:], strict=True)}
    _see_losses(line, session, rows)
    watched = {lane: lock.watch(line, lane, row, now) for lane, row in rows.items()}
    holding = _holding(line, session, rows, watched, alive)
    share = _share(len(lanes), [alive[name] for name in alive])
    await _give_back(line, session, share, holding, alive)
    took = await _take(line, session, asked, share, rows, watched, holding, alive)
    # Where something did not come about, the next one who asks tries again at once.
    session.touched_ms = begun.monotonic_ms if took and len(kept) == len(helds) else None


def _beat(line: Line, session: Session) -> Write:
    most = limits.SHARDS_MAXIMUM if session.most is None else session.most
    values: Values = {"holder": session.holder, "beat": session.beat, "most": most}
    ttl_seconds = max(1, limits.TIMELINE_FORGET_LOCKS * line.settings.lock_ms // 1_000)
    return Write(places.consumers(line.incarnation), [Row(session.consumer, values)], ttl_seconds)


def _alive(line: Line, session: Session, found: Slice, now: Moment) -> dict[str, int]:
    """By the names of living consumers, how many shards each wants at most."""
    seen = line.sessions.others
    alive: dict[str, int] = {}
    present = set()
    for row in found.rows:
        name, holder, beat = str(row.key), str(row.values.get("holder") or ""), row.values.get("beat")
        present.add(name)
        said = (holder, beat if isinstance(beat, int) else 0)
        if name not in seen or seen[name][:2] != said:
            seen[name] = (*said, now.monotonic_ms)
        most = row.values.get("most")
        if holder and now.monotonic_ms - seen[name][2] < line.settings.lock_ms:
            alive[name] = most if isinstance(most, int) else limits.SHARDS_MAXIMUM
    for name in [name for name in seen if name not in present]:
        del seen[name]
    alive[session.consumer] = limits.SHARDS_MAXIMUM if session.most is None else session.most
    return alive


def _see_losses(line: Line, session: Session, rows: Mapping[int, Values]) -> None:
    for held in line.held_by(session):
        row = rows.get(held.lane)
        if row is not None and (row.get("holder"), row.get("fence")) != (held.holder, held.fence):
            lock.lose(line, held)


def _holding(
    line: Line, session: Session, rows: Mapping[int, Values], watched: Mapping[int, int], alive: Mapping[str, int]
) -> Counter[str]:
    """By consumer, how many shards it works on."""
    holding: Counter[str] = Counter()
    for lane, row in rows.items():
        consumer = row.get("consumer")
        if isinstance(consumer, str) and consumer != session.consumer and row.get("holder") != lock.FREE:
            duration = row.get("duration")
            lapsed = isinstance(duration, int) and watched[lane] >= duration
            holding[consumer] += not lapsed and consumer in alive
    holding[session.consumer] = len(line.held_by(session))
    return holding


def _share(shards: int, most: Sequence[int]) -> int:
    """The least number that is enough for all shards if nobody takes more of them, or more than it wants."""
    share = -(-shards // max(1, len(most)))
    while share < shards and sum(min(share, wants) for wants in most) < shards:
        share += 1
    return share


async def _give_back(
    line: Line, session: Session, share: int, holding: Counter[str], alive: Mapping[str, int]
) -> None:
    """What is beyond the share; and one more if another has two less, which it wants."""
    helds = line.held_by(session)
    poorest = min((holding[name] for name, wants in alive.items() if holding[name] < wants), default=len(helds))
    keeps = min(share, alive[session.consumer])
    if len(helds) <= keeps and len(helds) - poorest >= 2:
        keeps = len(helds) - 1
    surplus, now = max(0, len(helds) - keeps), line.clock.now()
    # First those in which nothing is under way; then those that are waited for already.
    leaving = sorted(helds, key=lambda held: (held.in_flight, not held.leaving))
    for held in leaving[:surplus]:
        held.leave(now)
    for held in leaving[surplus:]:
        held.left_ms = None
    await release_idle(line, session)
    holding[session.consumer] = len([held for held in line.held_by(session) if not held.leaving])


async def release_idle(line: Line, session: Session) -> None:
    """Gives back shards that are to be left and of which nothing is with a consumer any more; or has been for as long
    as a lock lasts. A handler may take hours, and nobody works on the shard meanwhile (W8)."""
    now = line.clock.now()
    leaving = [held for held in line.held_by(session) if held.leaving]
    await part_with(line, [held for held in leaving if not _waited_for(held, now) or _long_left(line, held, now)])


async def part_with(line: Line, helds: Sequence[Held], goodbye: bool = False) -> None:
    """Gives shards back. What was given and not acked is set aside before, until its time-out has passed: how often it
    was delivered is written with it, and an ack of it may still come. After a goodbye none will: then only what has
    failed is set aside, so that this is not forgotten, and others are given the rest at once. A shard of which
    something is being set aside by somebody else is left to him, or to the next step: given back now, it would come
    twice."""
    helds = [held for held in helds if not held.setting_aside]
    now, wall_ms = line.clock.now(), await line.time_ms()
    items = [
        (held, entry, wall_ms + max(0, entry.hidden_until_ms - now.monotonic_ms), entry.delivery)
        for held in helds
        if held.believed(now)
        for entry in (held.failed(now) if goodbye else held.window.values())
        if entry.given and not entry.settled
    ]
    if items:
        await set_aside(line, items)
    await lock.release(line, helds)


def _long_left(line: Line, held: Held, now: Moment) -> bool:
    return held.left_ms is not None and now.monotonic_ms - held.left_ms >= line.settings.lock_ms


def _waited_for(held: Held, now: Moment) -> bool:
    """Whether a consumer still has something of it that it may ack: later it is given again, to others."""
    return any(
        entry.given and not entry.settled and entry.hidden_until_ms > now.monotonic_ms for entry in held.window.values()
    )


async def _take(
    line: Line, session: Session, asked: bool, share: int, rows: Mapping[int, Values], watched: Mapping[int, int],
    holding: Counter[str], alive: Mapping[str, int],
) -> bool:
    """Takes what is fair; False when there may be more to have."""
    for _ in range(limits.TIMELINE_TAKE_ROUNDS):
        wanted = _wanted(line, session, asked, share, rows, watched, holding, alive)
        if not wanted:
            return True
        taken = await lock.take(line, session, wanted)
        holding[session.consumer] += len(taken)
        if len(taken) == len(wanted):
            return True
        # Others were faster: what is left now?
        found = await line.store.read([Span(line.shard(lane)) for lane in rows])
        now = line.clock.now()
        rows = {lane: lock.row_of(part) for lane, part in zip(rows, found, strict=True)}
        watched = {lane: lock.watch(line, lane, row, now) for lane, row in rows.items()}
    return False


def _wanted(
    line: Line, session: Session, asked: bool, share: int, rows: Mapping[int, Values], watched: Mapping[int, int],
    holding: Counter[str], alive: Mapping[str, int],
) -> dict[int, Values]:
    """Of the shards that can be taken those that we should take."""
    others = [holding[name] for name, wants in alive.items() if name != session.consumer and holding[name] < wants]
    poorest = min(others, default=share)
    surely = len(rows) // max(1, len(alive))
    mine, most = holding[session.consumer], alive[session.consumer]
    now = line.clock.now()
    free = [
        lane for lane, row in rows.items()
        # What another consumer of this server held and does not believe in any more is nobody's here.
        if ((held := line.held(lane)) is None or not held.believed(now))
        and lock.takeable(session, asked, row, watched[lane])
    ]
    # Who comes first to the same list takes what others would: each begins elsewhere.
    start = zlib.crc32(session.holder.encode()) % max(1, len(free))
    wanted: dict[int, Values] = {}
    for lane in free[start:] + free[:start]:
        row = rows[lane]
        ours = lock.is_ours(session, asked, row)
        fair = mine < surely or (mine < share and mine <= poorest)
        if mine < most and (ours or fair or _nobodys(line, row, watched[lane])):
            wanted[lane] = row
            mine += 1
    return wanted


def _nobodys(line: Line, row: Values, watched_ms: int) -> bool:
    """Whether others, who have less, had time to take it and did not (W8)."""
    duration = row.get("duration")
    lapse_ms = 0 if row.get("holder") == lock.FREE or not isinstance(duration, int) else duration
    return watched_ms >= lapse_ms + line.settings.lock_ms // 2


async def leave(line: Line, session: Session) -> None:
    """Says goodbye: sets aside what has failed, checkpoints, gives all back, and counts no more."""
    session.left = True
    if line.sessions.by_name.get(session.consumer) is session:
        del line.sessions.by_name[session.consumer]
    await part_with(line, line.held_by(session), goodbye=True)
    if session.consumer not in line.sessions.by_name:
        values: Values = {"holder": "", "beat": session.beat + 1}
        await must_write(line.store, [Write(places.consumers(line.incarnation), [Row(session.consumer, values)], 1)])
