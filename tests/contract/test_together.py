"""Contract 10: a store that joins makes a change and its writes together, all or none, and then reads."""

from __future__ import annotations

import pytest

from angelhair.engine.store import (
    APPLIED,
    Change,
    JoiningStore,
    Partition,
    Refused,
    Row,
    RowChange,
    Span,
    Store,
    Together,
    Write,
    joining,
)
from tests.contract.tools import GUARDED, PLAIN, all_rows, fresh, insert, rows_of
from tests.contract.worlds import JOINING, WORLDS, World

ROUNDS = 10


def joined(world: World, store: Store) -> JoiningStore | None:
    """The store, where it joins. Which of ours do is no accident."""
    found = joining(store)
    assert world.name not in WORLDS or (found is not None) == (world.name in JOINING)
    return found


def reservation(sequence: Partition, expected: int | None, taken: int) -> Change:
    return Change(sequence, [RowChange(1, {"delivery": expected}, {"delivery": (expected or 0) + taken})])


def bodies(partition: Partition, *keys: int) -> Write:
    return Write(partition, [Row(key, {"body": b"%d" % key, "enqueued_at": key}) for key in keys])


async def test_10_what_is_applied_is_written_and_read(world: World, store: Store) -> None:
    if (store_ := joined(world, store)) is None:
        return
    sequence, first, second, flagged = fresh(GUARDED), fresh(PLAIN), fresh(PLAIN), fresh(GUARDED)
    await insert(store, flagged, {7: {"delivery": 3}})
    assert await store.change([Change(flagged, set_flags={"final": 1})]) == [APPLIED]
    wanted = Together(
        reservation(sequence, None, 3),
        [bodies(first, 0, 1), bodies(second, 2)],
        [Span(flagged), Span(first, 1, 1, None, ("enqueued_at",)), Span(sequence), Span(first, limit=1)],
    )
    outcome, slices = await store_.together(wanted)
    assert outcome == APPLIED
    assert [rows_of(part) for part in slices] == [
        [(7, {"delivery": 3})], [(1, {"enqueued_at": 1})], [(1, {"delivery": 3})],
        [(0, {"body": b"0", "enqueued_at": 0})],
    ]
    assert slices[0].flags["final"] == 1
    assert [part.more for part in slices] == [False, False, False, True]
    assert set(await all_rows(store, first)) == {0, 1}
    assert set(await all_rows(store, second)) == {2}


async def test_10_what_is_refused_writes_nothing_and_says_why(world: World, store: Store) -> None:
    if (store_ := joined(world, store)) is None:
        return
    sequence, plain = fresh(GUARDED), fresh(PLAIN)
    await insert(store, sequence, {1: {"delivery": 5}})
    outcome, slices = await store_.together(
        Together(reservation(sequence, None, 1), [bodies(plain, 0)], [Span(sequence)])
    )
    assert isinstance(outcome, Refused)
    assert outcome.rows[1]["delivery"] == 5
    assert list(slices) == []
    assert await all_rows(store, plain) == {}


async def test_10_of_many_at_once_each_writes_what_it_won(world: World, store: Store) -> None:
    if (store_ := joined(world, store)) is None:
        return
    sequence, plain = fresh(GUARDED), fresh(PLAIN)

    async def contend() -> list[int]:
        won: list[int] = []
        expected: int | None = None
        while len(won) < ROUNDS:
            first = expected or 0
            outcome, _ = await store_.together(
                Together(reservation(sequence, expected, 2), [bodies(plain, first, first + 1)], [])
            )
            if outcome == APPLIED:
                won += (first, first + 1)
                expected = first + 2
            else:
                assert isinstance(outcome, Refused)
                present = outcome.rows[1]["delivery"]
                assert isinstance(present, int)
                expected = present
        return won

    wins = [number for won in await world.together([contend() for _ in range(world.contenders)]) for number in won]
    assert sorted(wins) == list(range(world.contenders * ROUNDS))
    assert sorted(await all_rows(store, plain)) == sorted(wins)


async def test_10_tables_are_not_mixed_here_either(world: World, store: Store) -> None:
    if (store_ := joined(world, store)) is None:
        return
    sequence, plain = fresh(GUARDED), fresh(PLAIN)
    blind_change = Change(plain, [RowChange(1, {}, {"body": b"x"})])
    with pytest.raises(ValueError, match="blind"):
        await store_.together(Together(blind_change, [], []))
    with pytest.raises(ValueError, match="conditional"):
        await store_.together(Together(reservation(sequence, None, 1), [bodies(plain, 1), Write(sequence, [])], []))
    assert await all_rows(store, sequence) == {}
    assert await all_rows(store, plain) == {}
