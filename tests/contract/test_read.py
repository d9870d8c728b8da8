"""Contract 1: what a read sees; and the shape of spans and slices."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.store import Change, Row, RowChange, Span, Store, Table, Write
from tests.contract.tools import (
    GUARDED,
    GUARDED_BY_NAME,
    INTEGER_MAX,
    INTEGER_MIN,
    PLAIN,
    PLAIN_BY_NAME,
    SMALL,
    all_rows,
    applied,
    flags,
    fresh,
    insert,
    keys_of,
    read,
    rows_of,
    seen,
    write,
)
from tests.contract.worlds import World

INTEGERS = [0, -1, 1, 255, 256, -256, 2**31, -(2**31), 2**53 + 1, INTEGER_MIN, INTEGER_MAX, 42, -43]
STRINGS = ["a", "A", "aa", "b", "10", "9", "é", "ß", "z", "~", "日本", "\U0001f35d", "\uffff", "a\x00b", "a b", "'\""]
THOUSANDS = 3_000


async def test_1_a_partition_that_was_never_written_is_empty(store: Store) -> None:
    for table in (PLAIN, PLAIN_BY_NAME, GUARDED, GUARDED_BY_NAME):
        found = await read(store, Span(fresh(table)))
        assert (seen(found.flags), list(found.rows), found.more) == ({}, [], False)


async def test_1_reads_see_each_confirmed_write_change_and_drop(store: Store) -> None:
    plain, guarded = fresh(PLAIN), fresh(GUARDED)
    for round_number in range(10):
        await write(store, plain, {round_number: {"attributes": "x"}})
        assert keys_of(await read(store, Span(plain))) == list(range(round_number + 1))
        await insert(store, guarded, {round_number: {"delivery": round_number}})
        assert (await all_rows(store, guarded))[round_number] == {"delivery": round_number}
    assert await store.drop([plain, guarded]) == [None, None]
    assert await all_rows(store, plain) == {}
    assert await all_rows(store, guarded) == {}


async def test_1_everyone_reads_their_own_writes_at_the_same_time(store: Store, world: World) -> None:
    partition = fresh(PLAIN)

    async def write_and_look(key: int) -> bool:
        await write(store, partition, {key: {"enqueued_at": key}})
        found = await read(store, Span(partition, key, key))
        return rows_of(found) == [(key, {"enqueued_at": key})]

    assert all(await world.together([write_and_look(key) for key in range(40)]))


@pytest.mark.parametrize("table", [PLAIN, GUARDED], ids=lambda table: table.name)
async def test_1_integer_keys_come_in_the_order_of_numbers(store: Store, table: Table) -> None:
    partition = fresh(table)
    column = "enqueued_at" if table is PLAIN else "delivery"
    rows = {key: {column: 1} for key in INTEGERS}
    await (insert(store, partition, rows) if table.conditional else write(store, partition, rows))
    assert keys_of(await read(store, Span(partition))) == sorted(INTEGERS)
    assert keys_of(await read(store, Span(partition, -256, 256))) == [-256, -43, -1, 0, 1, 42, 255, 256]
    assert keys_of(await read(store, Span(partition, INTEGER_MAX))) == [INTEGER_MAX]
    assert keys_of(await read(store, Span(partition, None, INTEGER_MIN))) == [INTEGER_MIN]


@pytest.mark.parametrize("table", [PLAIN_BY_NAME, GUARDED_BY_NAME], ids=lambda table: table.name)
async def test_1_string_keys_come_in_the_order_of_code_points(store: Store, table: Table) -> None:
    """Which is the order of their UTF-8 bytes, and Python's own."""
    partition = fresh(table)
    column = "patience" if table is PLAIN_BY_NAME else "version"
    rows = {key: {column: 1} for key in STRINGS}
    await (insert(store, partition, rows) if table.conditional else write(store, partition, rows))
    in_order = sorted(rows)
    assert keys_of(await read(store, Span(partition))) == in_order
    assert keys_of(await read(store, Span(partition, "a", "b"))) == [key for key in in_order if "a" <= key <= "b"]


