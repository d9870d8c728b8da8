"""Bad input: a typed error that says what is wrong, and nothing changed in the store."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from angelhair import limits
from angelhair.engine import receipts
from angelhair.errors import (
    InvalidReceipt,
    InvalidRequest,
    MessageGone,
    QueueExists,
    QueueNotFound,
    RequestError,
    StaleReceipt,
)
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings, WantedChange
from tests.queues import Server, World

ODD_NAMES: list[Any] = [
    "", " ", "a b", "a/b", "../up", ".hidden", "-dash", "naïve", "日本", "emoji😀", "x" * 81, "a\x00b", "a\nb", "a\n",
    "'; DROP TABLE queues; --", None, 7, b"bytes",
]
NOT_WHOLE: list[Any] = [True, "x", 1.5, None]
IMPOSSIBLE_VISIBILITY: list[Any] = [-1, limits.DURATION_MAXIMUM_MS + 1, True, "x", 1.5]


async def prepared(world: World) -> Server:
    """A queue with something in every stage of its life."""
    server = world.server()
    await server.create("orders", bucket_size=2)
    await server.put("orders", count=5)
    await server.take("orders", 1)
    await server.receive("orders", 1)
    await server.put("orders", delay_ms=60_000)
    return server


@asynccontextmanager
async def nothing_changes(world: World) -> AsyncIterator[None]:
    before = await world.dump()
    assert before
    yield
    assert await world.dump() == before


async def refusal(action: Awaitable[Any]) -> RequestError:
    """What was wrong with the request."""
    with pytest.raises(RequestError) as caught:
        await action
    return caught.value


async def wrong_field(action: Awaitable[Any]) -> str:
    """The field that is out of bounds. The message begins with it and says more."""
    error = await refusal(action)
    assert isinstance(error, InvalidRequest)
    assert str(error) == f"{error.field}: {error.message}" and error.message
    return error.field


# --- names ------------------------------------------------------------------------------------------------------------


async def test_odd_names(world: World) -> None:
    server = await prepared(world)
    engine, account = server.engine, world.account
    async with nothing_changes(world):
        for name in ODD_NAMES:
            for action in (
                engine.create_queue(account, name, QueueSettings()),
                engine.delete_queue(account, name),
                engine.put(account, name, [NewMessage(b"-")]),
                engine.receive(account, name, [Ask(1)]),
                engine.ack(account, name, ["x"]),
                engine.stats(account, name),
                engine.change_queue(account, name, {"delay_ms": 1}),
            ):
                assert await wrong_field(action) == "name", repr(name)
            assert await wrong_field(engine.list_queues(name)) == "account", repr(name)
            assert await wrong_field(engine.create_queue(name, "orders", QueueSettings())) == "account", repr(name)


@pytest.mark.parametrize("name", ["a", "A-b_c.d", "x" * 80, "0", "_"])
async def test_names_that_are_fine(world: World, name: str) -> None:
    server = world.server()
    await server.create(name)
    assert await server.put(name) == [0]
    assert await server.engine.list_queues(world.account) == ([name], False)


async def test_unknown_queue(world: World) -> None:
    server = await prepared(world)
    engine, account = server.engine, world.account
    async with nothing_changes(world):
        for action in (
            engine.delete_queue(account, "nobody"),
            engine.put(account, "nobody", [NewMessage(b"-")]),
            engine.receive(account, "nobody", [Ask(1)]),
            engine.ack(account, "nobody", ["x"]),
            engine.change(account, "nobody", [WantedChange("x", 1)]),
            engine.change_queue(account, "nobody", {"delay_ms": 1}),
            engine.stats(account, "nobody"),
            engine.peek(account, "nobody", 1),
            engine.marks(account, "nobody"),
            engine.purge(account, "nobody"),
            engine.redrive(account, "nobody", None, 1),
            engine.redrive(account, "orders", "nobody", 1),
            engine.step(account, "nobody"),
        ):
            error = await refusal(action)
            assert isinstance(error, QueueNotFound)
            assert (error.account, error.name) == (account, "nobody")
            assert "there is no queue 'nobody'" in str(error)


# --- settings ---------------------------------------------------------------------------------------------------------

BAD_SETTINGS: list[tuple[str, Any]] = [
    *(("bucket_size", value) for value in [0, -1, 10_001, 10**9, *NOT_WHOLE]),
    *(("lanes", value) for value in [0, -1, 65, 10**9, *NOT_WHOLE]),
    *(("visibility_timeout_ms", value) for value in [-1, 10**18, *NOT_WHOLE]),
    *(("repair_timeout_ms", value) for value in [0, 99, -1, 10**18, *NOT_WHOLE]),
    *(("delay_ms", value) for value in [-1, 10**18, *NOT_WHOLE]),
    *(("history_ms", value) for value in [-1, 10**18, *NOT_WHOLE]),
    *(("retention_ms", value) for value in [0, 999, -1, 10**18, True, "x", 1.5]),
    *(("dedup_window_ms", value) for value in [0, 999, *NOT_WHOLE]),
    *(("max_deliveries", value) for value in [0, -1, 10**9, True, "x", 1.5]),
    *(("dead_letter_queue", value) for value in ["", "a b", 7]),
    *(("archive", value) for value in [1, "yes", None]),
    *(("kind", value) for value in ["", "weekly", None, 7]),
]


async def test_bad_settings(world: World) -> None:
    server = await prepared(world)
    engine, account = server.engine, world.account
    async with nothing_changes(world):
        for setting, value in BAD_SETTINGS:
            field = setting.removesuffix("_ms")
            settings = QueueSettings(**{setting: value})
            assert await wrong_field(engine.create_queue(account, "other", settings)) == field, repr(value)
            changed = await wrong_field(engine.change_queue(account, "orders", {setting: value}))
            assert changed in (setting, field), repr(value)


async def test_change_of_what_cannot_change(world: World) -> None:
    server = await prepared(world)
    engine, account = server.engine, world.account
    async with nothing_changes(world):
        for changes, words in [
            ({"bucket_size": 3}, "bucket_size: cannot change after the queue was created"),
            ({"colour": "red"}, "colour: is not a setting of a queue"),
            ({"delay_ms": 5, "bucket_size": 3}, "bucket_size: cannot change after the queue was created"),
            ({"incarnation": "x"}, "incarnation: is not a setting of a queue"),
        ]:
            assert str(await refusal(engine.change_queue(account, "orders", changes))) == words
    # The same value again is no change.
    assert (await engine.change_queue(account, "orders", {"bucket_size": 2})).settings.bucket_size == 2


async def test_dead_letter_queue_that_is_the_queue_itself(world: World) -> None:
    server = await prepared(world)
    async with nothing_changes(world):
        create = server.engine.create_queue(world.account, "loop", QueueSettings(dead_letter_queue="loop"))
        assert await wrong_field(create) == "dead_letter_queue"


async def test_dead_letter_queue_that_becomes_the_queue_itself(world: World) -> None:
    server = await prepared(world)
    async with nothing_changes(world):
        change = server.engine.change_queue(world.account, "orders", {"dead_letter_queue": "orders"})
        assert await wrong_field(change) == "dead_letter_queue"


async def test_name_taken_by_another_queue(world: World) -> None:
    server = await prepared(world)
    async with nothing_changes(world):
        settings = QueueSettings(bucket_size=3, delay_ms=7)
        error = await refusal(server.engine.create_queue(world.account, "orders", settings))
        assert isinstance(error, QueueExists)
        assert error.differing == ("bucket_size", "delay_ms")
        assert "another value of bucket_size, delay_ms" in str(error)
        assert (await server.engine.create_queue(world.account, "orders", QueueSettings(bucket_size=2)))[1] is False


# --- messages ---------------------------------------------------------------------------------------------------------

BAD_MESSAGES: list[tuple[str, NewMessage]] = [
    ("body", NewMessage("text")),  # type: ignore[arg-type]
    ("body", NewMessage(None)),  # type: ignore[arg-type]
    ("body", NewMessage(bytearray(b"x"))),  # type: ignore[arg-type]
    ("attributes", NewMessage(b"-", "x" * (limits.ATTRIBUTES_BYTES + 1))),
    ("attributes", NewMessage(b"-", "é" * (limits.ATTRIBUTES_BYTES // 2 + 1))),
    ("delay", NewMessage(b"-", delay_ms=-1)),
    ("delay", NewMessage(b"-", delay_ms=limits.DURATION_MAXIMUM_MS + 1)),
    ("delay", NewMessage(b"-", delay_ms=10**30)),
    ("delay", NewMessage(b"-", delay_ms="5")),  # type: ignore[arg-type]
    ("delay", NewMessage(b"-", delay_ms=True)),
    ("key", NewMessage(b"-", key="")),
    ("key", NewMessage(b"-", key="k" * (limits.KEY_LENGTH + 1))),
]


async def test_bad_messages(world: World) -> None:
    """Also in the middle of good ones: nothing of the batch is put."""
    server = await prepared(world)
    async with nothing_changes(world):
        for field, message in BAD_MESSAGES:
            batch = [NewMessage(b"good"), message, NewMessage(b"good")]
            assert await wrong_field(server.engine.put(world.account, "orders", batch)) == field


async def test_body_at_and_over_the_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is lowered for the test, so that 16 MiB need not travel."""
    monkeypatch.setattr(limits, "BODY_BYTES", 1_000)
    server = await prepared(world)
    async with nothing_changes(world):
        error = await refusal(server.engine.put(world.account, "orders", [NewMessage(b"x" * 1_001)]))
        assert str(error) == "body: has 1001 bytes; the limit is 1000"
    assert await server.put("orders", b"x" * 1_000, b"") == [6, 7]
    bodies = {item.body for item in await server.receive("orders", 10)}
    assert {b"x" * 1_000, b""} <= bodies


