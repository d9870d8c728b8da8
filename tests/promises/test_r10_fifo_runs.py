"""R10, R12 for many messages at a time: a run is put into a fifo queue once and in order, however often it is tried, by
whomever, wherever a try ended."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable
from contextlib import suppress

import pytest

from angelhair import limits
from angelhair.engine.schema import LEDGER, LOGS
from angelhair.errors import InvalidRequest, OutcomeUnknown, QueueNotFound, StoreError, Unavailable
from angelhair.model import NewMessage
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.promises.fifo import QUEUE, make
from tests.promises.fifo_runs import (
    GROUPS,
    SETTINGS,
    Killed,
    Mortal,
    as_put,
    batch_of,
    drained,
    merged,
    put_run,
    run_of,
)
from tests.queues import World

ALWAYS = 1_000


@pytest.fixture(autouse=True)
def small_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run takes several writes, and may end between any two of them."""
    monkeypatch.setattr(limits, "CHANGE_ROWS", 2)


async def test_r10_a_run_is_there_once_however_often_it_is_put(world: World) -> None:
    first, second = world.server(), world.server()
    await make(first, **SETTINGS)
    batch = batch_of(10)
    assert await put_run(first, batch) == set()
    for server in (first, second, world.server()):
        assert await put_run(server, batch) is None
    plain = batch_of(10, keyed=False)
    assert await put_run(second, plain, "another task") == set()
    assert await drained(first) == merged(as_put(batch), as_put(plain))
    assert await put_run(first, batch) is None
    assert await drained(first) == {}


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("after", [False, True])
async def test_r10_r12_a_run_goes_on_wherever_a_try_ended(world: World, after: bool, lanes: int) -> None:
    """Somebody receives what is there before another goes on."""
    other = world.server()
    batch = batch_of(7)
    scope = {"lanes": lanes, "dedup_scope": "group"} if lanes > 1 else {}
    for at in itertools.count(1):
        name = f"{QUEUE}-{at}"
        await make(other, name, **SETTINGS, **scope)
        mortal = Mortal(world.store, at, after)
        try:
            assert await put_run(world.server(store=mortal), batch, name=name) == set()
            break
        except Killed:
            pass
        got = await drained(other, name)
        known = await put_run(world.server(), batch, name=name)
        assert known == set() or (known is None and after), "what an earlier try has put is no other's"
        assert merged(got, await drained(other, name)) == as_put(batch), f"after call {at}"
        assert await put_run(world.server(), batch, name=name) is None
    assert at > 8, "it was killed often enough"


@pytest.mark.parametrize("table", [LOGS, LEDGER])
@pytest.mark.parametrize("at", range(6))
async def test_r10_r12_two_tries_at_once(world: World, at: int, table: object) -> None:
    """Before one of the writes of the slower one all of it is put by the other."""
    slow, fast = world.server(), world.server()
    await make(slow, **SETTINGS)
    batch = batch_of(7)
    seen = itertools.count()

    async def meanwhile() -> None:
        assert await put_run(fast, batch) in (set(), None)

    slow.store.next("change", table, meanwhile, when=lambda change: next(seen) == at)  # type: ignore[arg-type]
    assert await put_run(slow, batch) == (None if table is LEDGER and at == 0 else set())
    assert await drained(fast) == as_put(batch)
    assert await put_run(fast, batch) is None


async def test_r10_r12_many_tries_take_turns(world: World) -> None:
    servers = [world.server() for _ in range(4)]
    await make(servers[0], **SETTINGS)
    batch = batch_of(16)
    outcomes = await asyncio.gather(*[put_run(server, batch) for server in servers], return_exceptions=True)
    assert all(outcome in (set(), None) or isinstance(outcome, StoreError) for outcome in outcomes), outcomes
    assert await put_run(servers[0], batch) in (set(), None)
    assert await drained(servers[0]) == as_put(batch)


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE])
@pytest.mark.parametrize("table", [LOGS, LEDGER])
@pytest.mark.parametrize("times", [1, 2, 9])
@pytest.mark.parametrize("passed", [0, 1, 2])
async def test_r10_r12_a_run_of_unknown_outcome_is_put_once_in_the_end(
    world: World, fault: str, table: object, times: int, passed: int
) -> None:
    server = world.server()
    await make(server, **SETTINGS)
    batch = batch_of(7)
    seen = itertools.count()
    rule = server.store.next(
        "change", table, fault, when=lambda change: next(seen) >= passed, times=times,  # type: ignore[arg-type]
    )
    with suppress(StoreError):
        begun = await server.engine.begin_run(world.account, QUEUE, run_of(batch))
        assert begun is not None
        # That something did not happen would not be the whole truth any more.
        with suppress(OutcomeUnknown):
            assert await _never_unavailable(server.engine.finish_run(begun, batch)) == set()
    rule.times = 0
    assert await put_run(server, batch) in (set(), None)
    assert await drained(server) == as_put(batch)


async def _never_unavailable(finishing: Awaitable[set[int]]) -> set[int]:
    try:
        return await finishing
    except Unavailable as error:
        raise AssertionError("a part of it may have happened") from error