async def test_1_both_ends_of_a_span_belong_to_it(store: Store) -> None:
    partition = fresh(PLAIN)
    await write(store, partition, {key: {"enqueued_at": key} for key in range(0, 100, 10)})
    for first, last, expected in [
        (None, None, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]),
        (20, 40, [20, 30, 40]),
        (21, 39, [30]),
        (None, 10, [0, 10]),
        (80, None, [80, 90]),
        (50, 50, [50]),
        (51, 59, []),
        (60, 20, []),
        (-5, -1, []),
        (1000, None, []),
    ]:
        assert keys_of(await read(store, Span(partition, first, last))) == expected, (first, last)


async def test_1_a_limit_beyond_one_page_brings_every_row_once(store: Store) -> None:
    """Stores that read in pages must not begin anew when a later page could hold all of the limit."""
    partition = fresh(PLAIN)
    rows = 400
    await write(store, partition, {key: {"body": b"x" * 200, "enqueued_at": key} for key in range(rows)})
    for limit in (100, 101, 128, 250, rows - 1, rows + 1):
        for first, last in ((None, None), (0, rows - 1), (10, None), (None, rows - 20)):
            expected = list(range(first or 0, (rows if last is None else last + 1)))[:limit]
            assert keys_of(await read(store, Span(partition, first, last, limit))) == expected, (limit, first, last)


async def test_1_a_limit_takes_the_first_rows_and_says_that_there_may_be_more(store: Store) -> None:
    partition = fresh(PLAIN)
    await write(store, partition, {key: {"enqueued_at": key} for key in range(10)})
    found = await read(store, Span(partition, limit=4))
    assert (keys_of(found), found.more) == ([0, 1, 2, 3], True)
    found = await read(store, Span(partition, 3, 8, limit=2))
    assert (keys_of(found), found.more) == ([3, 4], True)
    found = await read(store, Span(partition, limit=11))
    assert (len(found.rows), found.more) == (10, False)
    found = await read(store, Span(partition, 8, limit=3))
    assert (keys_of(found), found.more) == ([8, 9], False)
    # With exactly as many rows as the limit, `more` may be either: the limit was reached.
    assert keys_of(await read(store, Span(partition, limit=10))) == list(range(10))
    assert (await read(store, Span(partition))).more is False


async def test_1_only_the_wanted_columns_come(store: Store) -> None:
    partition = fresh(GUARDED)
    await applied(
        store,
        Change(
            partition,
            [RowChange(1, {}, {"delivery": 1, "claim": "me", "body": b"text"}), RowChange(2, {}, {"revision": 5})],
            set_flags={"final": 1},
        ),
    )
    found = await read(store, Span(partition, columns=("claim", "delivery")))
    # A row is there even if none of its wanted columns is set, and flags always come along.
    assert rows_of(found) == [(1, {"delivery": 1, "claim": "me"}), (2, {})]
    assert seen(found.flags) == {"final": 1}
    assert all(set(row.values) <= {"claim", "delivery"} for row in found.rows)


async def test_1_a_column_of_bytes_in_a_plain_table_comes_with_its_row(store: Store) -> None:
    """Who reads a part of a row that nobody has confirmed yet may have others see that part alone."""
    partition = fresh(PLAIN)
    assert await store.write([Write(partition, [Row(1, {"enqueued_at": 7, "body": b"text"})])]) == [None]
    with pytest.raises(ValueError, match="'body' is read with its whole row"):
        await read(store, Span(partition, columns=("body", "enqueued_at")))
    found = await read(store, Span(partition, columns=tuple(PLAIN.columns)))
    assert rows_of(found) == [(1, {"enqueued_at": 7, "body": b"text"})]


