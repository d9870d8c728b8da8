"""R10, R12 of fifo queues: a put while others put, while buckets fill or are dropped, and while the store fails."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import LOGS, SEQUENCES
from angelhair.engine.store import Change
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.promises.fifo import QUEUE, bodies, make, message, put, put_one
from tests.queues import MINUTE, SECOND, World

FOR_EVER = 1_000


def is_append(change: Change) -> bool:
    return bool(change.rows)


def is_opening(change: Change) -> bool:
    return "opened" in change.set_flags


async def test_r12_a_put_that_others_are_always_faster_than_is_not_put(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R12: it is sure that it was not, and whoever hears that may put it again."""
    monkeypatch.setattr(limits, "RESERVE_ROUNDS", 3)
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "first")
    theirs: list[str] = []

    async def faster() -> None:
        theirs.append(f"theirs-{len(theirs)}")
        await put(other, theirs[-1])

    server.store.next("change", LOGS, faster, when=is_append, times=FOR_EVER)
    assert isinstance(await put_one(server, "mine"), Unavailable)
    server.store.heal()
    assert len(theirs) >= 3
    assert bodies(await other.drain(QUEUE)) == ["first", *theirs]
    assert await put_one(server, "mine") == MessageId(0, len(theirs) + 1)
    assert bodies(await other.drain(QUEUE)) == ["mine"]


async def test_r12_a_put_that_finds_every_bucket_full_is_not_put(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R12: others open the next bucket and fill it whenever this server is about to."""
    monkeypatch.setattr(limits, "RESERVE_ROUNDS", 3)
    server, other = world.server(), world.server()
    await make(server, bucket_size=1)
    await put(server, "0")
    theirs = ["0"]

    async def faster() -> None:
        theirs.append(str(len(theirs)))
        await put(other, theirs[-1])

    server.store.next("change", SEQUENCES, faster, times=FOR_EVER)
    assert isinstance(await put_one(server, "mine"), Unavailable)
    server.store.heal()
    await put(server, "mine")
    assert bodies(await other.drain(QUEUE)) == [*theirs, "mine"]


@pytest.mark.parametrize("fault", [NEVER_SENT, UNAVAILABLE])
async def test_r12_a_next_bucket_that_cannot_be_opened_takes_nothing(world: World, fault: str) -> None:
    """R12: the put says that it did not happen, and the log goes on without a gap when the store is back."""
    server = world.server()
    await make(server, bucket_size=2)
    await put(server, "a", "b")
    server.store.next("change", LOGS, fault, when=is_opening, times=FOR_EVER)
    assert isinstance(await put_one(server, "c"), Unavailable)
    server.store.heal()
    assert await put(server, "c", "d") == [2, 3]
    assert bodies(await server.drain(QUEUE)) == ["a", "b", "c", "d"]


async def test_r12_two_puts_of_one_server_open_buckets_at_once(world: World) -> None:
    """R12: while one waits to hear that its bucket is the last, the other fills that one and opens others."""
    server = world.server()
    await make(server, bucket_size=1)
    await put(server, "a")

    async def others() -> None:
        assert await put(server, "b", "c", "d") == [1, 2, 3]

    server.store.next("change", SEQUENCES, others, after=True)
    assert await put_one(server, "e") == MessageId(0, 4)
    assert await put(world.server(), "f") == [5]
    assert bodies(await server.drain(QUEUE)) == ["a", "b", "c", "d", "e", "f"]


async def test_r10_what_one_put_of_a_server_has_sent_another_learns_before_it_hears_of_it(world: World) -> None:
    """R10, R12: two puts of one key, the second begun while the first one's answer is on its way."""
    server = world.server()
    await make(server)
    await put(server, "a")

    async def another() -> None:
        assert await put_one(server, "again", key="k") == MessageId(0, 1)
        assert await put(server, "c") == [2]

    server.store.next("change", LOGS, another, when=is_append, after=True)
    assert await put_one(server, "b", key="k") == MessageId(0, 1)
    assert await put_one(server, "b", key="k") == MessageId(0, 1)
    assert await put(server, "d") == [3]
    assert bodies(await server.drain(QUEUE)) == ["a", "b", "c", "d"]


async def test_r10_two_puts_of_one_server_read_what_others_have_put_at_once(world: World) -> None:
    """R10: what both have read is known once, and neither puts a key again that is in it."""
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "a")
    await put(other, "b", "c")

    async def another() -> None:
        assert await put(server, "d") == [3]

    server.store.next("read", LOGS, another, after=True)
    outcomes = await server.put_outcomes(QUEUE, [message("x", key="b"), message("e")])
    assert outcomes == [MessageId(0, 1), MessageId(0, 4)]
    assert bodies(await server.drain(QUEUE)) == ["a", "b", "c", "d", "e"]


