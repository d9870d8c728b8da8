"""Contract 3 and 4: conditional changes, all or none, and what a refusal tells."""

from __future__ import annotations

import pytest

from angelhair.engine.store import APPLIED, Change, Refused, RowChange, Store, Values
from tests.contract.tools import (
    GUARDED,
    GUARDED_BY_NAME,
    all_rows,
    applied,
    flags,
    fresh,
    insert,
    refused,
    seen,
)
from tests.contract.worlds import World

MANY = 500


async def test_3_a_change_is_applied_when_what_it_expects_is_there(store: Store) -> None:
    partition = fresh(GUARDED)
    await applied(store, Change(partition, [RowChange(1, {"delivery": None}, {"delivery": 1, "claim": "a"})]))
    await applied(store, Change(partition, [RowChange(1, {"delivery": 1, "claim": "a"}, {"delivery": 2})]))
    assert await all_rows(store, partition) == {1: {"delivery": 2, "claim": "a"}}
    await refused(store, Change(partition, [RowChange(1, {"delivery": 1}, {"delivery": 3})]))
    assert await all_rows(store, partition) == {1: {"delivery": 2, "claim": "a"}}


async def test_3_string_keys_and_all_types_can_be_expected(store: Store) -> None:
    partition = fresh(GUARDED_BY_NAME)
    values = {"secret": b"\x00\xff", "settings": "{}", "version": -5}
    await applied(store, Change(partition, [RowChange("näme", {"version": None}, values)]))
    for column, other in [("secret", b"\x00\xfe"), ("settings", "{ }"), ("version", 5)]:
        await refused(store, Change(partition, [RowChange("näme", {column: other}, {"version": 0})]))
        await refused(store, Change(partition, [RowChange("näme", {column: None}, {"version": 0})]))
    await applied(store, Change(partition, [RowChange("näme", values, {"version": -4})]))
    assert await all_rows(store, partition) == {"näme": {**values, "version": -4}}


async def test_3_every_column_of_an_absent_row_equals_none(store: Store) -> None:
    partition = fresh(GUARDED)
    nothing: Values = dict.fromkeys(GUARDED.columns)
    await applied(store, Change(partition, [RowChange(1, nothing, {"delivery": 1})]))
    await refused(store, Change(partition, [RowChange(1, nothing, {"delivery": 2})]))
    await refused(store, Change(partition, [RowChange(2, {"delivery": 0}, {"delivery": 2})]))
    # A column that was never set equals None in a row that is there, too.
    unset: Values = {"delivery": 1, "claim": None, "body": None}
    await applied(store, Change(partition, [RowChange(1, unset, {"claim": "x"})]))
    assert await all_rows(store, partition) == {1: {"delivery": 1, "claim": "x"}}


async def test_3_without_expectations_it_is_applied_whatever_is_there(store: Store) -> None:
    partition = fresh(GUARDED)
    for delivery in (1, 2):
        await applied(store, Change(partition, [RowChange(1, {}, {"delivery": delivery})]))
        assert await all_rows(store, partition) == {1: {"delivery": delivery}}


async def test_3_setting_none_unsets_a_column(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {1: {"delivery": 1, "claim": "a", "body": b"b"}})
    await applied(store, Change(partition, [RowChange(1, {"claim": "a"}, {"claim": None, "body": None})]))
    assert await all_rows(store, partition) == {1: {"delivery": 1}}
    await applied(store, Change(partition, [RowChange(1, {"claim": None, "body": None}, {"delivery": 2})]))


