"""Contract 2, 6, 7, 8 and 9: blind writes, drops, TTL, items that do not touch each other, the store's clock."""

from __future__ import annotations

from array import array

import pytest

from angelhair.engine.packed import LENGTH_BITS, Packed
from angelhair.engine.store import APPLIED, Change, Key, Refused, Row, RowChange, RowsInARow, Span, Store, Values, Write
from tests.contract.tools import (
    GUARDED,
    GUARDED_BY_NAME,
    INTEGER_MAX,
    INTEGER_MIN,
    PLAIN,
    PLAIN_BY_NAME,
    all_rows,
    applied,
    flags,
    fresh,
    insert,
    keys_of,
    read,
    refused,
    write,
)
from tests.contract.worlds import World

MEBIBYTE = 2**20


async def test_2_the_same_rows_again_change_nothing(store: Store) -> None:
    partition = fresh(PLAIN)
    rows = {key: {"body": b"%d" % key, "attributes": f"{key}", "enqueued_at": key} for key in range(20)}
    for _ in range(3):
        await write(store, partition, rows)
        assert await all_rows(store, partition) == rows


async def test_2_rows_in_a_row_are_rows_like_others(store: Store) -> None:
    """A store may take their column as a whole; what is there before and after is the same."""
    partition = fresh(PLAIN)
    before = {key: {"attributes": f"{key}", "enqueued_at": 1, "body": b"old"} for key in (3, 5)}
    await write(store, partition, before)
    bodies = [b"", b"\x00", *(b"body %d" % number for number in range(300))]
    rows = RowsInARow(4, "body", bodies, {"enqueued_at": 7})
    for _ in range(2):
        assert await store.write([Write(partition, rows)]) == [None]
        expected: dict[Key, Values] = {4 + place: {"body": body, "enqueued_at": 7} for place, body in enumerate(bodies)}
        expected = {3: before[3], **expected, 5: {**expected[5], "attributes": "5"}}
        assert await all_rows(store, partition) == expected
    assert list(rows[:2]) == [rows[0], rows[1]] == [
        Row(4, {"body": b"", "enqueued_at": 7}), Row(5, {"body": b"\x00", "enqueued_at": 7})
    ]


@pytest.mark.parametrize(
    "bodies", [[b"", b"\x00", *(b"body %d" % number for number in range(300)), b""], [b"", b""], []],
    ids=["many", "empty ones", "none"],
)
async def test_2_rows_in_a_row_may_be_packed(store: Store, bodies: list[bytes]) -> None:
    """As they lie in memory, with others before and behind them."""
    partition = fresh(PLAIN)
    all_of_them = [b"before", *bodies, b"behind"]
    begins = [sum(map(len, all_of_them[:place])) for place in range(len(all_of_them))]
    pieces = array("q", (begin << LENGTH_BITS | len(body) for begin, body in zip(begins, all_of_them, strict=True)))
    packed = Packed(memoryview(b"".join(all_of_them)), memoryview(pieces), 10)[1:-1]
    assert list(packed) == bodies
    assert await store.write([Write(partition, RowsInARow(4, "body", packed, {"enqueued_at": 7}))]) == [None]
    expected = {4 + place: {"body": body, "enqueued_at": 7} for place, body in enumerate(bodies)}
    assert await all_rows(store, partition) == expected


async def test_2_rows_in_a_row_may_be_of_text_and_leave_gaps(store: Store) -> None:
    partition = fresh(PLAIN)
    rows = RowsInARow(0, "attributes", ["a", None, "c"], {"body": b"x"})
    assert await store.write([Write(partition, rows)]) == [None]
    assert await all_rows(store, partition) == {
        0: {"attributes": "a", "body": b"x"}, 1: {"body": b"x"}, 2: {"attributes": "c", "body": b"x"},
    }
    with pytest.raises(ValueError, match="body"):
        await store.write([Write(partition, RowsInARow(0, "body", [b"a", 7], {}))])


async def test_7_rows_in_a_row_may_have_a_ttl(store: Store, world: World) -> None:
    partition = fresh(PLAIN)
    assert await store.write([Write(partition, RowsInARow(0, "body", [b"a", b"b"], {}), ttl_seconds=2)]) == [None]
    assert len(await all_rows(store, partition)) == 2
    await world.wait(3)
    assert await all_rows(store, partition) == {}


