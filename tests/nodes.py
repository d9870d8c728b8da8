"""Servers of a test's own cluster, which beat and judge each other when the test says so."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.holding import holdings
from angelhair.engine.members import Membership, Presence
from angelhair.engine.store import Span, Values
from tests.queues import SECOND, Server, World

BEAT = limits.MEMBER_BEAT_MS


class Node:
    """A server with its membership, in a cluster of this test's own."""

    def __init__(self, world: World, number: int, *, ahead_ms: int = 0) -> None:
        self.server: Server = world.server(ahead_ms=ahead_ms)
        self.membership: Membership = self.server.engine.membership
        self.membership.cluster = world.account
        self.presence = Presence(f"http://10.0.0.{number}:9324", f"host-{number}", 0, "1.2.3", 17)

    @property
    def id(self) -> str:
        return self.membership.id

    async def step(self) -> None:
        await self.membership.step(self.presence, holdings(self.server.engine.memory))

    @property
    def sees(self) -> set[str]:
        return {member.id for member in self.membership.members.alive}


async def live(world: World, nodes: list[Node], milliseconds: int) -> None:
    """Time passes while these servers beat."""
    for _ in range(-(-milliseconds // BEAT)):
        for node in nodes:
            await node.step()
        world.wait(BEAT)


async def slots(world: World) -> dict[int, Values]:
    groups = range(limits.MEMBERS_MAXIMUM // limits.MEMBER_GROUP)
    found = await world.store.read([Span(places.members(world.account, group)) for group in groups])
    return {int(row.key): row.values for part in found for row in part.rows}


async def holders(world: World, queue: str) -> list[object]:
    found = await world.queue(queue)
    parts = await world.store.read([Span(places.leases(found.incarnation, lane)) for lane in found.lanes])
    return [part.rows[0].values["holder"] for part in parts]


async def lead(world: World, nodes: list[Node], milliseconds: int, queue: str = "orders") -> None:
    """Time passes while these servers beat and do the queue's background work."""
    for _ in range(-(-milliseconds // SECOND)):
        for node in nodes:
            await node.step()
            await node.server.step(queue)
        world.wait(SECOND)
