"""R5, R6, R11, R13: accounts, graves, lanes, leases and members that two servers change at the same time."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.engine import accounts, places
from angelhair.engine.members import FREE
from angelhair.engine.schema import ACCOUNTS, LEASES, MEMBERS, POINTERS, QUEUES, SEQUENCES
from angelhair.engine.store import Change, Span
from angelhair.errors import InvalidReceipt, InvalidRequest, OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.nodes import BEAT, Node, live, slots
from tests.queues import MINUTE, SECOND, World, succeeded

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": SECOND, "history_ms": 0}
FOR_EVER = 1_000


# --- accounts ---------------------------------------------------------------------------------------------------------


async def an_account(world: World) -> accounts.Account:
    name = f"shop-{world.identities.fresh()}"
    return await accounts.create_account(world.store, name, None, world.identities, world.dial.now())


async def test_an_account_that_another_has_deleted_meanwhile_is_not_deleted_twice(world: World) -> None:
    """Who comes second hears that there is none; nothing of it comes back."""
    server, shop = world.server(), await an_account(world)

    async def faster() -> None:
        await accounts.delete_account(world.store, shop.id)

    server.store.next("read", QUEUES, faster)
    with pytest.raises(InvalidRequest, match="there is no account"):
        await accounts.delete_account(server.store, shop.id)
    assert shop not in await accounts.read_accounts(world.store)


@pytest.mark.parametrize("lost", [False, True])
async def test_accounts_that_others_change_all_the_time_are_not_said_to_be_changed(world: World, lost: bool) -> None:
    """Nor that they are not, after an answer that was lost."""
    server, shop = world.server(), await an_account(world)
    others: list[accounts.Account] = []

    async def faster() -> None:
        others.append(await an_account(world))

    if lost:
        server.store.next("change", ACCOUNTS, NEVER_SENT)
    server.store.next("change", ACCOUNTS, faster, times=FOR_EVER)
    with pytest.raises(OutcomeUnknown if lost else Unavailable):
        await accounts.delete_account(server.store, shop.id)
    known = await accounts.read_accounts(world.store)
    assert len(others) == limits.PUT_ROUNDS and {shop, *others} <= set(known)
    for one in (shop, *others):
        await accounts.delete_account(world.store, one.id)


# --- graves -----------------------------------------------------------------------------------------------------------


async def test_r06_two_that_bury_the_same_queue_leave_nothing(world: World) -> None:
    """R6, R14: one is refused where the other has raised the floor, and goes on from there."""
    server, other = world.server(), world.server()
    queue = await server.create("orders", **SETTINGS)
    await server.put("orders", count=9)
    await server.engine.delete_queue(world.account, "orders")

    async def faster() -> None:
        assert await other.engine.bury_step()

    rule = server.store.next("change", POINTERS, faster, when=lambda change: change.rows[0].key == "floor")
    await server.bury()
    assert rule.happened == 1 and queue.incarnation not in await server.graves()
    partitions = [places.pointers(queue.incarnation, 0)]
    partitions += [places.bodies(queue.incarnation, 0, bucket) for bucket in range(6)]
    assert not any(found.rows for found in await world.store.read([Span(partition) for partition in partitions]))


@pytest.mark.parametrize(("verb", "table"), [("change", SEQUENCES), ("drop", POINTERS)])
async def test_r06_a_lane_that_could_not_be_forgotten_is_forgotten_later(
    world: World, verb: str, table: object
) -> None:
    """R6: the grave stays until all of it is gone."""
    server = world.server()
    queue = await server.create("orders", **SETTINGS)
    await server.put("orders", count=2)
    await server.engine.delete_queue(world.account, "orders")
    rule = server.store.next(
        verb, table, UNAVAILABLE,  # type: ignore[arg-type]
        when=lambda item: (item if verb == "drop" else item.partition).key.startswith(queue.incarnation), times=2,
    )
    while rule.times:
        assert await server.engine.bury_step(), "there is more to do"
        assert queue.incarnation in await server.graves()
    await server.bury()
    assert queue.incarnation not in await server.graves()
    (left,) = await world.store.read([Span(places.pointers(queue.incarnation, 0))])
    assert not left.rows


# --- lanes and leases -------------------------------------------------------------------------------------------------


def ending(change: Change) -> bool:
    """A lane is sealed for good, provided that no id was taken in it."""
    return any("next" in row.expect and (row.values or {}).get("sealed") == 1 for row in change.rows)


async def test_r11_what_was_put_while_a_lane_was_being_ended_is_read(world: World) -> None:
    """R11, A1: by a server that slept since before the lane was sealed, which is known to the catalog only."""
    server, sleeper = world.server(), world.server()
    queue = await server.create("orders", lanes=2, **SETTINGS)
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleeps() -> None:
        asleep.set()
        await awake.wait()

    async def puts() -> list[MessageId]:
        return [succeeded((await sleeper.put_outcomes("orders", [NewMessage(b"late")]))[0]) for _ in range(2)]

    last = places.sequence(queue.incarnation, 1)
    sleeper.store.next("change", SEQUENCES, sleeps, when=lambda change: change.partition == last)
    putting = asyncio.create_task(puts())
    await asleep.wait()
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=FOR_EVER)
    with pytest.raises(OutcomeUnknown):
        await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    server.store.heal()

    async def wakes() -> None:
        awake.set()
        await putting

    rule = server.store.next("change", SEQUENCES, wakes, when=ending)
    got = 0
    for _ in range(12):
        got += len(await server.drain("orders"))
        await server.work("orders", 5 * SECOND)
    assert rule.happened == 1 and 1 in {one.lane for one in await putting}
    assert got == 2
    assert list((await world.queue("orders")).lanes) == [0]


async def test_r11_a_lane_is_ended_though_others_change_the_queue_meanwhile(world: World) -> None:
    """R11: naive, to write the queue back as it was, and lose what the other has set."""
    server, other = world.server(), world.server()
    await server.create("orders", lanes=2, **SETTINGS)
    await server.put("orders", count=1)
    await server.engine.change_queue(world.account, "orders", {"lanes": 1})

    async def changed() -> None:
        await other.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": 7 * SECOND})

    rule = server.store.next("change", QUEUES, changed)
    for _ in range(12):
        await server.drain("orders")
        await server.work("orders", 5 * SECOND)
    queue = await world.queue("orders")
    assert rule.happened == 1
    assert (list(queue.lanes), queue.settings.visibility_timeout_ms) == ([0], 7 * SECOND)


async def test_r05_a_lease_that_was_taken_though_the_answer_was_lost_is_found_to_be_ours(world: World) -> None:
    """R5: it is not watched as if it were another's; the lanes end up shared."""
    rich, poor = world.server(), world.server()
    await rich.create("orders", lanes=4)
    for _ in range(3):
        await rich.step("orders")
    await poor.step("orders")
    poor.store.next("change", LEASES, LOSE_ANSWER, times=1 + limits.SETTLE_ATTEMPTS)
    for _ in range(12):
        world.wait(SECOND)
        await poor.engine.step(world.account, "orders")
        await rich.engine.step(world.account, "orders")
    held = await holders_of(world)
    assert {held.count(holder) for holder in held} == {2} and len(set(held)) == 2


