"""What the tests of the embedded store share: opening it for the length of a block, and short rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.store import Change, Key, Partition, Row, RowChange, Span, Write
from angelhair.stores.sqlite import SqliteStore, open_store

PLAIN = Partition(BODIES, "plain")
GUARDED = Partition(STATES, "guarded")


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[SqliteStore]:
    store = await open_store(path, **options)
    try:
        yield store
    finally:
        await store.close()


def one(key: int, size_bytes: int = 20) -> Write:
    return Write(PLAIN, [Row(key, {"body": b"x" * size_bytes, "enqueued_at": key})])


def claim(key: int, delivery: int | None = None) -> Change:
    return Change(GUARDED, [RowChange(key, {"delivery": delivery}, {"delivery": (delivery or 0) + 1})])


async def keys(store: SqliteStore, partition: Partition = PLAIN) -> list[Key]:
    (found,) = await store.read([Span(partition)])
    return [row.key for row in found.rows]
