"""The file: its settings, its schema's version, and what it refuses to be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.members import Holdings, Presence
from angelhair.engine.schema import MEMBERS, SCHEMA_VERSION, TABLES
from angelhair.engine.store import APPLIED, Change, Partition, Row, RowChange, Span, Table, Write
from angelhair.errors import StoreRefused
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, NewMessage, QueueSettings
from angelhair.stores.sqlite import open_store
from angelhair.stores.sqlite.connection import Place, connect_writer
from tests.unit.sqlite.disks import Disk
from tests.unit.sqlite.tools import keys, one, opened

OLD_PLAIN = Table("plain", conditional=False, key=int, columns={"a": int})
NEW_PLAIN = Table("plain", conditional=False, key=int, columns={"a": int, "b": bytes})
OLD_GUARDED = Table("guarded", conditional=True, key=str, columns={"a": int}, flags={"f": int})
NEW_GUARDED = Table("guarded", conditional=True, key=str, columns={"a": int, "b": str}, flags={"f": int, "g": str})
ADDED = Table("added", conditional=True, key=str, columns={"a": int})


def test_commits_are_synced_to_a_log(tmp_path: Path) -> None:
    connection = connect_writer(Place(str(tmp_path / "a.db")))
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2
    connection.close()


def test_a_disk_that_cannot_keep_a_log_is_refused() -> None:
    """In memory SQLite answers the wish for a write-ahead log with another mode, as some network disks do."""
    with pytest.raises(StoreRefused, match="journal_mode=wal"):
        asyncio.run(open_store(":memory:"))


def test_a_setting_that_does_not_stick_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(apsw.Connection):
        def pragma(self, name: str, value: apsw.SQLiteValue | None = None, *, schema: str | None = None) -> object:
            if value is None:
                return super().pragma(name)
            return super().pragma(name, "normal" if name == "synchronous" else value)

    monkeypatch.setattr(apsw, "Connection", Stubborn)
    with pytest.raises(StoreRefused, match="synchronous=full"):
        asyncio.run(open_store(tmp_path / "a.db"))


def test_what_was_confirmed_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            assert await store.write([one(key) for key in range(10)]) == [None] * 10
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db"]
        async with opened(tmp_path / "a.db") as store:
            assert await keys(store) == list(range(10))

    asyncio.run(story())


def test_an_older_file_is_brought_forward_with_its_rows(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db", tables=(OLD_PLAIN, OLD_GUARDED), version=1) as store:
            assert await store.write([Write(Partition(OLD_PLAIN, "p"), [Row(1, {"a": 1})])]) == [None]
            change = Change(Partition(OLD_GUARDED, "p"), [RowChange("x", {}, {"a": 1})], set_flags={"f": 1})
            assert await store.change([change]) == [APPLIED]
        async with opened(tmp_path / "a.db", tables=(NEW_PLAIN, NEW_GUARDED, ADDED), version=2) as store:
            change = Change(
                Partition(NEW_GUARDED, "p"),
                [RowChange("x", {"a": 1, "b": None}, {"b": "new"})],
                {"f": 1, "g": None},
                {"g": "new"},
            )
            assert await store.change([change]) == [APPLIED]
            assert await store.write([Write(Partition(NEW_PLAIN, "p"), [Row(2, {"b": b"new"})])]) == [None]
            assert await store.change([Change(Partition(ADDED, "p"), [RowChange("x", {}, {"a": 1})])]) == [APPLIED]
            guarded, plain = await store.read([Span(Partition(NEW_GUARDED, "p")), Span(Partition(NEW_PLAIN, "p"))])
            assert dict(guarded.flags) == {"f": 1, "g": "new"}
            assert [dict(row.values) for row in guarded.rows] == [{"a": 1, "b": "new"}]
            assert [dict(row.values) for row in plain.rows] == [{"a": 1, "b": None}, {"a": None, "b": b"new"}]

    asyncio.run(story())


def test_a_file_from_before_servers_knew_each_other_is_brought_forward_and_not_back(tmp_path: Path) -> None:
    """Version 7 has a table of members."""
    older = {"tables": tuple(table for table in TABLES if table is not MEMBERS), "version": 6}

    async def story() -> None:
        async with opened(tmp_path / "a.db", **older) as store:
            engine = Engine(store, RandomIdentities(), SystemClock())
            await engine.create_queue("shop", "orders", QueueSettings())
            await engine.put("shop", "orders", [NewMessage(b"kept")])
        async with opened(tmp_path / "a.db") as store:
            engine = Engine(store, RandomIdentities(), SystemClock())
            await engine.membership.step(Presence("http://127.0.0.1:9324", "here", 0, "7", 0), Holdings())
            assert [member.id for member in engine.membership.members.alive] == [engine.membership.id]
            (given,) = await engine.receive("shop", "orders", [Ask(1)])
            assert isinstance(given, list) and [delivery.body for delivery in given] == [b"kept"]
        with pytest.raises(StoreRefused, match=f"version {SCHEMA_VERSION}, this release knows 6"):
            await open_store(tmp_path / "a.db", **older)

    asyncio.run(story())


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db", tables=(NEW_PLAIN,), version=SCHEMA_VERSION + 1):
            pass
        before = (tmp_path / "a.db").read_bytes()
        with pytest.raises(StoreRefused, match=f"version {SCHEMA_VERSION + 1}"):
            await open_store(tmp_path / "a.db")
        assert (tmp_path / "a.db").read_bytes() == before

    asyncio.run(story())


def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "theirs.db"))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    (tmp_path / "notes.txt").write_text("not a database at all, but long enough to be looked at" * 100)
    for name in ("theirs.db", "notes.txt"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StoreRefused):
            asyncio.run(open_store(tmp_path / name))
        assert (tmp_path / name).read_bytes() == before


def test_a_path_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="cannot be opened"):
        asyncio.run(open_store(tmp_path / "no such folder" / "a.db"))


def test_another_vfs_can_be_named(tmp_path: Path) -> None:
    class Counting(Disk):
        syncs = 0

        def sync(self, file: str, proceed: object) -> None:
            Counting.syncs += file == "wal"
            super().sync(file, proceed)  # type: ignore[arg-type]

    disk = Counting()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            before = Counting.syncs
            assert await store.write([one(1)]) == [None]
            assert Counting.syncs == before + 1

    asyncio.run(story())
