"""Puts to a databag with a key, that are interrupted at each of their steps (D7, R10): whoever is told an id finds one
message under it, and who is told that nobody knows may put again with the same key, and it is one message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from angelhair import limits
from angelhair.engine.schema import BAG_EPOCHS, BAG_MESSAGES, KEYS, SEQUENCES
from angelhair.engine.store import Change, Span, Write
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.promises.databags import NAME, create, delete, drain_all, put, rows
from tests.queues import DAY, HOUR, MINUTE, SECOND, Server, World, succeeded

WINDOW = 5 * MINUTE
OFTEN = 100
"""As often as it takes until somebody gives up."""

Happening = Callable[[], Awaitable[None]]


async def try_key(server: Server, body: bytes = b"m") -> object:
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(body, key="k")])
    return outcome


async def put_key(server: Server, body: bytes = b"m") -> MessageId:
    found: MessageId = succeeded(await try_key(server, body))
    return found


def holds_a_place(write: Write) -> bool:
    return any("held_at" in row.values for row in write.rows)


def has_a_body(write: Write) -> bool:
    return any("body" in row.values for row in write.rows)


def voids(write: Write) -> bool:
    return any("deleted" in row.values for row in write.rows)


def commits(change: Change) -> bool:
    return any(row.values is not None and row.values.get("status") == "committed" for row in change.rows)


def names_an_id(change: Change) -> bool:
    return not commits(change)


def asks_for_a_body(span: Span) -> bool:
    return span.columns is None and span.first is not None and span.first == span.last


def purge_by(server: Server) -> Happening:
    async def purge() -> None:
        await server.engine.purge(server.world.account, NAME)

    return purge


def no_epochs_for(server: Server) -> Happening:
    async def cannot_be_read() -> None:
        server.store.next("read", BAG_EPOCHS, UNAVAILABLE, times=limits.READ_ATTEMPTS)

    return cannot_be_read


async def held(world: World, incarnation: str) -> list[dict[str, object]]:
    """All rows of the databag that are not deleted."""
    found = [row for block in range(limits.BAG_BLOCKS) for row in await rows(world, incarnation, block, 0)]
    return [dict(row.values) for row in found if row.values.get("deleted") is None]


# --- before its key's row -------------------------------------------------------------------------------------------


async def test_r10_a_put_that_gets_no_serials_did_not_happen(world: World) -> None:
    server = world.server()
    await create(server)
    server.store.next("read", SEQUENCES, UNAVAILABLE)
    outcome = await try_key(server)
    assert isinstance(outcome, Unavailable) and not isinstance(outcome, OutcomeUnknown)
    assert await drain_all(server) == []
    await put_key(server)
    assert await drain_all(server) == [b"m"]


async def test_r10_a_put_that_has_to_move_on_and_cannot_is_unknown(world: World) -> None:
    """Its key names an id already: that nothing was written this time is not the whole truth."""
    server, other = world.server(), world.server()
    await create(server)
    await delete(server, *await put(server, b"first"))

    async def epochs_are_old() -> None:
        # What is remembered of them is read again when the key goes to another id.
        world.wait(limits.BAG_STATE_AGE_MS)
        server.store.next("read", BAG_EPOCHS, UNAVAILABLE)

    server.store.next("write", BAG_MESSAGES, purge_by(other), when=holds_a_place)
    server.store.next("write", BAG_MESSAGES, epochs_are_old, when=voids, after=True)
    assert isinstance(await try_key(server), OutcomeUnknown)
    message = await put_key(other)
    assert await put_key(server) == message
    assert await drain_all(server) == [b"m"]


# --- between the steps ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "table", "when"),
    [("change", KEYS, names_an_id), ("write", BAG_MESSAGES, holds_a_place), ("write", BAG_MESSAGES, has_a_body)],
    ids=["before its place", "before its place is sure", "before its body is sure"],
)
async def test_r10_who_cannot_look_at_the_epochs_does_not_know_and_the_next_completes_it(
    world: World, verb: str, table: object, when: object
) -> None:
    server, other = world.server(), world.server()
    await create(server)
    server.store.next(verb, table, no_epochs_for(server), when=when, after=True)  # type: ignore[arg-type]
    assert isinstance(await try_key(server), OutcomeUnknown)
    message = await put_key(other)
    assert await put_key(server) == message
    assert await drain_all(server) == [b"m"]


@pytest.mark.parametrize("when", [holds_a_place, has_a_body], ids=["its place", "its body"])
async def test_r10_a_store_that_is_closed_meanwhile_leaves_a_key_that_the_next_completes(
    world: World, when: object
) -> None:
    server, other = world.server(), world.server()
    await create(server)

    async def closed() -> None:
        raise Unavailable("the store is closed")

    server.store.next("write", BAG_MESSAGES, closed, when=when)  # type: ignore[arg-type]
    assert isinstance(await try_key(server), OutcomeUnknown)
    await put_key(other)
    assert await drain_all(other) == [b"m"]


async def test_r10_who_completes_a_put_and_cannot_see_whether_there_is_a_body_writes_none(world: World) -> None:
    """It may be served and deleted by now: a second body would bring it back."""
    server, other = world.server(), world.server()
    await create(server)
    server.store.next("change", KEYS, NEVER_SENT, when=commits, times=OFTEN)
    assert isinstance(await try_key(server, b"first"), OutcomeUnknown)
    other.store.next("read", BAG_MESSAGES, UNAVAILABLE, when=asks_for_a_body, times=limits.READ_ATTEMPTS)
    assert isinstance(await try_key(other, b"second"), OutcomeUnknown)
    server.store.heal()
    await put_key(other, b"third")
    assert await drain_all(other) == [b"first"]


async def test_r10_who_cannot_look_at_the_epoch_that_has_ended_does_not_know(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server)

    async def purged_and_not_readable() -> None:
        await other.engine.purge(world.account, NAME)
        # The first look says that the epoch is finished; the one before the place is voided fails.
        server.store.next("read", BAG_EPOCHS, no_epochs_for(server), after=True)

    server.store.next("write", BAG_MESSAGES, purged_and_not_readable, when=holds_a_place)
    assert isinstance(await try_key(server), OutcomeUnknown)
    assert len(await held(world, incarnation)) == 1, "the place is not void, and nobody serves it"
    assert await drain_all(other) == []
    await put_key(other)
    assert await drain_all(other) == [b"m"]


# --- epochs that end all the time, and keys that lapse ----------------------------------------------------------------


async def test_r10_a_key_whose_places_are_purged_all_the_time_is_unknown_and_then_one_message(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server)

    async def purge() -> None:
        await purge_by(other)()
        # Long enough that the epochs are looked at again before the key goes to another id.
        world.wait(limits.BAG_STATE_AGE_MS)

    rule = server.store.next("write", BAG_MESSAGES, purge, when=holds_a_place, times=OFTEN)
    assert isinstance(await try_key(server), OutcomeUnknown)
    assert rule.happened == limits.PUT_ROUNDS
    assert await held(world, incarnation) == [], "every place that it had to leave is void"
    server.store.heal()
    await put_key(server)
    assert await drain_all(server) == [b"m"]


@pytest.mark.ttl_by_test_clock
async def test_r10_a_key_that_goes_while_another_takes_it_is_taken_all_the_same(world: World) -> None:
    """Its window is over by its own date, and its row lives on for a second: it was committed so much later. The row is
    seen, and is gone when it is to be replaced."""
    server, other = world.server(), world.server()
    await create(server, dedup_window_ms=WINDOW)

    async def sleep() -> None:
        world.wait(SECOND)

    async def sleep_longer() -> None:
        world.wait(3 * SECOND)

    def replaces(change: Change) -> bool:
        return any(row.expect.get("status") == "committed" for row in change.rows)

    other.store.next("change", KEYS, sleep, when=commits)
    first = await put_key(other, b"first")
    world.wait(WINDOW - SECOND)
    rule = server.store.next("change", KEYS, sleep_longer, when=replaces)
    second = await put_key(server, b"second")
    assert rule.happened == 1 and second != first
    assert await put_key(other, b"third") == second
    assert sorted(await drain_all(server)) == [b"first", b"second"]


@pytest.mark.ttl_by_test_clock
async def test_r10_who_sleeps_until_its_key_is_gone_does_not_know_and_its_message_comes(world: World) -> None:
    server = world.server()
    await create(server, dedup_window_ms=WINDOW, retention_ms=None)

    async def sleep() -> None:
        world.wait(1_000 * limits.LEDGER_SECONDS + MINUTE)

    server.store.next("change", KEYS, sleep, when=commits)
    outcome = await try_key(server)
    assert isinstance(outcome, OutcomeUnknown) and "lapsed" in str(outcome)
    assert await drain_all(server) == [b"m"]


async def test_r10_who_sleeps_until_its_place_counts_as_given_up_puts_nothing_there(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, dedup_window_ms=WINDOW, retention_ms=None)

    async def sleep() -> None:
        await purge_by(other)()
        world.wait(31 * DAY)

    server.store.next("write", BAG_MESSAGES, sleep, when=holds_a_place)
    outcome = await try_key(server)
    assert isinstance(outcome, OutcomeUnknown) and "lapsed" in str(outcome)
    assert await drain_all(other) == []
    await put_key(other, b"new")
    assert await drain_all(other) == [b"new"]


async def test_r10_who_sleeps_until_the_epoch_of_its_id_is_dropped_does_not_know(world: World) -> None:
    """Nothing is written into an epoch that is gone: nobody would ever drop it again."""
    server, other = world.server(), world.server()
    incarnation = await create(server, dedup_window_ms=WINDOW, history_ms=0, retention_ms=None)

    async def sleep() -> None:
        await purge_by(other)()
        await other.work(NAME, HOUR, every_ms=MINUTE)

    server.store.next("change", KEYS, sleep, when=names_an_id, after=True)
    outcome = await try_key(server)
    assert isinstance(outcome, OutcomeUnknown) and "too long ago" in str(outcome)
    assert await held(world, incarnation) == []
    assert await drain_all(other) == []
    await put_key(other, b"new")
    assert await drain_all(other) == [b"new"]