async def test_2_of_two_values_under_one_key_one_stays(store: Store, world: World) -> None:
    partition = fresh(PLAIN)
    bodies = [b"body %d" % number for number in range(8)]
    await world.together([write(store, partition, {1: {"body": body}}) for body in bodies])
    stays = (await all_rows(store, partition))[1]["body"]
    assert stays in bodies
    assert (await all_rows(store, partition))[1]["body"] == stays


async def test_2_columns_that_are_not_named_stay(store: Store) -> None:
    partition = fresh(PLAIN)
    await write(store, partition, {1: {"body": b"one", "enqueued_at": 5}})
    await write(store, partition, {1: {"attributes": "{}"}})
    assert await all_rows(store, partition) == {1: {"body": b"one", "enqueued_at": 5, "attributes": "{}"}}


async def test_2_writing_none_unsets_a_column(store: Store) -> None:
    partition = fresh(PLAIN)
    await write(store, partition, {1: {"body": b"one", "attributes": "{}", "enqueued_at": 5}})
    await write(store, partition, {1: {"body": None, "attributes": None}})
    assert await all_rows(store, partition) == {1: {"enqueued_at": 5}}


async def test_2_every_value_comes_back_as_it_went_in(store: Store) -> None:
    partition = fresh(PLAIN)
    rows = {
        1: {"body": b"", "attributes": "", "enqueued_at": 0},
        2: {"body": bytes(range(256)), "attributes": "\x00 'quoted\" ; -- \U0001f35d", "enqueued_at": INTEGER_MIN},
        3: {"body": b"\x00", "attributes": "null", "enqueued_at": INTEGER_MAX},
        4: {"body": b"12", "attributes": "12", "enqueued_at": -1},
        5: {"enqueued_at": 2**53 + 1},
    }
    await write(store, partition, rows)
    found = await all_rows(store, partition)
    assert found == rows
    assert {type(value) for row in found.values() for value in row.values()} == {bytes, str, int}


async def test_2_empty_is_not_none(store: Store) -> None:
    plain, guarded = fresh(PLAIN), fresh(GUARDED)
    await write(store, plain, {1: {"body": b"", "attributes": "", "enqueued_at": 1}})
    assert (await all_rows(store, plain))[1] == {"body": b"", "attributes": "", "enqueued_at": 1}
    await insert(store, guarded, {1: {"body": b"", "claim": "", "delivery": 0}})
    await refused(store, Change(guarded, [RowChange(1, {"body": None}, {"delivery": 1})]))
    await refused(store, Change(guarded, [RowChange(1, {"claim": None}, {"delivery": 1})]))
    await applied(store, Change(guarded, [RowChange(1, {"body": b"", "claim": "", "delivery": 0}, {"delivery": 1})]))


