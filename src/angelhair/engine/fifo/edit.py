"""Edit: one conditional write changes the states of many groups of a lane, each by what it is.

An edit is a function from a group's state to the one it should become, or None to leave it. It is asked again with the
state as it is now when somebody else was faster: claims, acks and changes of visibility all are edits. Each is
conditioned on the row's revision, which only grows, so what arrives late is refused. The claim's token tells our own
change, of unknown outcome at first, from somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from angelhair import limits
from angelhair.engine.fifo.epoch import enter
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.state import NONE, State, state_of
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, Refused, RowChange, Span
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable

Edit = Callable[[State], State | None]
EditOutcome = State | StoreError | None
"""The state that a group has now; None when it was left as it was; or why nobody knows, or nothing happened."""


async def edit(
    lane: Lane, edits: Mapping[str, Edit], sure: bool = True, unsure: set[str] | None = None
) -> dict[str, EditOutcome]:
    """Edits these groups. `sure`: that a group is left as it is, is decided by what it is and not by what is
    remembered of it. `unsure` is told of groups for which an earlier try may have landed. Raises `QueueGone`."""
    outcomes: dict[str, EditOutcome] = {}
    fresh: set[str] = set()
    doubtful: set[str] = set() if unsure is None else unsure
    token = lane.identities.fresh()
    error: StoreError = Unavailable("too many servers change the groups of this lane at once")
    for _ in range(limits.EDIT_ROUNDS + len(edits) // limits.CHANGE_ROWS):
        try:
            await enter(lane)
            batch, unread = _prepare(lane, edits, outcomes, fresh if sure else None)
            if unread:
                if await read_states(lane, unread):
                    fresh.update(unread)
                continue
            if not batch:
                break
            await _send(lane, batch, token, outcomes, fresh, doubtful)
        except QueueGone:
            if not doubtful:
                raise
            # What was sent may have landed before that: to say that the queue is gone would deny it.
            error = Unavailable("the queue was deleted meanwhile")
            break
        except StoreError as met:
            error = met
            break
    for group in edits:
        outcomes.setdefault(group, error)
    for group in doubtful:
        if isinstance(said := outcomes[group], Unavailable):
            outcomes[group] = OutcomeUnknown(str(said))
    return outcomes


def _prepare(
    lane: Lane, edits: Mapping[str, Edit], outcomes: dict[str, EditOutcome], fresh: set[str] | None
) -> tuple[list[tuple[str, State, State]], list[str]]:
    """What is to be sent: groups with what they are and what they become. And groups that have to be looked at before
    it can be said that they stay as they are: all that are not in `fresh`, if there is one."""
    view = lane.view
    batch: list[tuple[str, State, State]] = []
    unread: list[str] = []
    for group, wanted in edits.items():
        if group in outcomes or len(batch) >= limits.CHANGE_ROWS:
            continue
        state = view.states.get(group, NONE).settled_below(view.index.first)
        becomes = wanted(state)
        if becomes is not None:
            batch.append((group, state, becomes))
        elif fresh is not None and group not in fresh:
            unread.append(group)
        else:
            outcomes[group] = None
    return batch, unread


async def _send(
    lane: Lane,
    batch: Sequence[tuple[str, State, State]],
    token: str,
    outcomes: dict[str, EditOutcome],
    fresh: set[str],
    doubtful: set[str],
) -> None:
    view = lane.view
    assert view.epoch is not None
    rows = [RowChange(group, {"revision": state.revision}, new.values(token)) for group, state, new in batch]
    flags = {"ready": view.ready, "sealed": None, "deleted": None}
    unsure: set[int] = set()
    (outcome,) = await change_settled(lane.store, [Change(lane.groups(view.epoch), rows, flags)], unsure)
    if unsure:
        doubtful.update(group for group, _, _ in batch)
    if isinstance(outcome, StoreError):
        for group, _, _ in batch:
            outcomes[group] = outcome
            # Whether it is as it was, the next refusal will tell.
            view.states.pop(group, None)
        return
    ours = isinstance(outcome, Applied) or any(
        (row := outcome.rows.get(group, {})).get("claim") == token and row.get("revision") == new.revision
        for group, _, new in batch
    )
    for group, _, new in batch:
        found = new if isinstance(outcome, Applied) else state_of(outcome.rows.get(group, {}))
        remember(lane, group, found)
        fresh.add(group)
        if ours:
            outcomes[group] = new
    if isinstance(outcome, Refused):
        if outcome.flags.get("deleted"):
            raise QueueGone(lane.queue)
        if outcome.flags.get("ready") != view.ready or outcome.flags.get("sealed") is not None:
            view.forget_epoch()
            fresh.clear()


def remember(lane: Lane, group: str, state: State) -> None:
    lane.view.states[group] = state
    lane.view.index.settle_below(group, state.done)


async def read_states(lane: Lane, groups: Sequence[str]) -> bool:
    """Looks at these groups as they are. False when the epoch is over: then nothing is known of any."""
    view = lane.view
    await enter(lane)
    assert view.epoch is not None
    epoch, ready = view.epoch, view.ready
    found = await lane.store.read([Span(lane.groups(epoch), group, group) for group in groups])
    for part in found:
        if part.flags.get("deleted"):
            raise QueueGone(lane.queue)
        if part.flags.get("ready") != ready or part.flags.get("sealed") is not None:
            view.forget_epoch()
            return False
    if view.epoch != epoch:
        return False
    for group, part in zip(groups, found, strict=True):
        _take_newer(lane, group, state_of(part.rows[0].values) if part.rows else NONE)
    return True


def _take_newer(lane: Lane, group: str, state: State) -> None:
    """What was read may be older than what was learned while it was being read."""
    known = lane.view.states.get(group)
    if known is None or (state.revision or 0) >= (known.revision or 0):
        remember(lane, group, state)
