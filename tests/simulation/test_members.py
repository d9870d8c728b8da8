"""Servers that join, leave, pause, die and disagree, and what each believes of the others (R5); and queues whose lanes
they take from each other by that belief: nothing is lost by it (A11)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from angelhair import limits
from angelhair.engine.members import FREE, Holdings, Membership, Presence
from angelhair.engine.schema import MEMBERS
from angelhair.engine.store import Change
from angelhair.errors import StoreError
from angelhair.model import BUCKETED, FIFO
from angelhair.simulation import FaultPlan, Nemesis, Process, World, run
from angelhair.simulation import faults as kinds
from angelhair.simulation.faults import DRIFT_PPM
from angelhair.simulation.history import History
from angelhair.simulation.servers import Server

SEEDS = 20
QUEUE_SEEDS = 8
NODES = 4
TROUBLE_MS = 6 * 60_000
DRIFTING = 1 + 2 * DRIFT_PPM / 1_000_000
"""By how much the monotonic clocks of two machines differ at most."""


@dataclass
class Cluster:
    """What the servers of a world believe, and what is true."""

    world: World
    nodes: dict[str, Membership] = field(default_factory=dict)
    """The latest life of each."""
    changed_us: dict[tuple[int, object, object], int] = field(default_factory=dict)
    """When a slot became such: by number, member and beat."""
    rows: dict[int, tuple[object, object]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    seen_gone: int = 0
    leaving: float = 0.0
    """How often a server that has beaten says goodbye and starts again."""

    def __post_init__(self) -> None:
        self.world.cluster.change_listener = self._note

    def start(self, count: int) -> list[str]:
        names = [f"server-{number}" for number in range(count)]
        for name in names:
            self.world.start(name, self._boot)
        return names

    def _note(self, change: Change) -> None:
        if change.partition.table is MEMBERS:
            for row in change.rows:
                slot = int(row.key)
                owner = row.values.get("member", self.rows.get(slot, (None, None))[0])
                self.rows[slot] = (owner, row.values["beat"])
                self.changed_us[slot, owner, row.values["beat"]] = self.world.now_us

    def _boot(self, process: Process) -> None:
        membership = self.nodes[process.name] = Membership(process.store, process.clock, self.world.identities.fresh())
        process.spawn(self._live(process, membership))

    async def _live(self, process: Process, membership: Membership) -> None:
        presence = Presence(f"http://{process.name}", process.name, 0, "1", process.clock.now().wall_ms)
        while True:
            try:
                await membership.step(presence, Holdings())
                self._check(process, membership)
                if self.world.random.random() < self.leaving:
                    await membership.leave()
            except StoreError:
                pass
            await process.sleep(limits.MEMBER_BEAT_MS)

    def _check(self, process: Process, membership: Membership) -> None:
        """Whoever is thought dead has not beaten for as long as it had said."""
        self.seen_gone += len(membership.members.gone)
        for slot, row in membership.members.lapsed.items():
            silent_us = self.world.now_us - self.changed_us[slot, row["member"], row["beat"]]
            if silent_us * DRIFTING < limits.MEMBER_MS * 1_000:
                self.faults.append(f"{process.label} buried slot {slot} after {silent_us} us")

    def believed(self) -> dict[str, set[str]]:
        return {name: {member.id for member in node.members.alive} for name, node in self.nodes.items()}


def _all_see_all(cluster: Cluster) -> bool:
    everybody = {node.id for node in cluster.nodes.values()}
    return all(seen == everybody for seen in cluster.believed().values())


@pytest.mark.parametrize("leaving", [0.0, 0.05], ids=["", "leaving"])
def test_whatever_happens_they_agree_again_on_who_is_there(leaving: float) -> None:
    """And while it happens none is buried whose beat is younger than it said."""
    buried = 0
    for seed in range(SEEDS):
        with World(seed) as world:
            cluster = Cluster(world, leaving=leaving)
            nemesis = Nemesis(world, cluster.start(NODES))
            nemesis.start()
            world.run_for_ms(TROUBLE_MS)
            nemesis.stop()
            world.calm(flush=True)
            cluster.leaving = 0.0
            # What a time-out holds up, a stay in a call, and then a life's time for each of two judgements.
            world.run_for_ms(60_000 + 2 * limits.MEMBER_LATE_MS)
            assert cluster.faults == [], seed
            assert _all_see_all(cluster), (seed, cluster.believed())
            owners = [owner for owner, _ in cluster.rows.values()]
            assert sorted(owner for owner in owners if owner != FREE) == sorted(n.id for n in cluster.nodes.values())
            assert len(owners) <= 2 * NODES, "slots are used again"
            buried += cluster.seen_gone
    assert buried > SEEDS, "something has happened"


@pytest.mark.parametrize("kind", [kinds.OUTAGE, kinds.CLOCK_JUMP, kinds.CLOCK_LEAP])
def test_r5_neither_an_outage_nor_a_wall_clock_buries_anybody(kind: str) -> None:
    """Naive: time in which nobody could be seen counts, or wall clocks say who is late."""
    for seed in range(SEEDS):
        with World(seed, FaultPlan(rates={kind: 3.0}, skewed=True)) as world:
            cluster = Cluster(world)
            Nemesis(world, cluster.start(NODES)).start()
            world.run_for_ms(TROUBLE_MS)
            assert world.faults.counts[kind] and cluster.seen_gone == 0, seed


@pytest.mark.parametrize("kind", [kinds.PAUSE, kinds.SUSPEND, kinds.CUT_OFF])
def test_r5_who_was_away_finds_that_the_others_live(kind: str) -> None:
    """It is they who did not see it."""
    fell_out = 0
    for seed in range(SEEDS):
        with World(seed, FaultPlan(rates={kind: 2.0})) as world:
            cluster = Cluster(world)
            names = cluster.start(NODES)
            nemesis = Nemesis(world, names[:1])
            nemesis.start()
            away = cluster.nodes[names[0]]
            for _ in range(TROUBLE_MS // 1_000):
                world.run_for_ms(1_000)
                assert away.members.gone <= {away.id}, seed
                fell_out += away.id in cluster.nodes[names[1]].members.gone
            nemesis.stop()
            world.calm()
            world.run_for_ms(60_000)
            assert _all_see_all(cluster), seed
    assert fell_out


class MemberServer(Server):
    """A server that is a member, too, and takes the lanes of those that it thinks gone."""

    taken = 0

    def __init__(self, world: World, process: Process, queues: tuple[str, ...], history: History) -> None:
        super().__init__(world, process, queues, history)
        process.spawn(self._be_there())

    async def _be_there(self) -> None:
        presence = Presence(f"http://{self._process.name}", self._process.name, 0, "1", 0)
        while True:
            try:
                await self.engine.membership.step(presence, Holdings())
            except StoreError:
                pass
            MemberServer.taken += bool(self.engine.membership.gone)
            await self._process.sleep(limits.MEMBER_BEAT_MS)


@pytest.mark.parametrize("kind", [BUCKETED, FIFO])
def test_a11_lanes_taken_from_those_thought_gone_lose_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worlds and judges of all queues, with servers that know each other."""
    monkeypatch.setattr(run, "Server", MemberServer)
    MemberServer.taken = 0
    judged = [run.run_seed(seed, kind=kind) for seed in range(QUEUE_SEEDS)]
    assert {seed.seed: seed.violations for seed in judged if seed.violations} == {}
    assert MemberServer.taken > QUEUE_SEEDS