async def test_2_a_megabyte_fits(store: Store) -> None:
    partition, guarded = fresh(PLAIN), fresh(GUARDED)
    body = bytes(range(256)) * (MEBIBYTE // 256)
    await write(store, partition, {1: {"body": body, "enqueued_at": 1}})
    await write(store, partition, {2: {"attributes": "x" * MEBIBYTE}})
    await insert(store, guarded, {1: {"body": body}})
    assert await all_rows(store, partition) == {
        1: {"body": body, "enqueued_at": 1}, 2: {"attributes": "x" * MEBIBYTE},
    }
    assert await all_rows(store, guarded) == {1: {"body": body}}


async def test_2_many_partitions_and_shapes_in_one_call(store: Store) -> None:
    partitions = [fresh(PLAIN) for _ in range(20)]
    named = fresh(PLAIN_BY_NAME)
    writes = [
        Write(partition, [Row(number, {"body": b"x"}), Row(-number - 1, {"enqueued_at": number, "attributes": "a"})])
        for number, partition in enumerate(partitions)
    ]
    writes.append(Write(named, [Row("slot", {"patience": 3})]))
    assert await store.write(writes) == [None] * 21
    for number, partition in enumerate(partitions):
        assert await all_rows(store, partition) == {
            number: {"body": b"x"}, -number - 1: {"enqueued_at": number, "attributes": "a"},
        }
    assert await all_rows(store, named) == {"slot": {"patience": 3}}
    assert await store.write([]) == []


async def test_2_a_blind_write_to_a_conditional_table_is_a_mistake(store: Store) -> None:
    guarded, plain = fresh(GUARDED_BY_NAME), fresh(PLAIN)
    with pytest.raises(ValueError, match="queues"):
        await store.write([Write(plain, [Row(1, {"body": b"x"})]), Write(guarded, [Row("a", {"version": 1})])])
    assert await all_rows(store, guarded) == {}
    assert await all_rows(store, plain) == {}


async def test_3_a_change_of_a_plain_table_is_a_mistake(store: Store) -> None:
    guarded, plain = fresh(GUARDED), fresh(PLAIN)
    with pytest.raises(ValueError, match="bodies"):
        await store.change(
            [Change(guarded, [RowChange(1, {}, {"delivery": 1})]), Change(plain, [RowChange(1, {}, {"body": b"x"})])]
        )
    assert await all_rows(store, guarded) == {}
    assert await all_rows(store, plain) == {}


async def test_6_a_drop_takes_rows_and_flags_of_its_partition_and_no_other(store: Store) -> None:
    gone, stays, plain_gone, plain_stays = fresh(GUARDED), fresh(GUARDED), fresh(PLAIN), fresh(PLAIN)
    for partition in (gone, stays):
        await insert(store, partition, {key: {"delivery": key} for key in range(50)})
        await applied(store, Change(partition, set_flags={"final": 1, "finished": 2}))
    for partition in (plain_gone, plain_stays):
        await write(store, partition, {key: {"enqueued_at": key} for key in range(50)})
    assert await store.drop([gone, plain_gone]) == [None, None]
    for partition in (gone, plain_gone):
        assert await all_rows(store, partition) == {}
        assert await flags(store, partition) == {}
    assert len(await all_rows(store, stays)) == len(await all_rows(store, plain_stays)) == 50
    assert await flags(store, stays) == {"final": 1, "finished": 2}


async def test_6_dropping_twice_or_what_never_was_is_harmless(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {1: {"delivery": 1}})
    assert await store.drop([partition]) == [None]
    assert await store.drop([partition, fresh(PLAIN), partition]) == [None, None, None]
    assert await store.drop([]) == []
    assert await all_rows(store, partition) == {}


async def test_6_a_dropped_partition_can_be_used_again(store: Store) -> None:
    guarded, plain = fresh(GUARDED), fresh(PLAIN)
    for round_number in range(3):
        await applied(
            store,
            Change(guarded, [RowChange(1, {"delivery": None}, {"delivery": round_number})], {"final": None},
                   {"final": round_number}),
        )
        await write(store, plain, {1: {"enqueued_at": round_number}})
        assert await all_rows(store, guarded) == {1: {"delivery": round_number}}
        assert await flags(store, guarded) == {"final": round_number}
        assert await all_rows(store, plain) == {1: {"enqueued_at": round_number}}
        assert await store.drop([guarded, plain]) == [None, None]
        assert await all_rows(store, guarded) == {}
        assert await all_rows(store, plain) == {}


async def test_7_rows_with_a_ttl_vanish_and_others_and_flags_stay(store: Store, world: World) -> None:
    guarded, plain = fresh(GUARDED), fresh(PLAIN)
    await write(store, plain, {1: {"enqueued_at": 1}}, ttl_seconds=2)
    await write(store, plain, {2: {"enqueued_at": 2}})
    await write(store, plain, {3: {"enqueued_at": 3}}, ttl_seconds=3600)
    mortal = Change(guarded, [RowChange(1, {}, {"delivery": 1, "claim": "x"})], set_flags={"final": 1}, ttl_seconds=2)
    await applied(store, mortal)
    await insert(store, guarded, {2: {"delivery": 2}})
    assert keys_of(await read(store, Span(plain))) == [1, 2, 3]
    assert keys_of(await read(store, Span(guarded))) == [1, 2]
    await world.wait(2)
    assert await all_rows(store, plain) == {2: {"enqueued_at": 2}, 3: {"enqueued_at": 3}}
    assert keys_of(await read(store, Span(plain, limit=1))) == [2]
    assert await all_rows(store, guarded) == {2: {"delivery": 2}}
    assert await flags(store, guarded) == {"final": 1}
    # What has vanished equals None, is not in a refusal, and lends nothing to a row written in its place.
    refusal = await refused(store, Change(guarded, [RowChange(1, {"delivery": 1}, {"delivery": 2})]))
    assert dict(refusal.rows) == {}
    await applied(store, Change(guarded, [RowChange(1, {"delivery": None, "claim": None}, {"delivery": 9})]))
    await write(store, plain, {1: {"attributes": "new"}})
    assert (await all_rows(store, guarded))[1] == {"delivery": 9}
    assert (await all_rows(store, plain))[1] == {"attributes": "new"}


async def test_7_a_run_of_rows_with_a_ttl_vanishes_and_lends_nothing(store: Store, world: World) -> None:
    guarded = fresh(GUARDED)
    expect: Values = {"delivery": None}
    numbers = range(1, 7)

    def run(expect: Values, values: Values, ttl_seconds: int | None = None) -> Change:
        return Change(guarded, [RowChange(number, expect, values) for number in numbers], ttl_seconds=ttl_seconds)

    await applied(store, run(expect, {"delivery": 1, "claim": "x"}, ttl_seconds=2))
    await applied(store, run({"delivery": 1}, {"delivery": 2}, ttl_seconds=2))
    assert keys_of(await read(store, Span(guarded))) == list(numbers)
    await world.wait(2)
    assert await all_rows(store, guarded) == {}
    assert dict((await refused(store, run({"delivery": 2}, {"delivery": 3}))).rows) == {}
    await applied(store, run({"delivery": None, "claim": None}, {"delivery": 9}))
    assert await all_rows(store, guarded) == {number: {"delivery": 9} for number in numbers}


async def test_7_a_row_written_again_whole_lives_by_its_last_ttl(store: Store, world: World) -> None:
    guarded, plain = fresh(GUARDED), fresh(PLAIN)
    for ttl_seconds in (2, 3600):
        await write(store, plain, {1: {"enqueued_at": 1}, 2: {"enqueued_at": 1}}, ttl_seconds)
        await applied(store, Change(guarded, [RowChange(1, {}, {"delivery": 1})], ttl_seconds=ttl_seconds))
    await write(store, plain, {2: {"enqueued_at": 1}})
    await world.wait(2)
    assert keys_of(await read(store, Span(plain))) == [1, 2]
    assert keys_of(await read(store, Span(guarded))) == [1]


async def test_8_one_refused_item_leaves_the_others_alone(store: Store) -> None:
    partitions = [fresh(GUARDED) for _ in range(12)]
    await insert(store, partitions[5], {0: {"delivery": 99}})
    outcomes = await store.change(
        [
            Change(partition, [RowChange(0, {"delivery": None}, {"delivery": number})], set_flags={"final": number})
            for number, partition in enumerate(partitions)
        ]
    )
    assert [outcome == APPLIED for outcome in outcomes] == [number != 5 for number in range(12)]
    assert isinstance(outcomes[5], Refused)
    for number, partition in enumerate(partitions):
        assert await all_rows(store, partition) == {0: {"delivery": 99 if number == 5 else number}}
        assert await flags(store, partition) == ({} if number == 5 else {"final": number})


async def test_8_items_of_one_partition_in_one_call_each_have_their_own_outcome(store: Store) -> None:
    partition = fresh(GUARDED)
    await insert(store, partition, {2: {"delivery": 1}})
    outcomes = await store.change(
        [Change(partition, [RowChange(key, {"delivery": None}, {"delivery": 5})]) for key in (1, 2, 3)]
    )
    assert [isinstance(outcome, Refused) for outcome in outcomes] == [False, True, False]
    assert await all_rows(store, partition) == {1: {"delivery": 5}, 2: {"delivery": 1}, 3: {"delivery": 5}}
    assert await store.change([]) == []


async def test_9_the_store_has_a_clock_that_runs(store: Store, world: World) -> None:
    before_ms = await store.time_ms()
    assert type(before_ms) is int
    await world.wait(1)
    assert await store.time_ms() - before_ms >= 1000
