"""Where several promises meet a bound or a failure: contention, many entries at once, stores that fail half-way.

Bounds are lowered where reaching them would take a hundred thousand messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from angelhair import limits
from angelhair.engine.puts import Reservation
from angelhair.engine.schema import BODIES, GRAVES, KEYS, POINTERS, QUEUES, SEQUENCES, STATES
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueNotFound, StaleReceipt, Unavailable
from angelhair.model import MessageId, NewMessage, QueueSettings
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE, FaultyStore, Rule
from tests.promises.steps import finish_around
from tests.queues import DAY, HOUR, MINUTE, SECOND, Server, World, numbers

ALWAYS = 10_000


def disturb(store: FaultyStore, verb: str, table: object, action: Callable[[], Awaitable[object]]) -> Rule:
    """Somebody else gets in between, every single time."""

    async def run() -> None:
        await action()

    return store.next(verb, table, run, times=ALWAYS)  # type: ignore[arg-type]


# --- contention that never ends: a typed error, not a loop ------------------------------------------------------------


async def test_a04_reservation_that_always_loses(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    disturb(server.store, "change", SEQUENCES, lambda: other.put("orders"))
    with pytest.raises(Unavailable, match="too many servers reserve ids"):
        await server.put("orders", b"unlucky")
    server.store.heal()
    assert {item.body for item in await server.drain("orders")} == {b"-"}


async def test_a03_change_that_always_loses(world: World) -> None:
    """Naive: condition on the delivery alone, so that two changes overwrite each other unseen."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    disturb(server.store, "change", STATES, lambda: other.extend("orders", delivery, MINUTE))
    assert isinstance(await server.extend("orders", delivery, HOUR), Unavailable)
    server.store.heal()
    server.store.next("read", STATES, UNAVAILABLE)
    assert isinstance(await server.extend("orders", delivery, HOUR), Unavailable)
    assert await server.extend("orders", delivery, HOUR) is None


async def test_r06_name_that_is_always_taken_first(world: World) -> None:
    server, other = world.server(), world.server()

    take = lambda: other.engine.create_queue(world.account, "orders", QueueSettings())  # noqa: E731
    disturb(server.store, "change", QUEUES, take)
    # Somebody was first: with the same settings it is the same queue.
    assert (await server.engine.create_queue(world.account, "orders", QueueSettings()))[1] is False
    server.store.heal()
    await other.engine.delete_queue(world.account, "orders")
    disturb(server.store, "change", QUEUES, take)
    disturb(server.store, "drop", SEQUENCES, lambda: other.engine.delete_queue(world.account, "orders"))
    with pytest.raises(Unavailable, match="taken and freed"):
        await server.engine.create_queue(world.account, "orders", QueueSettings())


async def test_r06_settings_that_are_always_changed_first(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    delays = iter(range(1, ALWAYS))

    async def change() -> None:
        await other.engine.change_queue(world.account, "orders", {"delay_ms": next(delays)})

    disturb(server.store, "change", QUEUES, change)
    with pytest.raises(Unavailable, match="changed by others"):
        await server.engine.change_queue(world.account, "orders", {"history_ms": 7})
    server.store.heal()
    disturb(server.store, "change", QUEUES, lambda: other.engine.delete_queue(world.account, "orders"))
    with pytest.raises(QueueNotFound):
        await server.engine.change_queue(world.account, "orders", {"history_ms": 7})


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT])
async def test_r06_catalog_change_of_unknown_outcome(world: World, fault: str) -> None:
    """Naive: report an error for a queue that exists, or that was deleted."""
    server, other = world.server(), world.server()
    server.store.next("change", QUEUES, fault)
    queue = await server.create("orders")
    server.store.next("change", QUEUES, fault)
    changed = await server.engine.change_queue(world.account, "orders", {"history_ms": 7})
    assert (changed.incarnation, changed.version) == (queue.incarnation, 2)
    assert (await world.queue("orders")).settings.history_ms == 7
    server.store.next("change", QUEUES, fault)
    await server.engine.delete_queue(world.account, "orders")
    with pytest.raises(QueueNotFound):
        await other.put("orders")


@pytest.mark.parametrize("table", [QUEUES, SEQUENCES, POINTERS, GRAVES])
async def test_r06_catalog_errors_reach_the_caller(world: World, table: object) -> None:
    server = world.server()
    await server.create("orders", lanes=1)
    server.store.next("change", table, UNAVAILABLE, times=ALWAYS)  # type: ignore[arg-type]
    failed = 0
    for action in (
        server.engine.create_queue(world.account, "other", QueueSettings()),
        server.engine.change_queue(world.account, "orders", {"lanes": 2}),
        server.engine.delete_queue(world.account, "orders"),
    ):
        try:
            await action
        except (Unavailable, OutcomeUnknown):
            failed += 1
    assert failed >= 1
    server.store.heal()
    assert (await server.engine.create_queue(world.account, "other", QueueSettings()))[0].status == "active"


