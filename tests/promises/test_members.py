"""Which servers there are, watched by R5: no wall clock says who lives, and no row stays behind."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.engine.members import FREE, Holdings, Member
from angelhair.engine.schema import MEMBERS
from angelhair.errors import StoreError, Unavailable
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT
from tests.nodes import BEAT, Node, live, slots
from tests.queues import HOUR, YEAR, World


async def test_all_see_all_in_the_same_order(world: World) -> None:
    nodes = [Node(world, number) for number in range(5)]
    await asyncio.gather(*(node.step() for node in nodes))
    await asyncio.gather(*(node.step() for node in nodes))
    lists = [await node.membership.look() for node in nodes]
    assert {member.id for member in lists[0]} == {node.id for node in nodes}
    assert all(seen == lists[0] for seen in lists)
    assert Member(nodes[3].id, nodes[3].presence, Holdings()) in lists[0]


async def test_more_than_a_group_of_slots(world: World) -> None:
    """Naive: one partition, or a look that stops at the last group it knew."""
    nodes = [Node(world, number) for number in range(2 * limits.MEMBER_GROUP + 3)]
    watcher = Node(world, 99)
    await watcher.step()
    for node in nodes:
        await node.step()
    assert {member.id for member in await watcher.membership.look()} == {node.id for node in [*nodes, watcher]}
    assert sorted(await slots(world)) == list(range(len(nodes) + 1))


async def test_a_goodbye_is_seen_at_once(world: World) -> None:
    stays, goes = Node(world, 1), Node(world, 2)
    await live(world, [stays, goes], 2 * BEAT)
    await goes.membership.leave()
    assert [member.id for member in await stays.membership.look()] == [stays.id]
    assert stays.membership.members.gone == {goes.id}


async def test_r5_who_dies_falls_out_after_a_bounded_time(world: World) -> None:
    """Naive: never, or by a TTL, which is a wall clock's word."""
    stays, dies = Node(world, 1), Node(world, 2)
    await live(world, [stays, dies], 4 * BEAT)
    await live(world, [stays], limits.MEMBER_MS)
    assert stays.sees == {stays.id, dies.id}
    await live(world, [stays], limits.MEMBER_LATE_MS - limits.MEMBER_MS)
    assert stays.sees == {stays.id}
    assert stays.membership.members.gone == {dies.id}


async def test_r5_wall_clocks_neither_kill_nor_keep_alive(world: World) -> None:
    nodes = [Node(world, 1), Node(world, 2, ahead_ms=YEAR), Node(world, 3, ahead_ms=-YEAR)]
    await live(world, nodes, 2 * BEAT)
    nodes[0].server.clock.ahead_ms = HOUR
    await live(world, nodes, 10 * limits.MEMBER_MS)
    for node in nodes:
        assert node.sees == {each.id for each in nodes}
    await live(world, nodes[1:], limits.MEMBER_LATE_MS)
    assert nodes[1].sees == nodes[2].sees == {nodes[1].id, nodes[2].id}


async def test_r5_who_did_not_look_saw_nobody_die(world: World) -> None:
    """Naive: the time between two looks counts, and a server that was paused takes all others for dead."""
    sleeper, awake = Node(world, 1), Node(world, 2)
    await live(world, [sleeper, awake], 2 * BEAT)
    # Both are without a store for an hour, or stand still.
    world.wait(HOUR)
    await sleeper.membership.look()
    assert sleeper.sees == {sleeper.id, awake.id}
    await live(world, [awake, sleeper], 2 * BEAT)
    assert sleeper.sees == awake.sees == {sleeper.id, awake.id}


async def test_who_was_thought_dead_comes_back(world: World) -> None:
    """Naive: its beats go on in a slot that another has, or it stays away for ever."""
    sleeper, awake = Node(world, 1), Node(world, 2)
    await live(world, [sleeper, awake], 2 * BEAT)
    await live(world, [awake], 2 * limits.MEMBER_LATE_MS)
    newcomer = Node(world, 3)
    await newcomer.step()
    assert awake.sees == {awake.id}
    await live(world, [sleeper, awake, newcomer], 2 * BEAT)
    for node in (sleeper, awake, newcomer):
        assert node.sees == {sleeper.id, awake.id, newcomer.id}
    assert awake.membership.members.gone == frozenset()


async def test_dead_rows_are_used_again(world: World) -> None:
    """Naive: a row for every process that ever lived. Thirty lives of a server that always dies elsewhere."""
    lasting = Node(world, 0)
    for number in range(1, 31):
        dies = Node(world, number)
        await live(world, [dies, lasting], BEAT)
        await live(world, [lasting], limits.MEMBER_LATE_MS)
    assert len(await slots(world)) == 2