@pytest.mark.parametrize("count", [0, 1_001])
async def test_batches_of_impossible_size(world: World, count: int) -> None:
    server = await prepared(world)
    engine, account = server.engine, world.account
    async with nothing_changes(world):
        assert await wrong_field(engine.put(account, "orders", [NewMessage(b"-")] * count)) == "messages"
        assert await wrong_field(engine.receive(account, "orders", [Ask(count)])) == "messages"
        assert await wrong_field(engine.redrive(account, "orders", None, count)) == "messages"
        assert await wrong_field(engine.peek(account, "orders", count)) == "count"


async def test_asks_for_impossible_numbers(world: World) -> None:
    server = await prepared(world)
    async with nothing_changes(world):
        for messages in [-1, 10**9, *NOT_WHOLE]:
            asks = [Ask(1), Ask(messages)]
            assert await wrong_field(server.engine.receive(world.account, "orders", asks)) == "messages"


async def test_impossible_visibility(world: World) -> None:
    server, delivery = await in_flight(world)
    engine, account = server.engine, world.account
    async with nothing_changes(world):
        for visibility_ms in IMPOSSIBLE_VISIBILITY:
            assert await wrong_field(engine.receive(account, "orders", [Ask(1, visibility_ms)])) == "visibility"
            changes = [WantedChange(delivery.receipt, visibility_ms)]
            assert await wrong_field(engine.change(account, "orders", changes)) == "visibility"
        text: Any = "text"
        changes = [WantedChange(delivery.receipt, body=text)]
        assert await wrong_field(engine.change(account, "orders", changes)) == "body"