async def test_r06_deleted_by_another_in_between(world: World) -> None:
    """Two delete at once, the slower one finds the name free or taken by a new queue, and leaves that alone."""
    server, other = world.server(), world.server()
    await server.create("orders")

    async def replace() -> None:
        await other.engine.delete_queue(world.account, "orders")
        await other.create("orders", bucket_size=7)

    server.store.next("change", QUEUES, replace)
    await server.engine.delete_queue(world.account, "orders")
    assert (await world.queue("orders")).settings.bucket_size == 7


async def test_purge_while_others_put(world: World) -> None:
    """The mark covers what was there when it was raised, however often the sequence moves meanwhile."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", count=3)

    async def put_and_purge() -> None:
        await other.put("orders")
        await other.engine.purge(world.account, "orders")

    server.store.next("change", POINTERS, put_and_purge)
    await server.engine.purge(world.account, "orders")
    assert (await world.marks("orders")).purged == 4
    assert await server.receive("orders", 10) == []


async def test_a14_archive_mark_raised_by_two(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=1, archive=True)
    await server.put("orders", count=4)
    await server.drain("orders")
    await server.work("orders", MINUTE)
    server.store.next("change", POINTERS, _of(lambda: other.engine.archived_up_to(world.account, "orders", 0, 1)))
    # Refused, because it was not where it had been seen: the answer is where it stands.
    assert await server.engine.archived_up_to(world.account, "orders", 0, 2) == 1
    server.store.next("change", POINTERS, _of(lambda: other.engine.archived_up_to(world.account, "orders", 0, 4)))
    assert await server.engine.archived_up_to(world.account, "orders", 0, 3) >= 3
    assert (await world.marks("orders")).archived == 4


def _of(action: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await action()

    return run


# --- acks of what is gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("history_ms", "words"), [(DAY, "expired or was purged"), (0, "gone")])
async def test_a03_ack_of_a_purged_message(world: World, history_ms: int, words: str) -> None:
    server = world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND, history_ms=history_ms)
    await server.put("orders", count=3)
    (delivery, _) = await server.receive("orders", 2)
    await server.engine.purge(world.account, "orders")
    await finish_around(server)
    assert (await world.marks("orders")).repair == 1
    (outcome,) = await server.ack("orders", delivery)
    assert isinstance(outcome, StaleReceipt)
    assert words in str(outcome)


# --- stores that fail half-way ----------------------------------------------------------------------------------------


async def settled_with_a_gap(server: Server, **settings: int) -> MessageId:
    """Bucket 0 is final and not finished; its id 1 is taken and not written."""
    chosen = {"bucket_size": 2, "repair_timeout_ms": SECOND, "visibility_timeout_ms": HOUR, **settings}
    await server.create("orders", **chosen)
    await server.put("orders")
    reservation = await server.engine.reserve(server.world.account, "orders", 1)
    await server.put("orders")
    await server.receive("orders", 2)
    for _ in range(4):
        await server.work("orders", 3 * SECOND)
        await server.receive("orders", 2)
    assert (await server.world.marks("orders")).settled == 1
    return MessageId(0, reservation.first)


async def put_at(server: Server, place: MessageId, *bodies: bytes) -> list[MessageId | AngelhairError]:
    queue = await server.engine.find_queue(server.world.account, "orders")
    lane = server.engine.memory.lane(queue, place.lane)
    messages = [NewMessage(body) for body in bodies]
    return await server.engine.put_reserved(Reservation(queue, lane, place.number), messages)


@pytest.mark.parametrize(("verb", "fault"), [("read", UNAVAILABLE), ("change", UNAVAILABLE), ("change", NEVER_SENT)])
async def test_a06_admission_that_fails_is_unknown_and_delivered_later(world: World, verb: str, fault: str) -> None:
    """The bytes are there and could not be admitted: nobody may say that it did not happen. Repair admits them."""
    server, putter = world.server(), world.server()
    place = await settled_with_a_gap(server)
    putter.store.next(verb, STATES, fault, times=ALWAYS)
    (outcome,) = await put_at(putter, place, b"half-way")
    assert type(outcome) is OutcomeUnknown
    await server.work("orders", 2 * MINUTE, every_ms=5 * SECOND)
    assert [item.body for item in await server.receive("orders", 5)] == [b"half-way"]


async def test_a06_admission_against_many(world: World) -> None:
    """Others admit into the same bucket all the time; each raises the flag that ours is conditioned on."""
    server, putter = world.server(), world.server()
    await server.create("orders", bucket_size=100, repair_timeout_ms=SECOND, visibility_timeout_ms=HOUR)
    await server.put("orders")
    reservation = await server.engine.reserve(world.account, "orders", 99)
    await server.put("orders")
    await server.receive("orders", 2)
    for _ in range(4):
        await server.work("orders", 3 * SECOND)
        await server.receive("orders", 2)
    others = iter(range(2, 100))
    disturb(putter.store, "change", STATES, lambda: put_at(server, MessageId(0, next(others)), b"other"))
    (outcome,) = await put_at(putter, MessageId(0, reservation.first), b"crowded out")
    assert type(outcome) is OutcomeUnknown
    putter.store.heal()
    bodies = [item.body for item in await server.drain("orders")]
    await server.work("orders", 2 * MINUTE, every_ms=5 * SECOND)
    bodies += [item.body for item in await server.drain("orders")]
    assert sorted(bodies) == sorted([b"other"] * limits.ADMIT_ROUNDS + [b"crowded out"])


async def test_a06_more_late_writes_than_one_change_takes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGE_ROWS", 3)
    server = world.server()
    await server.create("orders", bucket_size=12, repair_timeout_ms=SECOND, visibility_timeout_ms=HOUR)
    await server.put("orders")
    reservation = await server.engine.reserve(world.account, "orders", 11)
    await server.put("orders")
    deliveries = await server.receive("orders", 2)
    for _ in range(4):
        await server.work("orders", 3 * SECOND)
        await server.receive("orders", 2)
    outcomes = await put_at(server, MessageId(0, reservation.first), *[b"late"] * 11)
    assert outcomes == [MessageId(0, number) for number in range(1, 12)]
    deliveries += await server.receive("orders", 20)
    assert sorted(numbers(deliveries)) == list(range(13))
    assert await server.ack("orders", *deliveries) == [None] * 13


async def test_a01_purged_and_deleted_under_a_keyed_put(world: World) -> None:
    """A key's message is under way when its queue is deleted: an error, and it is in no queue of that name."""
    server, other = world.server(), world.server()
    await server.create("orders")
    server.store.next("write", BODIES, _of(lambda: delete_and_bury(other)))
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-", key="k")])
    assert isinstance(outcome, AngelhairError)
    await other.create("orders")
    assert await other.receive("orders", 5) == []


