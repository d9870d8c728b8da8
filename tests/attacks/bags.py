"""What attacks on databags do on the way, and a store that counts what they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.engine.store import Span, Store
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage, QueueSettings
from tests.faults import Between

SECOND_MS = 1_000


async def create(engine: Engine, **settings: int) -> None:
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG, **settings))  # type: ignore[arg-type]


async def put(engine: Engine, count: int, body: bytes = b"m", at_once: int = 20) -> list[MessageId]:
    found: list[MessageId] = []
    while len(found) < count:
        outcomes = await engine.put("shop", "bag", [NewMessage(body)] * min(at_once, count - len(found)))
        for outcome in outcomes:
            assert isinstance(outcome, MessageId)
            found.append(outcome)
    return found


async def receive(engine: Engine, most: int) -> list[Delivery]:
    (found,) = await engine.receive("shop", "bag", [Ask(most)])
    assert isinstance(found, list)
    return found


async def delete(engine: Engine, *messages: MessageId) -> None:
    assert await engine.ack("shop", "bag", [str(message) for message in messages]) == [None] * len(messages)


class Counted(Between):
    """Rows of messages that were read, what the bodies of those that are not deleted come to, and calls that read
    some."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.begin()

    def begin(self) -> None:
        self.calls = self.spans = self.rows = self.bytes = 0

    async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
        found = await super()._pass(verb, items)
        if verb == "read":
            some = [
                slice_ for item, slice_ in zip(items, found, strict=True)
                if isinstance(item, Span) and item.partition.table is BAG_MESSAGES
            ]
            self.calls += bool(some)
            self.spans += len(some)
            self.rows += sum(len(slice_.rows) for slice_ in some)
            there = [row for slice_ in some for row in slice_.rows if row.values.get("deleted") is None]
            self.bytes += sum(len(row.values.get("body") or b"") for row in there)
        return found
