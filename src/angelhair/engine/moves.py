"""Moves between queues: dead-lettering, redrive, and going on with moves that somebody else began (R7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import transfer
from angelhair.engine.bucketed import peek
from angelhair.engine.bucketed.lane import Candidate, Lane, read_marks
from angelhair.engine.bucketed.whole import whole_ones
from angelhair.engine.catalog import Queue
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.ranks import Rank
from angelhair.engine.settling import begun
from angelhair.errors import InvalidRequest, QueueNotFound
from angelhair.model import MessageId

ORIGIN_PARTS = 3
"""Account, queue and id, as `transfer` writes them. A producer's own idea of an origin leads nowhere."""

_STANDING_STILL = -2
"""The revision under which a moving row is watched: it has none that changes."""


async def move_exhausted(memory: Memory, queue: Queue, lane: Lane, now: Moment) -> None:
    """Messages that used up their deliveries go to the dead-letter queue; moves that stand still go on."""
    view = lane.view
    if view.exhausted:
        target = await _dead_letter_lane(memory, queue, lane.rank, now)
        purged = (await read_marks(lane)).purged
        taken = dict(list(view.exhausted.items())[: limits.MOVES])
        for number in taken:
            del view.exhausted[number]
        view.dead_letters_missed_ms = now.monotonic_ms if target is None else None
        if target is None:
            # Nowhere to go: they are delivered on, as if there were no limit (A1).
            for number in taken:
                view.schedule(lane.bucket_of(number), now.monotonic_ms)
        else:
            candidates = [
                (lane.bucket_of(number), Candidate(number, delivery, revision, None, None, None, 0, None))
                for number, (delivery, revision) in sorted(taken.items())
                if number >= purged
            ]
            for bucket, group in by_bucket(candidates).items():
                if moving := await _begin(memory, lane, bucket, group, target, transfer.DEAD, now):
                    await _finish(memory, lane, bucket, moving, now)
    stalled = []
    for number in list(view.moving)[: limits.MOVES]:
        if view.watch(number, _STANDING_STILL, now) >= limits.MOVE_PATIENCE_MS:
            stalled.append(number)
            view.watched.pop(number, None)
            del view.moving[number]
    for bucket in sorted({lane.bucket_of(number) for number in stalled}):
        numbers = [number for number in stalled if lane.bucket_of(number) == bucket]
        await transfer.resume(lane, bucket, numbers, _find(memory, now), memory.identities.fresh(), now)


async def redrive(memory: Memory, queue: Queue, destination: str | None, most: int) -> int:
    """Moves visible messages of all lanes; how many went."""
    done = Moved()
    for number in queue.read_lanes:
        if done.arrived < most:
            try:
                await _redrive_lane(memory, queue, memory.lane(queue, number), destination, most, done)
            except (QueueGone, LaneSealed):
                if not done.begun:
                    raise
                # Deleted meanwhile, or with other lanes now: what went has gone.
                break
    return done.arrived


@dataclass
class Moved:
    """How far a redrive has come."""

    begun: bool = False
    arrived: int = 0


async def _redrive_lane(
    memory: Memory, queue: Queue, lane: Lane, destination: str | None, most: int, done: Moved
) -> None:
    """Moves visible messages of a lane to the destination, or each to the queue that it came from.

    Messages that came from nowhere, or from a queue that is gone, stay where they are and do not count. However many
    they are, what is behind them is found: who hears that nothing was moved takes it that nothing is left to move.
    """
    following: int | None = 0
    before = done.arrived
    wanted = limits.PEEK_MESSAGES if destination is None else most - done.arrived
    while following is not None and done.arrived == before:
        with begun(done.begun):
            trusted = memory.clock_is_good(memory.clock.now())
            found, following = await peek.visible_candidates(lane, wanted, trusted, True, following)
        await _redrive_found(memory, queue, lane, destination, most, done, found)
        # Where nothing could be moved much may be so.
        wanted = min(2 * wanted, limits.PEEK_MESSAGES)


async def _redrive_found(
    memory: Memory, queue: Queue, lane: Lane, destination: str | None, most: int, done: Moved,
    found: Sequence[tuple[int, Candidate]],
) -> None:
    now = memory.clock.now()
    for bucket, candidates in by_bucket(found).items():
        with begun(done.begun):
            targets = (
                await _by_origin(lane, bucket, candidates) if destination is None else {(destination, None): candidates}
            )
        for (name, origin_lane), group in targets.items():
            left = most - done.arrived
            if left <= 0:
                return
            with begun(done.begun):
                try:
                    to = await _find_with_lane(memory, queue.account, name, origin_lane, now)
                    rank = lane.rank if origin_lane is None else to.rank_of(origin_lane)
                    target = _apart(memory, to) or memory.lane_for_put(to, now, rank)
                except (QueueNotFound, InvalidRequest):
                    if destination is not None and not done.begun:
                        raise
                    continue
                some = await _first_whole(lane, bucket, group, left)
                moving = await _begin(memory, lane, bucket, some, target, transfer.MOVED, now) if some else []
            if moving:
                done.begun = True
                done.arrived += await _finish(memory, lane, bucket, moving, now)


