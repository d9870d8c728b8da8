"""Locks: what was served is served no more until its time is over, whoever cuts the slices how (D3, R5, R15).

A lock is a row that names a run of fixed slices; all rows of a block are changed under one version, so a server that
believes in other borders cannot lock what overlaps without seeing it. Of two rows that overlap the later serving
counts: it was made when the earlier one was over. Rows are rewritten and never deleted; a block has as many at most as
it has slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from angelhair.engine.databag.cut import Run
from angelhair.engine.databag.lane import Bag, Lock
from angelhair.engine.databag.passed import Passed
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, Refused, RowChange, Slice, Span, Value, Values
from angelhair.errors import StoreError

ID_BYTES = 8


class Wanted(NamedTuple):
    """A run that is to be served, and what of it."""

    run: Run
    ids: Sequence[int]
    locks: set[Lock | None]
    """What had locked it when it was chosen."""
    passed: Passed
    """What lies before these, and nobody has deleted."""
    left: bool
    """Others are left, or may be."""
    duplicates: int
    """Messages of the serving whose row it takes that had been deleted before that."""


async def load(bag: Bag, blocks: Sequence[int]) -> None:
    slices = await bag.store.read([Span(bag.locks(block)) for block in blocks])
    for block, slice_ in zip(blocks, slices, strict=True):
        see(bag, block, slice_)


def see(bag: Bag, block: int, slice_: Slice) -> None:
    """Takes over a block's locks as they were read. Raises `QueueGone`."""
    if slice_.flags.get("deleted") is not None:
        raise QueueGone("the databag has been deleted")
    # None has been taken as long as there is no version.
    version = _whole(slice_.flags.get("version"))
    view, seen_ms = bag.view.blocks[block], bag.clock.now().monotonic_ms
    if view.version is not None and view.version > version:
        return
    for row in slice_.rows:
        lock = _parse(int(row.key), row.values, seen_ms)
        before = view.locks.get(lock.first)
        if before is not None and before.serving == lock.serving and before.given != lock.given:
            # What was counted of it has gone from the row.
            view.add_lock(replace(before, given=lock.given))
        elif before is None or before.serving < lock.serving:
            view.add_lock(lock)
            bag.view.heard(lock, _served_ms(bag, lock))
    # The flags may be older than the rows: then the next change is refused, and all is read again.
    view.version = version
    view.duplicates = _whole(slice_.flags.get("duplicates"))


def _served_ms(bag: Bag, lock: Lock) -> int:
    """When that was, on our monotonic clock, as far as clocks can be trusted: it is not still to come."""
    now = bag.clock.now()
    return now.monotonic_ms - (max(0, now.wall_ms - lock.served_at_ms) if bag.trusts_clock(now) else 0)


async def take(bag: Bag, wanted: Mapping[int, Sequence[Wanted]], duration_ms: int) -> list[Wanted]:
    """Locks runs, block by block, for so long from now on; those that are ours. What others changed meanwhile is read
    again, and not ours. Raises `QueueGone`."""
    now, served_at_ms = bag.clock.now(), await bag.time_ms()
    changes: dict[int, Change] = {}
    claim = bag.identities.fresh()
    wanted = {block: unserved for block, some in wanted.items() if (unserved := _unserved(bag, block, some))}
    for block, some in wanted.items():
        view = bag.view.blocks[block]
        version = _whole(view.version)
        twice = [_served_twice(each, served_at_ms) for each in some]
        rows = [
            RowChange(each.run.first, {}, _values(each, again, version + 1, claim, served_at_ms, duration_ms))
            for each, again in zip(some, twice, strict=True)
        ]
        counted = sum(each.duplicates for each in some) + sum(map(len, twice))
        changes[block] = Change(
            bag.locks(block), rows, {"version": version or None, "deleted": None},
            {"version": version + 1, "duplicates": view.duplicates + counted},
        )
    outcomes = await change_settled(bag.store, list(changes.values()))
    taken: list[Wanted] = []
    lost: list[int] = []
    failed: StoreError | None = None
    done = bag.clock.now()
    for (block, some), outcome in zip(wanted.items(), outcomes, strict=True):
        view = bag.view.blocks[block]
        if isinstance(outcome, StoreError):
            failed, view.version = outcome, None
        elif isinstance(outcome, Applied) or _is_ours(outcome, claim):
            if isinstance(outcome, Applied):
                _note(bag, block, changes[block], done.monotonic_ms)
            else:
                lost.append(block)
            if done.monotonic_ms - now.monotonic_ms < duration_ms or duration_ms == 0:
                taken += some
        else:
            lost.append(block)
    if lost:
        # What we remember of them is not true any more.
        await load(bag, lost)
    if failed is not None and not taken:
        raise failed
    return taken