async def test_r10_a_put_that_fails_takes_what_another_of_its_server_is_reading(world: World) -> None:
    """R10: what is known of the log is thrown away while it is being added to; then it is read again from the start."""
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "a")
    await put(other, "b", "c")

    async def fails() -> None:
        server.store.next("change", LOGS, UNAVAILABLE, when=is_append)
        assert isinstance(await put_one(server, "failed"), Unavailable)

    server.store.next("read", LOGS, fails, after=True)
    outcomes = await server.put_outcomes(QUEUE, [message("again", key="c"), message("again", key="b"), message("d")])
    assert outcomes == [MessageId(0, 2), MessageId(0, 1), MessageId(0, 3)]
    assert bodies(await server.drain(QUEUE)) == ["a", "b", "c", "d"]


async def test_r10_a_key_that_was_put_again_after_its_window_is_known_by_its_last_message(world: World) -> None:
    """R10: to a server that starts later, which meets both in the log. Naive: forget the key with its first message."""
    first = world.server()
    await make(first, dedup_window_ms=MINUTE)
    assert await put_one(first, "old", key="k") == MessageId(0, 0)
    world.wait(MINUTE + 2 * limits.CLOCK_ERROR_MS + SECOND)
    assert await put_one(first, "new", key="k") == MessageId(0, 1)
    second = world.server()
    assert await put_one(second, "other") == MessageId(0, 2)
    assert await put_one(second, "newer", key="k") == MessageId(0, 1)
    assert bodies(await second.drain(QUEUE)) == ["old", "new", "other"]


async def test_r10_a_server_that_starts_after_buckets_were_dropped_knows_the_keys_that_are_left(world: World) -> None:
    """R10, R14: the window reaches back to where nothing is any more."""
    first = world.server()
    await make(first, bucket_size=1, history_ms=0, dedup_window_ms=SECOND)
    await put(first, "a", "b")
    await first.drain(QUEUE)
    await first.work(QUEUE, 2 * MINUTE)
    await put(first, "c")
    await first.work(QUEUE, 5 * SECOND)
    assert (await world.marks(QUEUE)).dropped == 2
    await put(first, "d")
    second = world.server()
    assert [await put_one(second, body) for body in ("d", "e")] == [MessageId(0, 3), MessageId(0, 4)]
    assert bodies(await second.drain(QUEUE)) == ["c", "d", "e"]


async def test_r10_a_put_of_which_the_log_remembers_nothing_is_not_put_again(world: World) -> None:
    """R10, A1: its answer was lost; when it is asked for again its bucket has been read, finished and dropped. Naive:
    it is not in the log, so it is put once more."""
    sleeper, server = world.server(), world.server()
    await make(server, bucket_size=1, history_ms=0, dedup_window_ms=SECOND)
    await put(sleeper, "a")
    taken: list[str] = []

    async def years() -> None:
        await put(server, "c", "d")
        taken.extend(bodies(await server.drain(QUEUE)))
        await server.work(QUEUE, 2 * MINUTE)
        assert (await world.marks(QUEUE)).dropped == 3

    sleeper.store.next("change", LOGS, LOSE_ANSWER, when=is_append)
    sleeper.store.next("change", LOGS, years, when=is_append)
    assert isinstance(await put_one(sleeper, "b"), OutcomeUnknown)
    assert taken == ["a", "b", "c", "d"]
    assert await server.drain(QUEUE) == []


async def test_attributes_are_delivered_and_peeked_at_as_they_were_put(world: World) -> None:
    server = world.server()
    await make(server)
    outcomes = await server.put_outcomes(QUEUE, [
        NewMessage(b"with", attributes='{"a": 1}', key="1", group="g"), NewMessage(b"without", key="2", group="g"),
    ])
    assert outcomes == [MessageId(0, 0), MessageId(0, 1)]
    peeked = await server.engine.peek(world.account, QUEUE, 10)
    assert [(one.body, one.attributes) for one in peeked] == [(b"with", '{"a": 1}'), (b"without", None)]
    found = await world.server().receive(QUEUE, 10)
    assert [(one.body, one.attributes) for one in found] == [(b"with", '{"a": 1}'), (b"without", None)]