async def test_r10_r12_what_arrives_late_finds_its_place_taken(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await make(other, **SETTINGS)
    batch = batch_of(7)
    sleeper.store.next("change", LOGS, ARRIVE_LATE, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        await put_run(sleeper, batch)
    assert await put_run(other, batch) == set()
    await sleeper.store.land()
    sleeper.store.heal()
    assert await put_run(sleeper, batch) is None
    assert await drained(other) == as_put(batch)


async def test_r10_a_run_is_not_committed_before_all_of_it_is_there(world: World) -> None:
    failing, other = world.server(), world.server()
    await make(other, **SETTINGS)
    batch = batch_of(7)
    changes = itertools.count()
    failing.store.next("change", LOGS, NEVER_SENT, when=lambda change: next(changes) >= 2, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        await put_run(failing, batch)
    assert await put_run(other, batch) == set(), "there was something left to do"
    assert await drained(other) == as_put(batch)


async def test_r10_other_messages_under_the_same_name_are_refused(world: World) -> None:
    server = world.server()
    await make(server, **SETTINGS)
    batch = batch_of(3)
    assert await server.engine.begin_run(world.account, QUEUE, run_of(batch)) is not None
    others = [message._replace(body=b"x") for message in batch]
    for messages, said in (
        (batch_of(4), "were 3 when task first tried, and are 4 now"), (others, "others than when task first tried"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            await put_run(server, messages)
    assert await drained(server) == {}
    assert await put_run(server, batch) == set()
    assert await drained(server) == as_put(batch)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("group", {"group": None}), ("group", {"group": ""}), ("delay", {"delay_ms": 1_000}), ("key", {"key": ""}),
        ("origin", {"origin": "x"}), ("priority", {"priority": 1}), ("due", {"due_ms": 1}),
    ],
)
async def test_r10_of_a_run_with_a_message_that_is_wrong_nothing_is_put(
    world: World, field: str, bad: dict[str, object]
) -> None:
    server = world.server()
    await make(server, **SETTINGS)
    batch = batch_of(5)
    batch[-1] = batch[-1]._replace(**bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest) as refused:
        await put_run(server, batch)
    assert refused.value.field == field
    assert await drained(server) == {}


@pytest.mark.parametrize("begun_before", [False, True])
@pytest.mark.parametrize("committed", [False, True])
async def test_r06_r10_a_queue_made_again_knows_no_runs(world: World, committed: bool, begun_before: bool) -> None:
    """A server that remembers the old queue asks the old queue's ledger, and must be told so."""
    sleeper, other = world.server(), world.server()
    await make(sleeper, **SETTINGS)
    batch = batch_of(5)
    begun = await sleeper.engine.begin_run(world.account, QUEUE, run_of(batch))
    assert begun is not None
    if committed:
        assert await put_run(other, batch) == set()
    await other.engine.delete_queue(world.account, QUEUE)
    await make(other, **SETTINGS)
    if begun_before:
        with pytest.raises(OutcomeUnknown):
            await sleeper.engine.finish_run(begun, batch)
        assert await drained(other) == {}, "what was begun in the old queue ends there"
    assert await put_run(sleeper, batch) == set()
    assert await drained(other) == as_put(batch)
    assert await put_run(other, batch) is None


async def test_r06_r10_a_queue_that_is_deleted_while_a_run_is_put(world: World) -> None:
    slow, other = world.server(), world.server()
    await make(slow, **SETTINGS)
    batch = batch_of(7)

    async def meanwhile() -> None:
        await other.engine.delete_queue(world.account, QUEUE)

    changes = itertools.count()
    slow.store.next("change", LOGS, meanwhile, when=lambda change: next(changes) == 2)
    with pytest.raises(OutcomeUnknown):
        await put_run(slow, batch)
    with pytest.raises(QueueNotFound):
        await put_run(slow, batch)
    await make(other, **SETTINGS)
    assert await put_run(slow, batch) == set()
    assert await drained(other) == as_put(batch)


async def test_r10_equal_messages_without_keys_are_so_many(world: World) -> None:
    """In one run, in the next of its writer, and in another's."""
    server = world.server()
    await make(server, **SETTINGS)
    batch = [NewMessage(b"same", group="g")] * 3
    assert await put_run(server, batch) == set()
    assert await put_run(server, batch, "other") == set()
    second = await server.engine.begin_run(world.account, QUEUE, run_of(batch, block=1))
    assert second is not None
    assert await server.engine.finish_run(second, batch) == set()
    assert await drained(server) == {"g": [b"same"] * 9}


async def test_r12_a_run_stands_behind_what_was_put_before_and_before_what_comes_after(world: World) -> None:
    server = world.server()
    await make(server, **SETTINGS)
    batch = batch_of(4)
    for group in GROUPS:
        await server.put(QUEUE, b"before", key=f"before {group}", group=group)
    assert await put_run(server, batch) == set()
    for group in GROUPS:
        await server.put(QUEUE, b"after", key=f"after {group}", group=group)
    assert await drained(server) == {
        group: [b"before", *bodies, b"after"] for group, bodies in as_put(batch).items()
    }
