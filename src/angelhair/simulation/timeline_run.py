"""One seed with a timeline: shards change hands while servers sleep, die and mistake the time; then years pass."""

from __future__ import annotations

from angelhair.model import QueueSettings
from angelhair.simulation.history import CONFIRMED, UNKNOWN
from angelhair.simulation.inspection import Truth
from angelhair.simulation.nemesis import Nemesis
from angelhair.simulation.process import Process
from angelhair.simulation.scheduler import MICROSECONDS_PER_MILLISECOND
from angelhair.simulation.servers import ACCOUNT
from angelhair.simulation.timeline_clients import DEAD, TimelineClients
from angelhair.simulation.timeline_history import DuePut, TimelineHistory
from angelhair.simulation.timeline_inspection import ShardWitness, leftovers
from angelhair.simulation.timeline_outcome import TimelineOutcome
from angelhair.simulation.timeline_servers import TimelineServer
from angelhair.simulation.timeline_variation import SHORT_LIFE_MS, TimelineVariation
from angelhair.simulation.world import World

QUEUE = "work"
LOAD_LIMIT_MS = 30 * 60_000
DRAIN_PATIENCE_MS = 5 * 60_000
DRAIN_DELAYS = 10
"""Virtual time without an ack after which what is due will not come: longer than any clock is wrong by that is
believed, any lock and time-out together; and so many times the producer delay, which grows from try to try."""
DRAIN_ROUNDS = 60
"""How often it may be that nothing is left that is due, and something that will be."""
SLICE_MS = 2_000
TIDY_LIMIT_MS = 10 * 60_000
NEGLECT_ROUNDS = 24
NEGLECT_WAKE_MS = 90_000
"""How long servers are up between two leaps over a time in which nobody consumes: long enough for all their work."""


def play_timeline(world: World, variation: TimelineVariation) -> TimelineOutcome:
    world.cluster.joins = variation.base.joins
    history = TimelineHistory()
    servers: dict[str, TimelineServer] = {}
    witness = ShardWitness(world.cluster, history)

    def boot(process: Process) -> None:
        servers[process.name] = TimelineServer(world, process, (QUEUE, DEAD), history, witness)

    names = [f"server-{number}" for number in range(1, variation.base.servers + 1)]
    for name in names:
        world.start(name, boot)
    clients = TimelineClients(world, servers, history, QUEUE, variation)
    world.run_until_done(clients.process.spawn(_make_queues(clients, variation.settings)))
    nemesis = Nemesis(world, names)
    nemesis.start()
    _load(world, clients, variation)
    nemesis.stop()
    _end_faults(world, variation, servers)
    clients.draining = True
    outcome = TimelineOutcome(
        seed=world.seed, queue=QUEUE, dead_letter_queue=DEAD, settings=variation.settings, history=history, faults={},
        steps=0, played=variation,
        node_skew_us=max(abs(skew_us) for skew_us in world.cluster.node_skews_us),
    )
    if variation.neglected:
        _neglect(world)
    _drain(world, clients, outcome)
    history.largest_skew_us = world.worst_skew_us
    outcome.redriven = frozenset(witness.returning)
    outcome.faults, outcome.steps = dict(world.faults.counts), world.steps
    return outcome


async def _make_queues(clients: TimelineClients, settings: QueueSettings) -> None:
    await clients.make_queue(DEAD, QueueSettings(bucket_size=5, retention_ms=None, repair_timeout_ms=1_000))
    await clients.make_queue(QUEUE, settings)