async def delete_and_bury(server: Server) -> None:
    await server.engine.delete_queue(server.world.account, "orders")
    await server.bury()


async def test_r10_key_that_keeps_meeting_finished_buckets(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=1, repair_timeout_ms=SECOND, history_ms=0)

    async def finish() -> None:
        await other.put("orders")
        await finish_around(other)

    disturb(server.store, "write", BODIES, finish)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-", key="k")])
    assert isinstance(outcome, Unavailable | OutcomeUnknown)


async def test_r10_key_that_expires_between_two_looks(world: World) -> None:
    """Refused because the key stood there, and the answer shows that it has gone meanwhile: start again."""
    server, other = world.server(), world.server()
    await server.create("orders", dedup_window_ms=SECOND)
    await other.put("orders", b"first", key="k")
    server.store.next("change", KEYS, NEVER_SENT)
    world.wait(2 * SECOND)
    assert len(await server.put("orders", b"second", key="k")) == 1
    assert [item.body for item in await server.drain("orders")] == [b"first", b"second"]


async def test_acks_and_changes_of_several_lanes_fail_apart(world: World) -> None:
    """One lane's store error concerns that lane's receipts only."""
    server = world.server()
    await server.create("orders", lanes=2)
    for _ in range(4):
        await server.put("orders")
    deliveries = await server.receive("orders", 4)
    first_lane = deliveries[0].id.lane
    server.store.next("change", STATES, UNAVAILABLE, when=lambda change: f".{first_lane}." in change.partition.key)
    outcomes = await server.ack("orders", *deliveries)
    assert [isinstance(item, Unavailable) for item in outcomes] == [item.id.lane == first_lane for item in deliveries]


async def test_a02_wake_entry_that_cannot_be_written_fails_the_change(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    server.store.next("write", None, UNAVAILABLE, times=ALWAYS)
    assert isinstance(await server.extend("orders", delivery, 10 * MINUTE), Unavailable)
    server.store.heal()
    world.wait(31 * SECOND)
    assert numbers(await server.receive("orders")) == [0]
