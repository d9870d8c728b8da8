"""With everything going wrong, the simulated store is never weaker than the port's contract.

Clients write keys that nobody else writes and remember what they were told; readers hold every answer against that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from angelhair.engine.store import Applied, Change, Partition, Row, RowChange, Span, StoreError, Write
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.simulation import Nemesis, Process, World
from tests.simulation.core.helpers import BODIES, STATES

WRITERS = ("writer-1", "writer-2", "writer-3")
ROUNDS = 60
SEEDS = range(80)


@dataclass
class Ledger:
    """What was said about each key, and since when."""

    partition: Partition
    confirmed: dict[int, int] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    begun: dict[int, int] = field(default_factory=dict)
    next_key: int = 0
    dropping: bool = False
    """While a drop is under way, and for good when its outcome is unknown."""
    drops_begun: int = 0
    dropped_before_us: int = -1
    reads: int = 0
    told_unknown: int = 0

    def keys(self, count: int, now_us: int) -> range:
        keys = range(self.next_key, self.next_key + count)
        self.next_key += count
        self.begun.update(dict.fromkeys(keys, now_us))
        return keys

    def settle(self, keys: range, outcome: object, now_us: int) -> None:
        if outcome is None or isinstance(outcome, Applied):
            self.confirmed.update(dict.fromkeys(keys, now_us))
        elif isinstance(outcome, Unavailable):
            self.refused.update(keys)
        else:
            assert isinstance(outcome, OutcomeUnknown)
            self.told_unknown += 1


async def writes(world: World, process: Process, ledger: Ledger) -> None:
    for _ in range(ROUNDS):
        keys = ledger.keys(world.random.randint(1, 5), world.now_us)
        rows = [Row(key, {"body": process.name}) for key in keys]
        (outcome,) = await process.store.write([Write(ledger.partition, rows)])
        ledger.settle(keys, outcome, world.now_us)
        await process.sleep(world.random.randrange(2_000))


async def changes(world: World, process: Process, ledger: Ledger) -> None:
    for _ in range(ROUNDS):
        keys = ledger.keys(world.random.randint(1, 5), world.now_us)
        rows = [RowChange(key, {"owner": None}, {"owner": process.name}) for key in keys]
        (outcome,) = await process.store.change([Change(ledger.partition, rows)])
        ledger.settle(keys, outcome, world.now_us)
        await process.sleep(world.random.randrange(2_000))


async def reads(world: World, process: Process, ledger: Ledger) -> None:
    while True:
        began_us, dropping, drops_begun = world.now_us, ledger.dropping, ledger.drops_begun
        due = {key for key, at_us in ledger.confirmed.items() if at_us <= began_us}
        # What was under way while a drop was may have gone with it, or may have escaped it.
        due = {key for key in due if ledger.begun[key] > ledger.dropped_before_us}
        try:
            (found,) = await process.store.read([Span(ledger.partition)])
        except StoreError:
            await process.sleep(500)
            continue
        ledger.reads += 1
        seen = {row.key for row in found.rows}
        assert not seen & ledger.refused, "what provably did not happen is there"
        if not dropping and ledger.drops_begun == drops_begun:
            assert not due - seen, "what was confirmed is missing"
        await process.sleep(world.random.randrange(1_000))


async def drops(world: World, process: Process, ledger: Ledger) -> None:
    while True:
        await process.sleep(world.random.randrange(40_000))
        began_us = world.now_us
        ledger.dropping = True
        ledger.drops_begun += 1
        (outcome,) = await process.store.drop([ledger.partition])
        if isinstance(outcome, OutcomeUnknown):
            return
        if outcome is None:
            ledger.dropped_before_us = world.now_us
            settled = {key for key, at_us in ledger.confirmed.items() if at_us < began_us}
            state = world.cluster.partitions[ledger.partition]
            assert not settled & state.rows.keys(), "what was confirmed before the drop began outlived it"
        ledger.dropping = False


@pytest.mark.parametrize("table", [BODIES, STATES], ids=["plain", "conditional"])
@pytest.mark.parametrize("dropping", [False, True], ids=["kept", "dropped"])
def test_what_was_said_holds(table: object, dropping: bool) -> None:
    reads_done = unknown = faults = 0
    for seed in SEEDS:
        world = World(seed)
        ledger = Ledger(Partition(BODIES if table is BODIES else STATES, "p"))
        work = writes if table is BODIES else changes

        def boot(process: Process, world: World = world, ledger: Ledger = ledger, work=work) -> None:  # type: ignore[no-untyped-def]
            process.spawn(work(world, process, ledger))

        for name in WRITERS:
            world.start(name, boot)
        reader = world.start("reader")
        reader.spawn(reads(world, reader, ledger))
        if dropping:
            dropper = world.start("dropper")
            dropper.spawn(drops(world, dropper, ledger))
        nemesis = Nemesis(world, WRITERS)
        nemesis.start()
        world.run_for_ms(120_000)
        nemesis.stop()
        world.calm(flush=True)
        world.run_for_ms(60_000)
        world.close()
        reads_done += ledger.reads
        unknown += ledger.told_unknown
        faults += sum(world.faults.counts.values())
    # Enough of everything, so that the assertions above had something to look at.
    assert reads_done > 50 * len(SEEDS)
    assert unknown > 5 * len(SEEDS)
    assert faults > 20 * len(SEEDS)
