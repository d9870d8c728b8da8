"""What Cassandra does to a queue, row by row of docs/cassandra.md. Each test would fail the naive way, and where that
can be shown on the same cluster, it is."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import ResponseFuture
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from angelhair import limits
from angelhair.engine.schema import BAG_LOCKS, BODIES, SEQUENCES, STATES
from angelhair.engine.store import APPLIED, Change, Partition, Refused, Row, RowChange, Span, Write
from angelhair.errors import StoreError
from cluster.testing import World

MICROSECONDS = 1_000_000


def test_row_07_a_table_is_written_one_way_only(world: World, place: str) -> None:
    async def test() -> None:
        with pytest.raises(ValueError, match="only changed conditionally"):
            await world.store.write([Write(Partition(STATES, place), [Row(1, {"delivery": 1})])])
        with pytest.raises(ValueError, match="only written blindly"):
            await world.store.change([Change(Partition(BODIES, place), [RowChange(1, {}, {"body": b""})])])
        # The naive way: a blind insert by a clock that is 5 s ahead survives a conditional delete that "was applied".
        session = world.store._bridge._session
        table = f'"{world.keyspace}".sequences'
        ahead = int((time.time() + 5) * MICROSECONDS)
        row = f"(partition, key, next) VALUES ('{place}', 'x', 1)"
        session.execute(f"INSERT INTO {table} {row} USING TIMESTAMP {ahead}")
        deleted = session.execute(f"DELETE FROM {table} WHERE partition = '{place}' AND key = 'x' IF next = 1").one()
        assert deleted[0] is True
        (found,) = await world.store.read([Span(Partition(SEQUENCES, place))])
        assert found.rows == [Row("x", {"next": 1})]

    world.run(test)


def test_row_08_a_drop_reaches_cells_of_the_future(world: World, place: str) -> None:
    async def test() -> None:
        session = world.store._bridge._session
        table = f'"{world.keyspace}".bodies'
        ahead = int((time.time() + 60) * MICROSECONDS)
        future = Partition(BODIES, place)
        session.execute(
            f"UPDATE {table} USING TIMESTAMP {ahead} SET body = 0x01, written = true "
            f"WHERE partition = '{place}' AND key = 1"
        )
        session.execute(f"DELETE FROM {table} WHERE partition = '{place}'")
        assert len((await world.store.read([Span(future)]))[0].rows) == 1, "the naive delete does nothing"
        assert await world.store.drop([future]) == [None]
        assert (await world.store.read([Span(future)]))[0].rows == []

    world.run(test)


def test_row_08_the_store_tells_its_clock(world: World) -> None:
    async def test() -> None:
        before_ms = time.time() * 1000
        store_ms = await world.store.time_ms()
        assert before_ms - 1 <= store_ms <= time.time() * 1000 + 1

    world.run(test)


def test_row_11_of_many_writers_exactly_one_wins_each_version(world: World, place: str) -> None:
    writers, rounds = 8, 12
    counter = Partition(SEQUENCES, place)

    unclear = 0

    async def write(store: object, name: str) -> int:
        nonlocal unclear
        won = 0
        for attempt in range(rounds):
            (slice_,) = await world.store.read([Span(counter)])
            seen = slice_.rows[0].values if slice_.rows else {}
            following = {"next": int(seen.get("next") or 0) + 1, "attempt": f"{name}/{attempt}"}
            change = Change(counter, [RowChange("row", {"next": seen.get("next")}, following)])
            (outcome,) = await store.change([change])  # type: ignore[attr-defined]
            while isinstance(outcome, StoreError):
                (outcome,) = await store.change([change])  # type: ignore[attr-defined]
                if isinstance(outcome, Refused) and outcome.rows["row"].get("attempt") == following["attempt"]:
                    outcome = APPLIED  # an earlier try had landed
                elif isinstance(outcome, Refused):
                    unclear += 1  # it may have landed, and been followed by the next version before we asked again
            won += outcome is APPLIED
        return won

    async def test() -> None:
        async with world.another() as second:
            stores = [world.store, second] * (writers // 2)
            won = await asyncio.gather(*(write(store, str(number)) for number, store in enumerate(stores)))
        (slice_,) = await world.store.read([Span(counter)])
        assert sum(won) <= slice_.rows[0].values["next"] <= sum(won) + unclear
        assert 0 < sum(won) < writers * rounds, "nobody was ever refused: there was no contention to speak of"

    world.run(test)


def test_row_12_large_writes_are_cut_to_what_a_node_takes(world: World, place: str) -> None:
    async def test() -> None:
        rows = [Row(number, {"body": bytes([number]) * 50_000}) for number in range(100)]
        large = Partition(BODIES, place)
        assert await world.store.write([Write(large, rows)]) == [None]
        (slice_,) = await world.store.read([Span(large)])
        assert slice_.rows == rows
        # The naive way: the same amount over several partitions in one batch is refused beyond 50 KiB.
        statement = world.store._bridge._session.prepare(
            f'UPDATE "{world.keyspace}".bodies SET body = ? WHERE partition = ? AND key = ?'
        )
        batch = BatchStatement(BatchType.UNLOGGED)
        for number in range(4):
            batch.add(statement, (bytes(50_000), f"{place}/{number}", 1))
        with pytest.raises(InvalidRequest, match="Batch too large"):
            world.store._bridge._session.execute(batch)

    world.run(test)


def test_rows_12_and_16_five_hundred_rows_are_one_conditional_write(world: World, place: str) -> None:
    async def test() -> None:
        bucket = Partition(STATES, place)
        requests: list[object] = []
        session = world.store._bridge._session

        def claim(delivery: int) -> Change:
            seen, claimed = {"delivery": delivery - 1 or None}, {"delivery": delivery, "claim": "a server"}
            rows = [RowChange(number, seen, claimed) for number in range(500)]
            return Change(bucket, rows, expect_flags={"finished": None})

        assert await world.store.change([claim(1)]) == [APPLIED]
        session.add_request_init_listener(requests.append)
        try:
            assert await world.store.change([claim(2)]) == [APPLIED]
        finally:
            session.remove_request_init_listener(requests.append)
        assert len(requests) == 1
        (slice_,) = await world.store.read([Span(bucket)])
        assert [row.values["delivery"] for row in slice_.rows] == [2] * 500

    world.run(test)


TRACES = 20
"""Nodes write their traces in the background, and a busy one leaves events out: the read is traced again."""


def tombstones_met(world: World, table: str, partition: str) -> int:
    """How many a read of the partition had to step over, as the nodes themselves trace it."""
    query = SimpleStatement(f'SELECT key FROM "{world.keyspace}".{table} WHERE partition = \'{partition}\'')
    for _ in range(TRACES):
        trace = world.store._bridge._session.execute(query, trace=True).get_query_trace(max_wait_sec=20)
        counts = [
            int(event.description.split(" tombstone")[0].rsplit(" ", 1)[1])
            for event in trace.events
            if " tombstone cells" in event.description
        ]
        if counts:
            return max(counts)
    raise AssertionError("the traces say nothing of tombstones: has their wording changed?")


def test_row_13_a_dropped_partition_leaves_nothing_to_step_over(world: World, place: str) -> None:
    async def test() -> None:
        dropped, deleted = Partition(BODIES, f"{place}/dropped"), f"{place}/deleted"
        rows = [Row(number, {"body": b"a body", "enqueued_at": number}) for number in range(10_000)]
        assert await world.store.write([Write(dropped, rows)]) == [None]
        assert await world.store.drop([dropped]) == [None]
        (slice_,) = await world.store.read([Span(dropped)])
        assert slice_.rows == []
        assert tombstones_met(world, "bodies", dropped.key) == 0
        # The naive way: row by row.
        session = world.store._bridge._session
        statement = session.prepare(f'DELETE FROM "{world.keyspace}".bodies WHERE partition = ? AND key = ?')
        batch = BatchStatement(BatchType.UNLOGGED)
        for number in range(1_000):
            batch.add(statement, (deleted, number))
        session.execute(batch)
        assert tombstones_met(world, "bodies", deleted) == 1_000

    world.run(test)


def test_row_13_a_drop_covers_what_was_there_and_nothing_that_follows(world: World, place: str) -> None:
    async def test() -> None:
        bucket = Partition(STATES, place)
        claim = Change(bucket, [RowChange(1, {"delivery": None}, {"delivery": 1})], set_flags={"final": 1})
        for _ in range(3):
            assert await world.store.change([claim]) == [APPLIED]
            (slice_,) = await world.store.read([Span(bucket)])
            assert (slice_.flags, slice_.rows) == ({"final": 1}, [Row(1, {"delivery": 1})])
            assert await world.store.drop([bucket]) == [None]
            assert await world.store.drop([bucket]) == [None]
            (slice_,) = await world.store.read([Span(bucket)])
            assert (slice_.flags, slice_.rows) == ({}, [])

    world.run(test)


def test_row_17_small_packets_do_not_wait(world: World) -> None:
    pools = list(world.store._bridge._session._pools.values())
    connections = [connection for pool in pools for connection in pool.get_connections()]
    assert len(connections) >= world.cluster.size
    for connection in connections:
        assert connection._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_flags_come_along_when_no_row_matches(world: World, place: str) -> None:
    async def test() -> None:
        bucket = Partition(STATES, place)
        await world.store.change([Change(bucket, set_flags={"final": 7})])
        for span in (Span(bucket), Span(bucket, 1, 5), Span(bucket, 3, 3), Span(bucket, 1), Span(bucket, None, 9, 2)):
            assert await world.store.read([span]) == [({"final": 7}, [], False)]
        await world.store.change([Change(bucket, [RowChange(100, {}, {"delivery": 1})])])
        assert await world.store.read([Span(bucket, 1, 5)]) == [({"final": 7}, [], False)]
        (outcome,) = await world.store.change([Change(bucket, [RowChange(5, {"delivery": 1}, {"delivery": 2})])])
        assert outcome == Refused({"final": 7}, {})

    world.run(test)


def test_pages_follow_the_size_of_what_they_carry(world: World, place: str) -> None:
    async def test() -> None:
        bucket = Partition(BODIES, place)
        rows = [Row(number, {"body": bytes(100_000 if number < 60 else 10)}) for number in range(700)]
        assert await world.store.write([Write(bucket, rows)]) == [None]
        (whole,) = await world.store.read([Span(bucket)])
        assert whole.rows == rows
        (part,) = await world.store.read([Span(bucket, 10, 650, 300, ("enqueued_at",))])
        assert [row.key for row in part.rows] == list(range(10, 310))
        assert part.more

    world.run(test)


def test_a_small_partition_is_read_in_one_page_however_large_it_is(
    world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked for, all of its columns and rows are: what one replica has more than the others is given to
    them whole (row 19)."""

    async def test() -> None:
        locks, rows = Partition(BAG_LOCKS, place), range(limits.SMALL_ROWS)
        given = bytes(8 * limits.BAG_GIVEN)
        assert limits.SMALL_ROWS * (len(given) + 256) <= limits.SMALL_BYTES
        for start in range(0, limits.SMALL_ROWS, 16):
            some = [RowChange(key, {}, {"serving": key, "given": given}) for key in range(start, start + 16)]
            assert await world.store.change([Change(locks, some, set_flags={"version": start})]) == [APPLIED]
        pages: list[tuple[int, bool]] = []
        execute = world.store._bridge.execute

        async def counted(statement: Any, profile: str, paging_state: bytes | None = None) -> Any:
            page = await execute(statement, profile, paging_state)
            if profile != "change":
                pages.append((len(page.rows), page.paging_state is not None))
            return page

        monkeypatch.setattr(world.store._bridge, "execute", counted)
        (whole,) = await world.store.read([Span(locks)])
        assert [(row.key, row.values["serving"]) for row in whole.rows] == [(key, key) for key in rows]
        (part,) = await world.store.read([Span(locks, 7, 200, 20, ("serving",))])
        assert (part.rows, part.more) == ([Row(key, {"serving": key}) for key in range(7, 27)], True)
        (outcome,) = await world.store.change([Change(locks, [RowChange(9, {"serving": 8}, {"serving": 1})])])
        assert isinstance(outcome, Refused)
        assert (outcome.flags, [*outcome.rows]) == ({"version": limits.SMALL_ROWS - 16}, [9])
        (test,) = await world.store.change([Change(locks, [RowChange(9, {"serving": 8}, {})])])
        assert isinstance(test, Refused)
        assert pages == [(limits.SMALL_ROWS, False)] * 4

    world.run(test)


def test_a_change_that_expects_nothing_is_conditional_all_the_same(world: World, place: str) -> None:
    async def test() -> None:
        session = world.store._bridge._session
        texts: list[str] = []

        def listener(future: ResponseFuture) -> None:
            texts.append(future.query.prepared_statement.query_string)

        session.add_request_init_listener(listener)
        try:
            bucket = Partition(STATES, place)
            assert await world.store.change([Change(bucket, [RowChange(1, {}, {"delivery": 1})])]) == [APPLIED]
            assert await world.store.change([Change(bucket, [RowChange(1, {}, None)])]) == [APPLIED]
            assert await world.store.change([Change(bucket, set_flags={"final": 1})]) == [APPLIED]
        finally:
            session.remove_request_init_listener(listener)
        assert len(texts) == 3
        assert all(" IF " in text for text in texts)
        assert await world.store.read([Span(bucket)]) == [({"final": 1}, [], False)]

    world.run(test)