@pytest.mark.parametrize("wrong", [0, MANY // 2, MANY - 1, None])
async def test_3_all_or_none_of_many_rows(store: Store, wrong: int | None) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {key: {"delivery": 1} for key in range(0, MANY, 2)})
    before = await all_rows(store, partition)
    change = Change(
        partition,
        [
            RowChange(key, {"delivery": 7 if key == wrong else (1 if key % 2 == 0 else None)}, {"delivery": 2})
            for key in range(MANY)
        ],
        expect_flags={"finished": None},
        set_flags={"admitted": MANY},
    )
    if wrong is None:
        await applied(store, change)
        assert await all_rows(store, partition) == {key: {"delivery": 2} for key in range(MANY)}
        assert await flags(store, partition) == {"admitted": MANY}
    else:
        await refused(store, change)
        assert await all_rows(store, partition) == before
        assert await flags(store, partition) == {}


async def test_3_one_change_may_insert_update_delete_and_test_different_rows(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {1: {"delivery": 1}, 2: {"delivery": 2, "claim": "x"}, 3: {"revision": 3}})
    change = Change(
        partition,
        [
            RowChange(0, {"delivery": None}, {"delivery": 10}),
            RowChange(1, {"delivery": 1}, {"delivery": 11, "settled": "acked"}),
            RowChange(2, {"claim": "x"}, None),
            RowChange(3, {"revision": 3}, {}),
            RowChange(4, {}, {"body": b"blind"}),
        ],
        expect_flags={"finished": None, "final": None},
        set_flags={"final": 1},
    )
    await applied(store, change)
    expected = {
        0: {"delivery": 10}, 1: {"delivery": 11, "settled": "acked"}, 3: {"revision": 3}, 4: {"body": b"blind"},
    }
    assert await all_rows(store, partition) == expected
    await refused(store, change)
    assert await all_rows(store, partition) == expected


async def test_3_flags_alone_can_be_expected_and_set(store: Store) -> None:
    partition = fresh(GUARDED)
    await applied(store, Change(partition, (), {"final": None}, {"final": 1}))
    await refused(store, Change(partition, (), {"final": None}, {"final": 2}))
    await refused(store, Change(partition, (), {"final": 2}, {"final": 3}))
    await applied(store, Change(partition, (), {"final": 1, "finished": None}, {"finished": 5}))
    assert await flags(store, partition) == {"final": 1, "finished": 5}
    await applied(store, Change(partition, (), {"finished": 5}, {"finished": None}))
    assert await flags(store, partition) == {"final": 1}


async def test_3_a_flag_guards_rows(store: Store) -> None:
    partition = fresh(GUARDED)
    claim = Change(partition, [RowChange(1, {"delivery": None}, {"delivery": 1})], {"finished": None})
    await applied(store, Change(partition, set_flags={"finished": 1}))
    await refused(store, claim)
    assert await all_rows(store, partition) == {}
    await applied(store, Change(partition, set_flags={"finished": None}))
    await applied(store, claim)


async def test_3_a_change_without_effects_just_tests(store: Store) -> None:
    partition = fresh(GUARDED)
    await applied(store, Change(partition, [RowChange(1, {"delivery": None}, {})]))
    assert await all_rows(store, partition) == {}
    await insert(store, partition, {1: {"delivery": 1}})
    await applied(store, Change(partition, [RowChange(1, {"delivery": 1}, {}), RowChange(2, {"delivery": None}, {})]))
    await refused(store, Change(partition, [RowChange(1, {"delivery": 1}, {}), RowChange(2, {"delivery": 1}, {})]))
    await applied(store, Change(partition, expect_flags={"final": None}))
    await refused(store, Change(partition, expect_flags={"final": 1}))
    assert await all_rows(store, partition) == {1: {"delivery": 1}}
    assert await flags(store, partition) == {}


async def test_3_a_deleted_row_is_absent_and_can_be_inserted_again(store: Store) -> None:
    partition = fresh(GUARDED)
    for round_number in range(3):
        await applied(
            store, Change(partition, [RowChange(1, {"delivery": None, "claim": None}, {"delivery": round_number})])
        )
        await applied(store, Change(partition, [RowChange(1, {"delivery": round_number}, {"claim": "x"})]))
        await refused(store, Change(partition, [RowChange(1, {"claim": "y"}, None)]))
        await applied(store, Change(partition, [RowChange(1, {"claim": "x"}, None)]))
        assert await all_rows(store, partition) == {}
    # Deleting what is not there is as good as done.
    await applied(store, Change(partition, [RowChange(1, {"delivery": None}, None), RowChange(2, {}, None)]))


async def test_3_many_deletes_in_one_change(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {key: {"delivery": key} for key in range(100)})
    await applied(store, Change(partition, [RowChange(key, {"delivery": key}, None) for key in range(0, 100, 2)]))
    assert await all_rows(store, partition) == {key: {"delivery": key} for key in range(1, 100, 2)}


async def test_3_of_many_at_once_exactly_one_wins_each_version(store: Store, world: World) -> None:
    """A change of unknown outcome may have won or not; but no version is ever won twice."""
    partition = fresh(GUARDED)
    rounds = 5
    wins: list[int] = []
    unknown: list[int] = []

    async def contend() -> None:
        for _ in range(rounds):
            version = (await all_rows(store, partition)).get(1, {}).get("delivery")
            following = 1 if version is None else int(str(version)) + 1
            (outcome,) = await store.change(
                [Change(partition, [RowChange(1, {"delivery": version}, {"delivery": following})])]
            )
            if outcome == APPLIED:
                wins.append(following)
            elif not isinstance(outcome, Refused):
                unknown.append(following)

    await world.together([contend() for _ in range(world.contenders)])
    assert len(wins) == len(set(wins))
    last = (await all_rows(store, partition))[1]["delivery"]
    assert set(wins) <= set(range(1, int(str(last)) + 1))
    assert set(range(1, int(str(last)) + 1)) <= {*wins, *unknown}
    assert wins or unknown


async def test_3_no_change_comes_between_a_test_and_its_effect(store: Store, world: World) -> None:
    """Each takes a token that only one may hold, in a row that only its holder counts up."""
    partition = fresh(GUARDED)

    async def take(name: str) -> bool:
        (outcome,) = await store.change(
            [Change(partition, [RowChange(1, {"claim": None}, {"claim": name}), RowChange(2, {}, {"settled": name})])]
        )
        return outcome == APPLIED

    names = [f"contender {number}" for number in range(world.contenders)]
    taken = await world.together([take(name) for name in names])
    assert sum(taken) <= 1
    rows = await all_rows(store, partition)
    assert rows[1]["claim"] == rows[2]["settled"]
    if any(taken):
        assert rows[1]["claim"] == names[taken.index(True)]


async def test_4_a_refusal_shows_the_named_rows_whole_and_the_flags(store: Store) -> None:
    partition = fresh(GUARDED)
    rows = {
        1: {"delivery": 1, "claim": "mine", "visible_at": 77, "body": b"changed"},
        2: {"delivery": 2},
        3: {"delivery": 3},
    }
    await insert(store, partition, rows)
    await applied(store, Change(partition, set_flags={"final": 1}))
    refusal = await refused(
        store,
        Change(
            partition,
            [
                RowChange(1, {"delivery": 1}, {"delivery": 2}),
                RowChange(2, {"delivery": 1}, {"delivery": 2}),
                RowChange(4, {"delivery": 1}, None),
            ],
            expect_flags={"finished": None},
        ),
    )
    assert {key: seen(values) for key, values in refusal.rows.items()} == {1: rows[1], 2: rows[2]}
    assert seen(refusal.flags) == {"final": 1}
    assert await all_rows(store, partition) == rows


async def test_4_a_refusal_by_a_flag_shows_the_rows_too(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {1: {"delivery": 1}})
    await applied(store, Change(partition, set_flags={"finished": 1, "finished_at": 2}))
    refusal = await refused(
        store,
        Change(partition, [RowChange(1, {"delivery": 1}, {"delivery": 2}), RowChange(2, {}, {})], {"finished": None}),
    )
    assert {key: seen(values) for key, values in refusal.rows.items()} == {1: {"delivery": 1}}
    assert seen(refusal.flags) == {"finished": 1, "finished_at": 2}


async def test_4_a_refusal_of_flags_alone_has_no_rows(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {1: {"delivery": 1}})
    refusal = await refused(store, Change(partition, (), {"final": 1}, {"final": 2}))
    assert dict(refusal.rows) == {}
    assert seen(refusal.flags) == {}


async def test_4_a_table_without_flags_is_refused_without_flags(store: Store) -> None:
    partition = fresh(GUARDED_BY_NAME)
    await insert(store, partition, {"a": {"version": 1, "settings": "s"}})
    refusal = await refused(store, Change(partition, [RowChange("a", {"version": 2}, {"version": 3})]))
    assert {key: seen(values) for key, values in refusal.rows.items()} == {"a": {"version": 1, "settings": "s"}}
    assert seen(refusal.flags) == {}


async def test_4_a_refusal_of_many_rows_shows_them_all(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {key: {"delivery": key} for key in range(MANY)})
    refusal = await refused(
        store,
        Change(partition, [RowChange(key, {"delivery": key if key else 1}, {"delivery": 0}) for key in range(MANY)]),
    )
    assert {key: seen(values) for key, values in refusal.rows.items()} == {
        key: {"delivery": key} for key in range(MANY)
    }
