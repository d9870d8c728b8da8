"""Claim: one conditional write per bucket takes a group of messages for their consumers (A2, A3).

A first delivery is conditioned on the absence of a state row and of the bucket's `final` flag, and on the token of the
bucket's opening, which a dropped bucket has lost; a later one on the row's revision. When a group is refused because
of some rows, the answer says which; they are left out and the rest goes again. The claim's token tells our own claim,
of unknown outcome at first, from somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.lane import Candidate, Lane
from angelhair.engine.making import maker
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, Key, Refused, RowChange, Value, Values
from angelhair.errors import OutcomeUnknown, StoreError

_row_change = maker(RowChange)


class Wish(NamedTuple):
    """A candidate, and for how long its consumer wants it hidden."""

    bucket: int
    candidate: Candidate
    visibility_ms: int


class Claims(NamedTuple):
    won: list[Wish]
    unknown: StoreError | None
    """Some claims may have landed and may yet: their messages are nobody's, and come back after their time-out."""


async def claim(lane: Lane, wishes: Sequence[Wish], token: str, now: Moment) -> Claims:
    """Claims what can be claimed. The rest was taken by others, or its bucket has changed: the view forgets it. That
    somebody looks when their time-outs end has been seen to."""
    pending: dict[tuple[int, str | None], dict[int, Wish]] = {}
    for place, alike in groupby(wishes, lambda wish: (wish.bucket, wish.candidate.opened)):
        pending.setdefault(place, {}).update([(wish.candidate.number, wish) for wish in alike])
    won: list[Wish] = []
    unknown: StoreError | None = None
    for _ in range(limits.CLAIM_ROUNDS):
        groups = [(place, list(rows.values())[: limits.CHANGE_ROWS]) for place, rows in pending.items() if rows]
        if not groups:
            break
        outcomes = await change_settled(
            lane.store, [_change(lane, place[0], rows, token, now) for place, rows in groups]
        )
        for (place, group), outcome in zip(groups, outcomes, strict=True):
            if isinstance(outcome, Applied):
                taken = group
            elif isinstance(outcome, Refused):
                taken = [wish for wish in group if _is_ours(wish, outcome.rows, token)]
                if not _still_open(group, outcome.flags):
                    pending[place].clear()
                    _distrust(lane, place[0], now)
                else:
                    _leave_out_taken(lane, pending[place], group, outcome.rows, now)
            else:
                taken = []
                pending[place].clear()
                _distrust(lane, place[0], now)
                if isinstance(outcome, OutcomeUnknown) or unknown is None:
                    unknown = outcome
            for wish in taken:
                pending[place].pop(wish.candidate.number, None)
            won.extend(taken)
    for (bucket, _), left in pending.items():
        if left:
            _distrust(lane, bucket, now)
    return Claims(won, unknown)


def _change(lane: Lane, bucket: int, group: Sequence[Wish], token: str, now: Moment) -> Change:
    return Change(
        lane.states(bucket),
        _rows(group, token, now),
        expect_flags=_flags_for(group),
    )


def _flags_for(group: Sequence[Wish]) -> Values:
    opened = group[0].candidate.opened
    return {"finished": None} if opened is None else {"opened": opened, "final": None, "finished": None}


def _rows(group: Sequence[Wish], token: str, now: Moment) -> list[RowChange]:
    """What rows have in common is one object: stores tell by that which rows are alike."""
    known: dict[tuple[int | None, int | None, bool, int], tuple[Values, Values]] = {}
    rows = []
    for _, candidate, visibility_ms in group:
        number, delivery, revision, first_delivered_at, *_ = candidate
        kind = (delivery, revision, first_delivered_at is None, visibility_ms)
        alike = known.get(kind)
        if alike is None:
            alike = known[kind] = _expect_and_values(candidate, visibility_ms, token, now)
        rows.append(_row_change((number, *alike)))
    return rows


def _expect_and_values(candidate: Candidate, visibility_ms: int, token: str, now: Moment) -> tuple[Values, Values]:
    expect: Values
    if candidate.delivery is None:
        expect = {"delivery": None}
    else:
        expect = {"revision": candidate.revision, "settled": None}
    values: dict[str, Value] = {
        "delivery": (candidate.delivery or 0) + 1,
        "revision": (candidate.revision or 0) + 1,
        "visible_at": now.wall_ms + visibility_ms,
        "duration": visibility_ms,
        "claim": token,
    }
    if candidate.first_delivered_at is None:
        values["first_delivered_at"] = now.wall_ms
    return expect, values


def _is_ours(wish: Wish, rows: Mapping[Key, Values], token: str) -> bool:
    row = rows.get(wish.candidate.number, {})
    return row.get("claim") == token and row.get("delivery") == (wish.candidate.delivery or 0) + 1


def _still_open(group: Sequence[Wish], flags: Values) -> bool:
    return all(flags.get(name) == value for name, value in _flags_for(group).items())


def _leave_out_taken(
    lane: Lane, pending: dict[int, Wish], group: Sequence[Wish], rows: Mapping[Key, Values], now: Moment
) -> None:
    for wish in group:
        candidate = wish.candidate
        row = rows.get(candidate.number, {})
        if candidate.delivery is None:
            free = row.get("delivery") is None
        else:
            free = row.get("revision") == candidate.revision and row.get("settled") is None
        if not free:
            pending.pop(candidate.number, None)
            if candidate.delivery is None:
                lane.view.others_took_new(wish.bucket)
            else:
                lane.view.others_took_again(wish.bucket, now)


def _distrust(lane: Lane, bucket: int, now: Moment) -> None:
    """What was remembered of the bucket did not hold: look into it again, from the beginning."""
    lane.view.reopen(bucket)
    lane.view.schedule(bucket, now.monotonic_ms)