async def test_a_process_that_starts_again_at_its_place_takes_its_slot_at_once(world: World) -> None:
    """Naive: one that dies at once, again and again, fills the list; and each is believed to live for a while."""
    other = Node(world, 0)
    await other.step()
    lives = [Node(world, 1) for _ in range(20)]
    for life in lives:
        await life.step()
        await other.step()
        assert other.sees == {other.id, life.id}
    assert len(await slots(world)) == 2
    assert other.membership.members.gone == {life.id for life in lives[:-1]}


async def test_two_that_say_the_same_place_both_stay(world: World) -> None:
    """Naive: each takes the other's slot for ever. Two machines may have the same name, and listen on loopback."""
    one, other = Node(world, 1), Node(world, 1)
    await live(world, [one, other], 6 * BEAT)
    assert one.sees == other.sees == {one.id, other.id}


async def test_many_start_at_the_same_moment(world: World) -> None:
    nodes = [Node(world, number) for number in range(8)]
    await asyncio.gather(*(node.step() for node in nodes))
    assert {row["member"] for row in (await slots(world)).values()} == {node.id for node in nodes}


@pytest.mark.parametrize("fault", [LOSE_ANSWER, ARRIVE_LATE])
async def test_an_announcement_of_unknown_outcome_is_found_again(world: World, fault: str) -> None:
    """Naive: it takes a second slot, and one of the two looks like a server that has died."""
    node = Node(world, 1)
    node.server.store.next("change", MEMBERS, fault, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(StoreError):
        await node.step()
    node.server.store.heal()
    await node.server.store.land()
    await live(world, [node], 3 * BEAT)
    taken = [row for row in (await slots(world)).values() if row["member"] == node.id]
    assert len(taken) == 1 and node.sees == {node.id}


@pytest.mark.parametrize("fault", [LOSE_ANSWER, ARRIVE_LATE, NEVER_SENT])
async def test_a_beat_that_fails_costs_no_slot(world: World, fault: str) -> None:
    node, other = Node(world, 1), Node(world, 2)
    await live(world, [node, other], BEAT)
    node.server.store.next("change", MEMBERS, fault, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(StoreError):
        await node.step()
    node.server.store.heal()
    await live(world, [other, node], limits.MEMBER_LATE_MS)
    await node.server.store.land()
    await live(world, [other, node], BEAT)
    assert other.sees == {node.id, other.id}
    assert sorted(await slots(world)) == [0, 1]


async def test_a_beat_that_lands_after_the_goodbye_brings_nobody_back(world: World) -> None:
    node, other = Node(world, 1), Node(world, 2)
    await live(world, [node, other], BEAT)
    node.server.store.next("change", MEMBERS, ARRIVE_LATE, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(StoreError):
        await node.step()
    node.server.store.heal()
    await node.membership.leave()
    await node.server.store.land()
    assert [member.id for member in await other.membership.look()] == [other.id]


async def test_a_goodbye_finds_the_beat_that_was_given_up(world: World) -> None:
    """A server that stops ends its beat in the middle: it may have landed."""
    node, other = Node(world, 1), Node(world, 2)
    await live(world, [node, other], BEAT)
    node.server.store.next("change", MEMBERS, LOSE_ANSWER, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(StoreError):
        await node.step()
    node.server.store.heal()
    await node.membership.leave()
    assert {row["member"] for row in (await slots(world)).values()} == {FREE, other.id}


async def test_the_list_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMBERS_MAXIMUM", limits.MEMBER_GROUP)
    nodes = [Node(world, number) for number in range(limits.MEMBER_GROUP)]
    for node in nodes:
        await node.step()
    late = Node(world, 99)
    with pytest.raises(Unavailable, match="there are 16 servers already"):
        await late.step()
    await nodes[0].membership.leave()
    await late.step()
    assert late.id in {member.id for member in await late.membership.look()}


async def test_an_older_look_does_not_undo_a_newer(world: World) -> None:
    stays, goes = Node(world, 1), Node(world, 2)
    await live(world, [stays, goes], BEAT)

    async def meanwhile() -> None:
        await goes.membership.leave()
        assert [member.id for member in await stays.membership.look()] == [stays.id]

    stays.server.store.next("read", MEMBERS, meanwhile, after=True)
    assert [member.id for member in await stays.membership.look()] == [stays.id]
    assert stays.sees == {stays.id}
