"""Epochs: the states of a lane's groups move to a new partition now and then.

A group's row stays when its messages are long gone, and rows that are deleted one by one would be tombstones for every
reader. So the partition is sealed, what still matters is copied to the next one, that is made ready, the mark `epoch`
follows, and the old one is dropped whole. Every step is conditional, and anybody may go on where somebody stopped.

    sealed   nothing changes here any more; claims, acks and changes are conditioned on its absence
    ready    a token, which all of them are conditioned on too. A partition that was dropped has lost it, and none is
             ever sent twice: who slept through an epoch, or through several, is refused

Who enters an epoch reads the token first and the mark after that: a mark that still names this epoch says that the
partition had not been dropped when the token was read. And it forgets what lies below the mark `repair`: rows that
speak of nothing else were left behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.engine.fifo.lane import Lane, marks_of, read_marks
from angelhair.engine.fifo.state import State, state_of
from angelhair.engine.marks import QueueGone, raise_mark
from angelhair.engine.settling import change_one, expect_decided
from angelhair.engine.store import Applied, Change, Refused, Row, RowChange, Span
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable


async def enter(lane: Lane) -> None:
    """Knows which epoch is in force, and most of its rows. Raises `QueueGone`."""
    if lane.view.epoch is None:
        await look(lane)


async def look(lane: Lane) -> None:
    """Reads the groups as they are, a bounded number of them."""
    view = lane.view
    epoch = view.epoch
    if epoch is None:
        epoch = (await read_marks(lane)).epoch
    for _ in range(limits.RECEIVE_ROUNDS):
        began = lane.clock.now()
        (found,) = await lane.store.read([Span(lane.groups(epoch), limit=limits.EPOCH_READ_ROWS)])
        if found.flags.get("deleted"):
            raise QueueGone(lane.queue)
        sequence, pointers = await lane.store.read([Span(lane.sequence), Span(lane.pointers)])
        marks = marks_of(lane, sequence, pointers)
        ready = found.flags.get("ready")
        if marks.epoch != epoch:
            epoch = marks.epoch
            continue
        if found.flags.get("sealed") is not None:
            await turn_over(lane, epoch)
            epoch = (await read_marks(lane)).epoch
            continue
        if not isinstance(ready, str):
            raise QueueGone(lane.queue)
        if view.epoch != epoch or view.ready != ready:
            view.states = {}
        view.epoch, view.ready, view.rows, view.read_ms = epoch, ready, len(found.rows), began.monotonic_ms
        for row in found.rows:
            state, known = state_of(row.values), view.states.get(str(row.key))
            # Another verb of this server may have changed it while it was being read.
            if known is None or (state.revision or 0) >= (known.revision or 0):
                view.states[str(row.key)] = state
                view.index.settle_below(str(row.key), state.done)
        return
    raise Unavailable("the groups of this lane are being moved to another partition")


def worn(lane: Lane) -> bool:
    """Whether so many rows no longer matter that the rest should move."""
    view = lane.view
    if view.epoch is None or len(view.states) < limits.EPOCH_ROWS:
        return False
    low = view.index.first
    return sum(not _matters(state, low) for state in view.states.values()) >= limits.EPOCH_ROWS


def _matters(state: State, low: int) -> bool:
    """Whether a row says more than that all below `low` is settled."""
    return bool(state.touched) or state.done > low


async def turn_over(lane: Lane, epoch: int) -> None:
    """From this epoch to the next. What somebody else has done of it already is not done again."""
    sealing = Change(lane.groups(epoch), expect_flags={"sealed": None, "deleted": None}, set_flags={"sealed": 1})
    outcome = expect_decided(await change_one(lane.store, sealing))
    if isinstance(outcome, Refused) and outcome.flags.get("deleted"):
        raise QueueGone(lane.queue)
    # After it was sealed: what lies below the mark then is settled, whatever the rows say.
    marks = await read_marks(lane)
    if marks.epoch != epoch:
        return
    low = lane.first_of(marks.repair)
    after: str | None = None
    while True:
        (found,) = await lane.store.read([Span(lane.groups(epoch), after, None, limits.CHANGE_ROWS + 1)])
        rows = [row for row in found.rows if row.key != after]
        if not await _copy(lane, epoch + 1, [row for row in rows if _matters(state_of(row.values), low)]):
            break
        if not found.more:
            await _make_ready(lane, epoch + 1)
            break
        after = str(rows[-1].key)
    await raise_mark(lane, "epoch", epoch, epoch + 1)
    lane.view.forget_epoch()


async def _copy(lane: Lane, epoch: int, rows: Sequence[Row]) -> bool:
    """False when the epoch is ready already: then somebody else has copied everything."""
    flags = {"ready": None, "deleted": None}
    left = list(rows)
    while left:
        changes = [RowChange(row.key, {"revision": None}, row.values) for row in left[: limits.CHANGE_ROWS]]
        outcome = expect_decided(await change_one(lane.store, Change(lane.groups(epoch), changes, flags)))
        if isinstance(outcome, Applied):
            left = left[len(changes) :]
            continue
        assert isinstance(outcome, Refused)
        if outcome.flags.get("deleted"):
            raise QueueGone(lane.queue)
        if outcome.flags.get("ready") is not None:
            return False
        # A sealed row is the same whoever copies it.
        left = [row for row in left if row.key not in outcome.rows]
    return True


async def _make_ready(lane: Lane, epoch: int) -> None:
    for _ in range(limits.OPEN_ROUNDS):
        (outcome,) = await lane.store.change(
            [
                Change(
                    lane.groups(epoch),
                    expect_flags={"ready": None, "deleted": None},
                    set_flags={"ready": lane.identities.fresh()},
                )
            ]
        )
        if isinstance(outcome, Applied):
            return
        if isinstance(outcome, Refused):
            if outcome.flags.get("deleted"):
                raise QueueGone(lane.queue)
            return
        if not isinstance(outcome, OutcomeUnknown):
            raise outcome
        # Not the same again: a copy that lands after the epoch was dropped must have a token that nobody knows.
    raise Unavailable("the next epoch could not be made ready")


async def drop_old(lane: Lane, epoch: int, dropped: int) -> bool:
    """Epochs before the one in force go whole. True when there may be more."""
    last = min(epoch, dropped + limits.DROP_BUCKETS)
    if dropped >= last:
        return False
    outcomes = await lane.store.drop([lane.groups(old) for old in range(dropped, last)])
    if any(isinstance(outcome, StoreError) for outcome in outcomes):
        return False
    return await raise_mark(lane, "epoch_dropped", dropped, last)
