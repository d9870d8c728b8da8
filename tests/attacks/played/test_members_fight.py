"""Leases between a server that cannot say that it lives, and those that take it to be gone."""

from __future__ import annotations

from angelhair.engine import places
from angelhair.engine.schema import MEMBERS
from angelhair.engine.store import Span
from angelhair.errors import StoreError
from tests.faults import UNAVAILABLE
from tests.nodes import Node
from tests.queues import SECOND, World


async def test_a11_a_server_that_cannot_beat_does_not_fight_for_lanes(world: World) -> None:
    """Its beats do not get through, all else does. The other takes all lanes, as those of one that is gone; it takes
    half of them back, as those of one that is richer; and so on for as long as that lasts."""
    mute, other = Node(world, 1), Node(world, 2)
    await mute.server.create("orders", lanes=4)
    await _live(world, [mute, other], 20)
    mute.server.store.next("change", MEMBERS, UNAVAILABLE, times=100_000)
    await _live(world, [mute, other], 30)
    before = await _fences(world)
    await _live(world, [mute, other], 60)
    assert await _fences(world) - before <= 4
    mute.server.store.heal()
    await _live(world, [mute, other], 30)
    assert sorted([await _held(world, mute), await _held(world, other)]) == [2, 2]


async def _live(world: World, nodes: list[Node], seconds: int) -> None:
    for _ in range(seconds):
        for node in nodes:
            try:
                await node.step()
            except StoreError:
                pass
            await node.server.step("orders")
        world.wait(SECOND)


async def _rows(world: World) -> list[dict[str, object]]:
    queue = await world.queue("orders")
    parts = await world.store.read([Span(places.leases(queue.incarnation, lane)) for lane in queue.lanes])
    return [dict(part.rows[0].values) for part in parts]


async def _fences(world: World) -> int:
    return sum(int(str(row["fence"])) for row in await _rows(world))


async def _held(world: World, node: Node) -> int:
    return sum(row["holder"] == node.id for row in await _rows(world))