@pytest.mark.parametrize("text", ["", "x", "0", "-", "1-", "-1", "0-x", "0--1", "０-１", "0-1-2", "0-1\n"])
def test_message_ids_that_are_none(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a message id"):
        MessageId.parse(text)


def test_message_ids_that_are_some() -> None:
    assert MessageId.parse(str(MessageId(3, 17))) == (3, 17)


# --- receipts ---------------------------------------------------------------------------------------------------------


async def in_flight(world: World) -> tuple[Server, Delivery]:
    server = await prepared(world)
    (delivery,) = await server.receive("orders", 1)
    return server, delivery


async def not_accepted(world: World, server: Server, receipt: Any, words: str) -> None:
    """Neither for an ack nor for a change."""
    async with nothing_changes(world):
        outcomes = [
            *await server.engine.ack(world.account, "orders", [receipt]),
            *await server.engine.change(world.account, "orders", [WantedChange(receipt, 0, b"changed")]),
        ]
        assert [type(outcome) for outcome in outcomes] == [InvalidReceipt, InvalidReceipt]
        assert all(words in str(outcome) for outcome in outcomes)


async def test_forged_receipts(world: World) -> None:
    server, delivery = await in_flight(world)
    queue = await world.queue("orders")
    forged = receipts.encode(queue.incarnation, b"another secret", *delivery.id, 1)
    await not_accepted(world, server, forged, "was not issued by this queue")
    # Any bit of a receipt that is turned makes it worthless.
    raw = bytearray(base64.urlsafe_b64decode(delivery.receipt))
    for index in range(len(raw)):
        raw[index] ^= 1
        text = base64.urlsafe_b64encode(bytes(raw)).decode()
        (outcome,) = await server.engine.ack(world.account, "orders", [text])
        assert isinstance(outcome, InvalidReceipt)
        raw[index] ^= 1
    assert await server.ack("orders", delivery) == [None]


async def test_receipts_of_odd_characters(world: World) -> None:
    server, _ = await in_flight(world)
    for odd in ["", "x", "é" * 44, "=" * 44, " " * 44, "\x00" * 44, "A" * 44, "A" * 43, "A" * 100_000]:
        await not_accepted(world, server, odd, "receipt: ")
    for odd in (None, 7, b"bytes", ("a",)):
        await not_accepted(world, server, odd, "is not a receipt of this service")


async def test_truncated_and_prolonged_receipts(world: World) -> None:
    server, delivery = await in_flight(world)
    for text in (delivery.receipt[:-1], delivery.receipt[1:], delivery.receipt + "A", delivery.receipt + " "):
        await not_accepted(world, server, text, "is not a receipt of this service")
    for position in (0, 10, 43):
        text = delivery.receipt[:position] + "*" + delivery.receipt[position + 1 :]
        (outcome,) = await server.engine.ack(world.account, "orders", [text])
        assert isinstance(outcome, InvalidReceipt)


async def test_receipts_of_another_version(world: World) -> None:
    server, delivery = await in_flight(world)
    raw = bytearray(base64.urlsafe_b64decode(delivery.receipt))
    raw[0] = 9
    await not_accepted(world, server, base64.urlsafe_b64encode(bytes(raw)).decode(), "another version")


async def test_receipts_of_another_queue_and_of_an_earlier_one(world: World) -> None:
    server, delivery = await in_flight(world)
    await server.create("other")
    await server.put("other")
    (foreign,) = await server.receive("other")
    await not_accepted(world, server, foreign.receipt, "belongs to another queue")
    await server.engine.delete_queue(world.account, "orders")
    await server.create("orders", bucket_size=2)
    await server.put("orders")
    await not_accepted(world, server, delivery.receipt, "earlier queue of this name")


async def test_bad_receipt_concerns_nobody_but_itself(world: World) -> None:
    server, delivery = await in_flight(world)
    outcomes = await server.engine.ack(world.account, "orders", ["forged", delivery.receipt, delivery.receipt[:-1]])
    assert [type(outcome) for outcome in outcomes] == [InvalidReceipt, type(None), InvalidReceipt]


async def test_receipt_of_a_message_that_was_never_delivered(world: World) -> None:
    """Well made, by somebody who knows the secret: there is no such delivery, and none is invented."""
    server, delivery = await in_flight(world)
    queue = await world.queue("orders")
    async with nothing_changes(world):
        # Where there is no row, the bucket may as well have been dropped: the ack says that the message is gone.
        for number, count, answer in [
            (delivery.id.number, 7, StaleReceipt),
            (delivery.id.number + 1, 1, MessageGone),
            (10**12, 1, MessageGone),
        ]:
            text = receipts.encode(queue.incarnation, queue.secret, 0, number, count)
            outcomes = [
                *await server.engine.ack(world.account, "orders", [text]),
                *await server.engine.change(world.account, "orders", [WantedChange(text, body=b"changed")]),
            ]
            assert [type(outcome) for outcome in outcomes] == [answer, StaleReceipt]