def _load(world: World, clients: TimelineClients, variation: TimelineVariation) -> None:
    process, base = clients.process, variation.base
    share = max(1, base.messages // base.producers)
    producers = [process.spawn(clients.produce(share)) for _ in range(base.producers)]
    for number in range(base.consumers):
        process.spawn(clients.consume(number < variation.named))
    if base.deeds:
        process.spawn(clients.operate(base.deeds, base.operator_rest_ms))
    began_ms = world.now_ms
    while world.now_ms - began_ms < LOAD_LIMIT_MS and not all(task.done() for task in producers):
        world.run_for_ms(SLICE_MS)
    world.run_for_ms(variation.linger_ms)


def _end_faults(world: World, variation: TimelineVariation, servers: dict[str, TimelineServer]) -> None:
    """Calm; and what the servers remember may be gone, or one of them: then what is durable has to do."""
    if variation.base.ending == "reboot":
        for name in list(servers):
            world.restart(name)
    world.calm(flush=variation.base.flush)
    if variation.base.ending == "loss" and len(servers) > 1:
        lost = world.random.choice(list(servers))
        world.crash(lost)
        del servers[lost]


def _neglect(world: World) -> None:
    """For several times as long as rows live nobody consumes, and the servers are up now and then."""
    for _ in range(NEGLECT_ROUNDS):
        world.run_for_ms(NEGLECT_WAKE_MS)
        world.leap_ms(SHORT_LIFE_MS // 8)


def _drain(world: World, clients: TimelineClients, outcome: TimelineOutcome) -> None:
    """Works off what is due, leaps to when the next is, and so on."""
    _start_drainers(clients, outcome.played)
    history = outcome.history
    for _ in range(DRAIN_ROUNDS):
        _work_off(world, outcome)
        missing = _missing(outcome)
        later = [put.due_us for put in missing + _perhaps_there(outcome) if put.due_us > world.now_us]
        if not later or any(put.due_us <= world.now_us for put in missing):
            break
        world.leap_ms((min(later) - world.now_us) // MICROSECONDS_PER_MILLISECOND)
    history.undrained = sorted({put.body for put in _missing(outcome)})
    if not history.undrained and not history.cleared:
        _tidy(world, outcome)


def _start_drainers(clients: TimelineClients, variation: TimelineVariation) -> None:
    names = list(clients.servers)
    clients.process.spawn(clients.drain(DEAD, None))
    if variation.drainers == "named":
        for _ in range(2):
            clients.process.spawn(clients.drain(QUEUE, clients.random.choice(names), named=True))
    else:
        one = clients.random.choice(names) if variation.drainers == "one" else None
        clients.process.spawn(clients.drain(QUEUE, one))


def _missing(outcome: TimelineOutcome) -> list[DuePut]:
    history = outcome.history
    return [
        put for put in history.due_puts()
        if put.outcome == CONFIRMED and not history.settling[put.body] and not outcome.may_be_cleared(put)
    ]


def _perhaps_there(outcome: TimelineOutcome) -> list[DuePut]:
    """What nobody was told of, and may wait in a shard that is to be drained until its time comes."""
    history = outcome.history
    return [put for put in history.due_puts() if put.outcome == UNKNOWN and not history.settling[put.body]]


def _work_off(world: World, outcome: TimelineOutcome) -> None:
    """Until nothing is missing that is due, or for a while nothing was done."""
    history = outcome.history
    done, done_ms = -1, world.now_ms
    patience_ms = DRAIN_PATIENCE_MS + DRAIN_DELAYS * outcome.settings.producer_delay_ms
    while world.now_ms - done_ms < patience_ms:
        world.run_for_ms(SLICE_MS)
        settled = sum(count > 0 for count in history.settling.values())
        if settled > done:
            done, done_ms = settled, world.now_ms
        if not history.putting and all(put.due_us > world.now_us for put in _missing(outcome)):
            break


def _tidy(world: World, outcome: TimelineOutcome) -> None:
    watcher = world.start("watcher", skew_us=0)
    began_ms = world.now_ms
    while True:
        found = world.run_until_done(watcher.spawn(leftovers(Truth(world.cluster), ACCOUNT, QUEUE)))
        outcome.history.leftovers = found
        if not found or world.now_ms - began_ms > TIDY_LIMIT_MS:
            return
        world.run_for_ms(5 * SLICE_MS)
