"""What lanes have from the list of servers: those of one that is gone are taken at once, and shared out (A11, A12)."""

from __future__ import annotations

from collections import Counter

import pytest

from angelhair import limits
from angelhair.engine.members import Holdings
from angelhair.engine.schema import MEMBERS
from tests.faults import UNAVAILABLE
from tests.nodes import BEAT, Node, holders, lead, live
from tests.queues import SECOND, World


@pytest.mark.parametrize("kind", ["bucketed", "fifo"])
async def test_lanes_of_one_that_said_goodbye_are_taken_at_once(world: World, kind: str) -> None:
    """Though it gave no lease back: its goodbye is one write, its leases are many."""
    queue = "orders.fifo" if kind == "fifo" else "orders"
    goes, stays = Node(world, 1), Node(world, 2)
    scope = {"dedup_scope": "group"} if kind == "fifo" else {}
    await goes.server.create(queue, lanes=4, kind=kind, **scope)
    await lead(world, [goes, stays], 3 * SECOND, queue)
    assert set(await holders(world, queue)) == {goes.id, stays.id}
    await goes.membership.leave()
    await lead(world, [stays], SECOND, queue)
    assert set(await holders(world, queue)) == {stays.id}


async def test_lanes_of_one_that_starts_again_are_taken_at_once(world: World) -> None:
    dies, other = Node(world, 1), Node(world, 2)
    await dies.server.create("orders", lanes=4)
    await lead(world, [dies, other], 3 * SECOND)
    again = Node(world, 1)
    await lead(world, [again, other], 3 * SECOND)
    assert set(await holders(world, "orders")) == {again.id, other.id}


async def test_lanes_of_one_that_fell_out_are_taken_before_their_leases_lapse(world: World) -> None:
    """By a server that has not watched the leases yet: it would wait for as long as they last."""
    dies, other = Node(world, 1), Node(world, 2)
    await dies.server.create("orders", lanes=2)
    await lead(world, [dies], 3 * SECOND)
    await live(world, [other], limits.MEMBER_LATE_MS)
    await other.server.step("orders")
    assert set(await holders(world, "orders")) == {other.id}


async def test_lanes_of_one_that_was_never_a_member_are_left_to_it(world: World) -> None:
    """Naive: who is not in the list is gone. It may be a server of an older version, which tells nobody."""
    stranger, node = world.server(), Node(world, 1)
    await stranger.create("orders")
    await stranger.step("orders")
    await live(world, [node], limits.MEMBER_LATE_MS)
    await node.server.step("orders")
    assert await holders(world, "orders") == [stranger.engine.memory.server]


async def test_holdings_are_said_with_the_beats(world: World) -> None:
    node, other = Node(world, 1), Node(world, 2)
    await node.server.create("orders", lanes=3)
    await node.server.create("reminders", kind="timeline", lanes=5)
    await node.server.engine.touch_consumer(world.account, "reminders", "mailer")
    await lead(world, [node], 2 * SECOND)
    (said,) = [member for member in await other.membership.look() if member.id == node.id]
    assert said.holdings == Holdings(lanes=3, shards=5)


async def test_a12_each_takes_its_share_of_what_one_that_is_gone_held(world: World) -> None:
    """Naive: the first to look takes all of it, and soon loses half of that to the others: lanes move twice."""
    nodes = [Node(world, number) for number in range(3)]
    await nodes[0].server.create("orders", lanes=9)
    await lead(world, nodes, 20 * SECOND)
    assert await shares(world) == {node.id: 3 for node in nodes}
    *stay, goes = nodes
    await goes.membership.leave()
    for node in stay:
        await node.step()
    await stay[0].server.step("orders")
    assert await shares(world) == {stay[0].id: 5, stay[1].id: 3, goes.id: 1}
    await stay[1].server.step("orders")
    assert await shares(world) == {stay[0].id: 5, stay[1].id: 4}


async def test_a11_beyond_its_share_it_takes_what_nobody_takes_for_as_long_as_a_lease(world: World) -> None:
    """Naive: the share is a bound, and lanes wait for ever for a server that lives and does not work on them."""
    works, idle, goes = (Node(world, number) for number in range(3))
    await works.server.create("orders", lanes=4)
    await lead(world, [goes], 3 * SECOND)
    await live(world, [works, idle, goes], 2 * BEAT)
    await goes.membership.leave()
    for _ in range(-(-2 * limits.LEASE_MS // SECOND)):
        await idle.step()
        await lead(world, [works], SECOND)
    assert works.sees == {works.id, idle.id}
    assert await shares(world) == {works.id: 4}


async def test_r4_who_has_not_looked_for_long_takes_nothing_from_those_it_thinks_gone(world: World) -> None:
    """Naive: whom it once saw go is gone for ever. It may be back, and only the list of servers cannot be reached."""
    looker, sleeper = Node(world, 1), Node(world, 2)
    await live(world, [looker, sleeper], 2 * BEAT)
    await live(world, [looker], limits.MEMBER_LATE_MS)
    assert looker.membership.gone == {sleeper.id}
    looker.server.store.next("change", MEMBERS, UNAVAILABLE, times=1_000)
    looker.server.store.next("read", MEMBERS, UNAVAILABLE, times=1_000)
    world.wait(limits.MEMBER_GAP_MS + SECOND)
    await sleeper.server.create("orders", lanes=2)
    await lead(world, [sleeper], 3 * SECOND)
    await looker.server.step("orders")
    assert await shares(world) == {sleeper.id: 2}


async def shares(world: World) -> dict[object, int]:
    return dict(Counter(await holders(world, "orders")))
