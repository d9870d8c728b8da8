"""Who may say that a server is dead, and what becomes of slots that two want at once (R5)."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.members import FREE
from angelhair.engine.schema import MEMBERS
from angelhair.errors import StoreError
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.nodes import BEAT, Node, live, slots
from tests.queues import HOUR, SECOND, World


async def test_r5_a_store_that_is_away_kills_nobody(world: World) -> None:
    """Naive: what was watched before the outage is added to what is watched after it, or all of the time between."""
    watcher, other = Node(world, 1), Node(world, 2)
    await live(world, [watcher, other], 2 * BEAT)
    await live(world, [watcher], limits.MEMBER_MS - BEAT)
    for node in (watcher, other):
        node.server.store.next("change", MEMBERS, UNAVAILABLE, times=1_000_000)
        node.server.store.next("read", MEMBERS, UNAVAILABLE, times=1_000_000)
    for _ in range(10):
        for node in (watcher, other):
            with pytest.raises(StoreError):
                await node.step()
        world.wait(HOUR)
    for node in (watcher, other):
        node.server.store.heal()
    await live(world, [watcher], limits.MEMBER_MS - BEAT)
    assert watcher.sees == {watcher.id, other.id}
    await live(world, [watcher, other], limits.MEMBER_LATE_MS)
    assert watcher.sees == other.sees == {watcher.id, other.id}
    assert watcher.membership.members.gone == other.membership.members.gone == frozenset()


async def test_r5_who_cannot_beat_itself_judges_nobody(world: World) -> None:
    """Naive: every look counts. If the store can be read and takes no beats, who is looked at often kills all."""
    watcher, other = Node(world, 1), Node(world, 2)
    await live(world, [watcher, other], 2 * BEAT)
    for node in (watcher, other):
        node.server.store.next("change", MEMBERS, UNAVAILABLE, times=1_000_000)
    for _ in range(60):
        for node in (watcher, other):
            with pytest.raises(StoreError):
                await node.step()
            assert len(await node.membership.look()) == 2
        world.wait(SECOND)
    for node in (watcher, other):
        node.server.store.heal()
    await live(world, [watcher], BEAT)
    assert watcher.sees == {watcher.id, other.id}


async def test_r5_looks_of_others_do_not_hold_up_a_judgement(world: World) -> None:
    """Naive: a look that a later one has overtaken is thrown away. Who asks all the time keeps the dead in the list."""
    watcher, dies = Node(world, 1), Node(world, 2)
    await live(world, [watcher, dies], 2 * BEAT)

    async def ask() -> None:
        await watcher.membership.look()

    for _ in range(1 + limits.MEMBER_LATE_MS // BEAT):
        watcher.server.store.next("read", MEMBERS, ask, after=True)
        await watcher.step()
        watcher.server.store.heal()
        world.wait(BEAT)
    assert watcher.sees == {watcher.id}


async def test_r5_who_has_fallen_out_stays_out_though_the_watcher_begins_anew(world: World) -> None:
    """Naive: who begins to watch anew counts all whose slots are not free yet, and lists the dead again."""
    first, second, dies = (Node(world, number) for number in range(3))
    await live(world, [first, second, dies], 2 * BEAT)
    for node in (first, second):
        node.server.store.next("change", MEMBERS, UNAVAILABLE, times=1_000_000, when=_frees)
    for _ in range(-(-limits.MEMBER_LATE_MS // BEAT)):
        for node in (first, second):
            try:
                await node.step()
            except StoreError:
                assert node.id == min(first.id, second.id)
        world.wait(BEAT)
    assert first.sees == second.sees == {first.id, second.id}
    world.wait(HOUR)
    await second.step()
    assert dies.id in {row["member"] for row in (await slots(world)).values()}
    assert dies.id not in second.sees


def _frees(change: object) -> bool:
    (row,) = change.rows  # type: ignore[attr-defined]
    return bool(row.values.get("member") == FREE)


# --- slots ------------------------------------------------------------------------------------------------------------


async def test_two_that_take_the_same_slot_at_once_have_one_each(world: World) -> None:
    """Naive: a blind write, or a look and then a write. The later has the slot, the earlier beats in it for ever."""
    one, other = Node(world, 1), Node(world, 2)
    one.server.store.next("change", MEMBERS, other.step)
    await one.step()
    assert {slot: row["member"] for slot, row in (await slots(world)).items()} == {0: other.id, 1: one.id}
    await live(world, [one, other], 2 * limits.MEMBER_LATE_MS)
    assert one.sees == other.sees == {one.id, other.id}


async def test_a_sleeper_that_wakes_as_its_slot_is_taken_keeps_it(world: World) -> None:
    """Naive: what was judged a moment ago still holds. It beats between the newcomer's look and its write."""
    sleeper, awake = Node(world, 1), Node(world, 2)
    await live(world, [sleeper, awake], 2 * BEAT)
    newcomer = Node(world, 3)
    for _ in range(-(-limits.MEMBER_LATE_MS // BEAT)):
        await newcomer.membership.look(judging=True)
        world.wait(BEAT)
    assert sleeper.id not in newcomer.sees
    newcomer.server.store.next("change", MEMBERS, sleeper.step)
    await newcomer.step()
    owners = {slot: row["member"] for slot, row in (await slots(world)).items()}
    assert owners[0] == sleeper.id and list(owners.values()).count(newcomer.id) == 1
    assert newcomer.sees >= {newcomer.id, sleeper.id}


async def test_a_sleeper_that_wakes_as_its_slot_is_freed_keeps_it(world: World) -> None:
    sleeper, awake = Node(world, 1), Node(world, 0)
    await live(world, [awake, sleeper], 2 * BEAT)
    awake.server.store.next("change", MEMBERS, sleeper.step, when=_frees)
    await live(world, [awake], limits.MEMBER_LATE_MS)
    assert not awake.server.store.rules[0].times, "it was about to be freed"
    assert sleeper.id in {row["member"] for row in (await slots(world)).values()}
    await live(world, [awake, sleeper], BEAT)
    assert awake.sees == sleeper.sees == {awake.id, sleeper.id}


# --- goodbyes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [NEVER_SENT, UNAVAILABLE])
async def test_one_whose_goodbye_is_lost_falls_out(world: World, fault: str) -> None:
    stays, goes = Node(world, 1), Node(world, 2)
    await live(world, [stays, goes], 2 * BEAT)
    goes.server.store.next("change", MEMBERS, fault, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(StoreError):
        await goes.membership.leave()
    await live(world, [stays], limits.MEMBER_LATE_MS)
    assert stays.sees == {stays.id}
    assert {row["member"] for row in (await slots(world)).values()} == {stays.id, FREE}


async def test_a_goodbye_whose_answer_is_lost_counts(world: World) -> None:
    stays, goes = Node(world, 1), Node(world, 2)
    await live(world, [stays, goes], 2 * BEAT)
    goes.server.store.next("change", MEMBERS, LOSE_ANSWER)
    await goes.membership.leave()
    assert [member.id for member in await stays.membership.look()] == [stays.id]


async def test_a_goodbye_finds_the_announcement_that_was_given_up(world: World) -> None:
    """Naive: who has no slot has nothing to say. A server that is stopped as it starts is in the list for a while."""
    goes, stays = Node(world, 1), Node(world, 2)
    goes.server.store.next("change", MEMBERS, ARRIVE_LATE, times=1 + limits.SETTLE_ATTEMPTS)
    with pytest.raises(StoreError):
        await goes.step()
    await goes.server.store.land()
    await goes.membership.leave()
    assert await stays.membership.look() == []


# --- what it costs ----------------------------------------------------------------------------------------------------


async def test_a_step_is_one_conditional_write_and_one_read(world: World) -> None:
    """Thirty of each in a minute; nothing is deleted and nothing is set to nothing, which Cassandra would remember."""
    nodes = [Node(world, number) for number in range(3)]
    await live(world, nodes, 2 * BEAT)
    store, changes = nodes[0].server.store, []

    async def nothing() -> None:
        pass

    rules = [store.next(verb, None, nothing, times=1_000_000) for verb in ("write", "drop")]
    counted = store.next("change", MEMBERS, nothing, times=1_000_000, when=lambda change: not changes.append(change))
    reads = store.next("read", MEMBERS, nothing, times=1_000_000)
    await live(world, nodes, 60 * SECOND)
    assert [rule.happened for rule in rules] == [0, 0]
    assert counted.happened == 60 * SECOND // BEAT == 30
    assert reads.happened == 2 * counted.happened, "the group with all of them, and the one behind it"
    assert all(value is not None for change in changes for row in change.rows for value in row.values.values())


async def test_many_that_die_at_once_are_freed_in_portions(world: World) -> None:
    """Naive: all in one step, whose next beat is late then."""
    lasting, die = Node(world, 0), [Node(world, number) for number in range(1, 3 * limits.MEMBERS_FREED)]
    for node in [lasting, *die]:
        await node.step()
    freed = lasting.server.store.next("change", MEMBERS, lasting.membership.look, times=1_000_000, when=_frees)
    steps = 0
    while freed.happened < len(die):
        before = freed.happened
        await live(world, [lasting], BEAT)
        assert freed.happened - before <= limits.MEMBERS_FREED
        steps += 1
        assert steps < 20
    assert {row["member"] for row in (await slots(world)).values()} == {lasting.id, FREE}