async def holders_of(world: World) -> list[object]:
    queue = await world.queue("orders")
    found = await world.store.read([Span(places.leases(queue.incarnation, lane)) for lane in queue.lanes])
    return [part.rows[0].values.get("holder") for part in found]


async def test_r06_a_server_that_wants_its_share_of_a_queue_that_is_gone_takes_nothing(world: World) -> None:
    """R6: the leases that it watched have been dropped with the queue."""
    rich, poor = world.server(), world.server()
    queue = await rich.create("orders", lanes=4)
    for _ in range(3):
        await rich.step("orders")
    await poor.engine.step(world.account, "orders")
    await rich.engine.delete_queue(world.account, "orders")
    await rich.bury()
    with pytest.raises(QueueNotFound):
        await poor.engine.step(world.account, "orders")
    partitions = [place(queue.incarnation, lane) for lane in range(4) for place in (places.pointers, places.sequence)]
    for found in await world.store.read([Span(partition) for partition in partitions]):
        assert all(row.values.get("deleted") for row in found.rows), "nothing but the mark that it is deleted"
    await rich.create("orders")
    await poor.put("orders", b"new")
    assert [item.body for item in await rich.drain("orders")] == [b"new"]


async def test_a_server_that_has_looked_into_all_lanes_begins_with_its_own(world: World) -> None:
    """Who is at the end of its own lanes looks into the others' anyway: they need no turn of their own then."""
    mine, theirs = world.server(), world.server()
    await mine.create("orders", lanes=2)
    for _ in range(2 * limits.LEASE_MS // SECOND):
        for server in (mine, theirs):
            await server.engine.step(world.account, "orders")
        assert await mine.receive("orders") == []
        world.wait(SECOND)
    held = [(await holders_of(world)).index(server.engine.memory.server) for server in (mine, theirs)]
    assert sorted(held) == [0, 1]
    for server in (mine, theirs):
        await server.put("orders", count=3)
    first = await mine.receive("orders", 3)
    assert {delivery.id.lane for delivery in first} == {held[0]}
    assert len(await theirs.receive("orders", 10)) == 3


async def test_messages_with_groups_in_more_queues_than_a_server_keeps_count_of(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it knows of who puts how much is only there for fairness: nothing is lost with it."""
    monkeypatch.setattr(limits, "FAIR_QUEUES", 1)
    server = world.server()
    for name in ("x", "y", "z"):
        await server.create(name)
    for turn in range(2):
        for name in ("x", "y", "z"):
            await server.put(name, f"{name}{turn}".encode(), group="g")
    for name in ("x", "y", "z"):
        assert [item.body.decode() for item in await server.drain(name)] == [f"{name}0", f"{name}1"]


# --- members ----------------------------------------------------------------------------------------------------------


async def test_a_server_that_is_always_too_late_for_a_slot_says_so_and_comes_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MEMBER_ROUNDS", 2)
    late, others = Node(world, 1), [Node(world, number) for number in (2, 3)]
    waiting = iter(others)

    async def faster() -> None:
        await next(waiting).step()

    late.server.store.next("change", MEMBERS, faster, times=2)
    with pytest.raises(Unavailable):
        await late.step()
    assert {row["member"] for row in (await slots(world)).values()} == {node.id for node in others}
    await late.step()
    assert late.sees == {late.id, *(node.id for node in others)}


async def test_a_goodbye_of_who_does_not_know_whether_it_was_announced_frees_its_slot_and_no_other(
    world: World,
) -> None:
    stays, goes = Node(world, 1), Node(world, 2)
    await stays.step()
    goes.server.store.next("change", MEMBERS, LOSE_ANSWER, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(OutcomeUnknown):
        await goes.step()
    goes.server.store.heal()
    await goes.membership.leave()
    assert sorted(str(row["member"]) for row in (await slots(world)).values()) == sorted([FREE, stays.id])
    assert [member.id for member in await stays.membership.look()] == [stays.id]


async def test_r05_a_goodbye_that_does_not_get_through_is_seen_when_the_beats_stop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R5: a beat had landed of which it did not hear, and it had no time to try its goodbye again."""
    stays, goes = Node(world, 1), Node(world, 2)
    await live(world, [stays, goes], 2 * BEAT)
    goes.server.store.next("change", MEMBERS, LOSE_ANSWER, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(OutcomeUnknown):
        await goes.step()
    goes.server.store.heal()
    monkeypatch.setattr(limits, "MEMBER_ROUNDS", 1)
    await goes.membership.leave()
    await stays.step()
    assert stays.sees == {stays.id, goes.id}
    await live(world, [stays], 2 * limits.MEMBER_LATE_MS)
    assert stays.sees == {stays.id}
    assert sorted(str(row["member"]) for row in (await slots(world)).values()) == sorted([FREE, stays.id])


async def test_of_those_that_are_gone_the_last_are_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers come and go for years; what is remembered of them is bounded."""
    monkeypatch.setattr(limits, "MEMBER_GROUP", 1)
    monkeypatch.setattr(limits, "MEMBERS_MAXIMUM", 3)
    stays, gone = Node(world, 0), []
    await stays.step()
    for number in range(1, 6):
        goes = Node(world, number)
        await live(world, [goes, stays], BEAT)
        await goes.membership.leave()
        await stays.step()
        gone.append(goes.id)
    assert stays.membership.members.gone == set(gone[-3:])
    assert stays.sees == {stays.id}


async def test_r13_a_receipt_that_was_damaged_on_its_way_settles_nothing(world: World) -> None:
    """R13: as long as it was, with a character in it that no receipt has."""
    server = world.server()
    await server.create("orders")
    await server.put("orders", b"a")
    (delivery,) = await server.receive("orders", 1, MINUTE)
    damaged = "!" + delivery.receipt[1:-3] + "!!!"
    (outcome,) = await server.engine.ack(world.account, "orders", [damaged])
    assert isinstance(outcome, InvalidReceipt)
    world.wait(MINUTE)
    assert [item.body for item in await server.receive("orders")] == [b"a"]