async def _first_whole(lane: Lane, bucket: int, group: Sequence[Candidate], most: int) -> list[Candidate]:
    """What is there in part, and was put by nobody yet, would be on its way until it is."""
    whole: list[Candidate] = []
    passed, wanted = 0, most
    while passed < len(group) and len(whole) < most:
        some = group[passed : passed + wanted]
        passed += len(some)
        found = await whole_ones(lane, [(bucket, candidate) for candidate in some])
        whole += [candidate._replace(body=None) for _, candidate in found]
        wanted = max(most, min(2 * wanted, lane.view.portion))
    return whole[:most]


async def _by_origin(
    lane: Lane, bucket: int, candidates: list[Candidate]
) -> dict[tuple[str, int | None], list[Candidate]]:
    """By queue and lane: what was urgent, or one of very many, is so again when it comes back."""
    origins = await peek.origins(lane, bucket, candidates)
    targets: dict[tuple[str, int | None], list[Candidate]] = {}
    for candidate in candidates:
        parts = (origins.get(candidate.number) or "").split("/")
        if len(parts) == ORIGIN_PARTS:
            targets.setdefault((parts[1], _lane_in(parts[2])), []).append(candidate)
    return targets


async def _find_with_lane(memory: Memory, account: str, name: str, lane: int | None, now: Moment) -> Queue:
    queue = await memory.find_queue(account, name, now)
    if lane is not None and lane >= queue.lanes_made:
        # Ours is the older: it does not know the lane, and so not its rank.
        memory.distrust(account, name)
        queue = await memory.find_queue(account, name, now)
    return queue


def _lane_in(text: str) -> int | None:
    try:
        return MessageId.parse(text).lane
    except InvalidRequest:
        return None


async def _begin(
    memory: Memory, lane: Lane, bucket: int, group: Sequence[Candidate], target: Lane | transfer.Apart, label: str,
    now: Moment,
) -> list[int]:
    """Which of them are on their way now."""
    try:
        if isinstance(target, transfer.Apart):
            return await transfer.begin_apart(lane, bucket, group, target, label, memory.identities.fresh())
        return await transfer.begin(lane, bucket, group, target, label, memory.identities.fresh())
    except (QueueGone, LaneSealed):
        # The target was made again, or has other lanes now. The messages are found again at the next look.
        memory.distrust(target.account, target.queue)
        lane.view.schedule(bucket, now.monotonic_ms)
        return []


async def _finish(memory: Memory, lane: Lane, bucket: int, moving: Sequence[int], now: Moment) -> int:
    with begun():
        return await transfer.resume(lane, bucket, moving, _find(memory, now), memory.identities.fresh(), now)


async def _dead_letter_lane(memory: Memory, queue: Queue, rank: Rank, now: Moment) -> Lane | None:
    name = queue.settings.dead_letter_queue
    if name is None:
        return None
    try:
        return memory.lane_for_put(await memory.find_queue(queue.account, name, now), now, rank)
    except (QueueNotFound, InvalidRequest):
        # Not there, or of another kind, which has no place for them.
        return None


def _find(memory: Memory, now: Moment) -> transfer.FindLane:
    async def find(target: transfer.Target, opened: bool) -> Lane | transfer.Apart | None:
        if opened:
            memory.distrust(target.account, target.queue)
        try:
            queue = await memory.find_queue(target.account, target.queue, now)
            if queue.incarnation != target.incarnation:
                # Ours may be the older: the row knows of a queue that was made again since.
                memory.distrust(target.account, target.queue)
                queue = await memory.find_queue(target.account, target.queue, now)
        except QueueNotFound:
            return None
        if queue.incarnation != target.incarnation:
            return None
        apart = _apart(memory, queue)
        if apart is not None or not opened:
            return apart or memory.lane(queue, target.lane)
        return memory.lane_for_put(queue, now, queue.rank_of(target.lane))

    return find


def _apart(memory: Memory, queue: Queue) -> transfer.Apart | None:
    put = memory.put_apart.get(queue.settings.kind)
    return None if put is None else transfer.Apart(queue.account, queue.name, queue.incarnation, partial(put, queue))


def by_bucket(items: Sequence[tuple[int, Candidate]]) -> dict[int, list[Candidate]]:
    groups: dict[int, list[Candidate]] = {}
    for bucket, candidate in items:
        groups.setdefault(bucket, []).append(candidate)
    return groups