async def test_1_of_a_small_table_a_read_sees_all_of_a_change_or_nothing(store: Store, world: World) -> None:
    """As large as it may be; whatever part of it is asked for."""
    partition, last, rounds = fresh(SMALL), limits.SMALL_ROWS - 1, 20
    given = bytes(limits.SMALL_BYTES * 3 // 4 // limits.SMALL_ROWS)
    for start in range(0, limits.SMALL_ROWS, 32):
        await insert(store, partition, {key: {"serving": 0, "given": given} for key in range(start, start + 32)})

    async def change() -> None:
        for number in range(1, rounds + 1):
            rows = [RowChange(key, {}, {"serving": number}) for key in (1, 100, 200, last)]
            await applied(store, Change(partition, rows, set_flags={"version": number}))

    async def look() -> list[int]:
        seen_versions: list[int] = []
        while not seen_versions or seen_versions[-1] < rounds:
            whole, part, some = await store.read([
                Span(partition), Span(partition, 1, last, columns=("serving",)), Span(partition, 100, limit=101)
            ])
            assert len(whole.rows) == limits.SMALL_ROWS
            assert (keys_of(part), keys_of(some)) == (list(range(1, last + 1)), list(range(100, 201)))
            assert (whole.more, part.more, some.more) == (False, False, True)
            assert seen(part.rows[5].values) == {"serving": 0}
            for found, keys in ((whole, (1, 100, 200, last)), (part, (1, 100, 200, last)), (some, (100, 200))):
                versions = {row.values["serving"] for row in found.rows if row.key in keys}
                assert versions == {found.flags.get("version") or 0}
                seen_versions.append(found.flags.get("version") or 0)  # type: ignore[arg-type]
        return seen_versions

    await world.together([change(), look(), look()])


async def test_1_flags_come_along_with_any_rows_or_none(store: Store) -> None:
    partition = fresh(GUARDED)
    await applied(store, Change(partition, set_flags={"final": 1, "admitted": 7}))
    assert await flags(store, partition) == {"final": 1, "admitted": 7}
    assert await all_rows(store, partition) == {}
    await insert(store, partition, {5: {"delivery": 1}})
    for span in (Span(partition), Span(partition, 5, 5), Span(partition, 6, 9), Span(partition, limit=1)):
        assert seen((await read(store, span)).flags) == {"final": 1, "admitted": 7}


async def test_1_many_spans_are_answered_in_the_order_they_were_asked(store: Store) -> None:
    partitions = [fresh(table) for table in (PLAIN, PLAIN, PLAIN)]
    guarded = fresh(GUARDED)
    for number, partition in enumerate(partitions):
        await write(store, partition, {key: {"enqueued_at": number} for key in range(number + 1)})
    await insert(store, guarded, {9: {"delivery": 1}})
    first, second, third = partitions
    found = await store.read([Span(third), Span(guarded), Span(first), Span(second, limit=1), Span(third, 1, 1)])
    assert [keys_of(slice_) for slice_ in found] == [[0, 1, 2], [9], [0], [0], [1]]
    assert await store.read([]) == []


async def test_1_thousands_of_rows_come_whole_and_in_order(store: Store) -> None:
    partition = fresh(PLAIN)
    keys = [(number * 7919) % THOUSANDS for number in range(THOUSANDS)]
    for start in range(0, THOUSANDS, 500):
        rows = [Row(key, {"enqueued_at": -key, "body": b"%d" % key}) for key in keys[start : start + 500]]
        assert await store.write([Write(partition, rows)]) == [None]
    found = await read(store, Span(partition))
    assert rows_of(found) == [(key, {"enqueued_at": -key, "body": b"%d" % key}) for key in range(THOUSANDS)]
    assert found.more is False
    found = await read(store, Span(partition, 10, limit=THOUSANDS - 500, columns=("enqueued_at",)))
    assert keys_of(found) == list(range(10, THOUSANDS - 490))
    assert found.more is True