def _served_twice(wanted: Wanted, served_at_ms: int) -> set[int]:
    """Those that were given last by a lock that names a time which is not over (D7): a clock is wrong."""
    early = [each for each in wanted.locks if each is not None and each.served_at_ms + each.duration_ms > served_at_ms]
    return {number for number in wanted.ids if any(number in each.given for each in early)}


def _unserved(bag: Bag, block: int, some: Sequence[Wanted]) -> list[Wanted]:
    """Those that nobody has served since they were chosen, as far as we know; and what others know, the condition on
    the version tells."""
    view = bag.view.blocks[block]
    return [] if view.version is None else [each for each in some if view.locks_of(each.run) == each.locks]


def _note(bag: Bag, block: int, change: Change, seen_ms: int) -> None:
    """The block's locks are those that we have sent. While we waited somebody here may have read newer ones."""
    view, version = bag.view.blocks[block], _whole(change.set_flags["version"])
    if view.version is None or view.version < version:
        view.version, view.duplicates = version, _whole(change.set_flags["duplicates"])
    for row in change.rows:
        assert row.values is not None
        lock = _parse(int(row.key), row.values, seen_ms)
        before = view.locks.get(lock.first)
        if before is None or before.serving < lock.serving:
            view.add_lock(lock)


def _is_ours(outcome: Refused, claim: str) -> bool:
    """A try whose answer was lost has locked them."""
    return any(row.get("claim") == claim for row in outcome.rows.values())


def _values(
    wanted: Wanted, twice: set[int], serving: int, claim: str, served_at_ms: int, duration_ms: int
) -> dict[str, Value]:
    return {"last": wanted.run.last, "serving": serving, "claim": claim, "served_at": served_at_ms,
            "duration": duration_ms, "given": packed(wanted.ids), "counted": packed(sorted(twice)) or None,
            "behind": wanted.passed.servings, "front": wanted.passed.front, "back": wanted.passed.back,
            "until": wanted.passed.until, "left": int(wanted.left)}


def packed(numbers: Iterable[int]) -> bytes:
    return b"".join(number.to_bytes(ID_BYTES) for number in numbers)


def _parse(first: int, row: Values, seen_ms: int) -> Lock:
    given = list(given_ids(row.get("given")))
    return Lock(
        first, _whole(row.get("last")), _whole(row.get("serving")), _whole(row.get("served_at")),
        _whole(row.get("duration")), frozenset(given), given[-1] if given else None,
        Passed(_whole(row.get("behind")), *(_id(row.get(name)) for name in ("front", "back", "until"))),
        bool(row.get("left")), seen_ms, frozenset(given_ids(row.get("counted"))),
    )


def given_ids(packed: Value) -> Iterable[int]:
    raw = packed if isinstance(packed, bytes) else b""
    return (int.from_bytes(raw[place : place + ID_BYTES]) for place in range(0, len(raw), ID_BYTES))


def _id(value: Value) -> int | None:
    return value if isinstance(value, int) else None


def _whole(value: Value) -> int:
    return value if isinstance(value, int) else 0
