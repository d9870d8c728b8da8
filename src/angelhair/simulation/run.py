"""One seed: a world is built, loaded, hurt, calmed, drained and judged."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from angelhair.engine.transfer import MOVED
from angelhair.model import BUCKETED, DATABAG, FIFO, TIMELINE, QueueSettings
from angelhair.simulation import databag_variation
from angelhair.simulation.checkers import CHECKERS
from angelhair.simulation.checkers.databags import DATABAG_CHECKERS
from angelhair.simulation.checkers.timelines import TIMELINE_CHECKERS
from angelhair.simulation.checkers.topics import TOPIC_CHECKERS
from angelhair.simulation.clients import Clients
from angelhair.simulation.databag_run import play_databag
from angelhair.simulation.fair_variation import CALM_SHARE, FAIR, draw_fair
from angelhair.simulation.faults import FaultPlan
from angelhair.simulation.fifo_inspection import FifoInspector, FifoWitness
from angelhair.simulation.fifo_variation import draw_fifo
from angelhair.simulation.history import CONFIRMED, History
from angelhair.simulation.inspection import AckWitness, Inspector, Truth, moved_bodies
from angelhair.simulation.nemesis import Nemesis
from angelhair.simulation.outcome import Outcome
from angelhair.simulation.process import Process
from angelhair.simulation.servers import ACCOUNT, Server
from angelhair.simulation.themes import draw_theme
from angelhair.simulation.timeline_run import play_timeline
from angelhair.simulation.timeline_variation import TimelineVariation, draw_timeline
from angelhair.simulation.topic_run import draw_topics, play_topics
from angelhair.simulation.trace import Sink
from angelhair.simulation.variation import Variation, bounds_in_force
from angelhair.simulation.world import World

TOPICS = "topics"
"""In place of a kind of queue."""

CALM_SHARES = {FAIR: CALM_SHARE, DATABAG: databag_variation.CALM_SHARE}
"""By kind, how many of the seeds are without a fault."""

QUEUE, DEAD = "work", "dead"
DEAD_BUCKET_SIZE = 5
LOOK_EVERY_MS = 2_000
LOAD_LIMIT_MS = 30 * 60_000
"""Virtual time after which producers are waited for no longer."""
DRAIN_LIMIT_MS = 45 * 60_000
"""Virtual time in which a calm world has to drain: several times the longest pause, time-out and delay together."""
DRAIN_SLICE_MS = 2_000
DRAIN_PATIENCE_MS = 8 * 60_000
"""Virtual time without an ack after which the rest will not come: several times the longest wait in a calm world."""
TIDY_LIMIT_MS = 10 * 60_000


@dataclass(frozen=True, slots=True)
class Judged:
    seed: int
    operations: int
    faults: int
    steps: int
    violations: tuple[str, ...]
    fault_kinds: tuple[str, ...]


def run_seed(seed: int, trace: Sink | None = None, kind: str = BUCKETED) -> Judged:
    """Plays a seed with a queue of this kind, or with topics, and says what was wrong."""
    source = random.Random(f"theme {seed}")
    theme = draw_theme(seed, source)
    plan = theme.sharpen(FaultPlan.draw(source), source).met_on_one(random.Random(f"on one {seed}"))
    calm = kind in CALM_SHARES and source.random() < CALM_SHARES[kind]
    with World(seed, FaultPlan() if calm else plan, trace) as world:
        if kind == TOPICS:
            # A subscription that was found is not looked for again: what was seen has to stay seen.
            world.cluster.repairs = True
            return _judged_topics(world, draw_topics(source, theme))
        if kind == TIMELINE:
            return _judged_timeline(world, draw_timeline(source, theme))
        if kind == DATABAG:
            return _judged_databag(world, databag_variation.draw_databag(source, theme, calm))
        if kind == FIFO:
            variation = draw_fifo(source, theme)
        elif kind == FAIR:
            variation = draw_fair(source, theme, calm)
        else:
            variation = Variation.draw(source, theme)
        with bounds_in_force(variation.bounds):
            outcome = _play(world, variation)
    violations: list[str] = []
    for checker in CHECKERS:
        violations += [f"{checker.__name__}: {text}" for text in checker(outcome)]
    return Judged(
        seed, outcome.history.operations, sum(outcome.faults.values()), world.steps,
        tuple(violations), tuple(sorted(outcome.faults)),
    )


def _judged_topics(world: World, variation: Variation) -> Judged:
    with bounds_in_force(variation.bounds):
        outcome = play_topics(world, variation)
    violations = [f"{checker.__name__}: {text}" for checker in TOPIC_CHECKERS for text in checker(outcome)]
    counts = world.faults.counts
    return Judged(
        world.seed, outcome.history.operations, sum(counts.values()), world.steps, tuple(violations),
        tuple(sorted(counts)),
    )


def _judged_timeline(world: World, variation: TimelineVariation) -> Judged:
    with bounds_in_force(variation.base.bounds):
        outcome = play_timeline(world, variation)
    violations = [f"{checker.__name__}: {text}" for checker in TIMELINE_CHECKERS for text in checker(outcome)]
    counts = outcome.faults
    return Judged(
        world.seed, outcome.history.operations, sum(counts.values()), world.steps, tuple(violations),
        tuple(sorted(counts)),
    )


def _judged_databag(world: World, variation: Variation) -> Judged:
    with bounds_in_force(variation.bounds):
        outcome = play_databag(world, variation)
    violations = [f"{checker.__name__}: {text}" for checker in DATABAG_CHECKERS for text in checker(outcome)]
    counts = outcome.faults
    return Judged(
        world.seed, outcome.history.operations, sum(counts.values()), world.steps, tuple(violations),
        tuple(sorted(counts)),
    )


def _play(world: World, variation: Variation) -> Outcome:
    world.cluster.joins = variation.joins
    history = History()
    servers: dict[str, Server] = {}

    def boot(process: Process) -> None:
        servers[process.name] = Server(world, process, (QUEUE, DEAD), history)

    names = [f"server-{number}" for number in range(1, variation.servers + 1)]
    for name in names:
        world.start(name, boot)
    fifo = variation.settings.kind == FIFO
    witness = (FifoWitness if fifo else AckWitness)(world.cluster, (variation.settings.bucket_size, DEAD_BUCKET_SIZE))
    clients = Clients(world, servers, history, QUEUE, variation)
    world.run_until_done(clients.process.spawn(_make_queues(clients, variation.settings)))
    watcher = world.start("watcher", skew_us=0)
    inspector = (FifoInspector if fifo else Inspector)(Truth(world.cluster), ACCOUNT, QUEUE, variation.settings)
    nemesis = Nemesis(world, names)
    nemesis.start()
    _load(world, clients, variation, inspector)
    nemesis.stop()
    _end_faults(world, variation, servers)
    clients.draining = True
    _drain(world, clients, variation, inspector, history, witness.acked)
    world.run_until_done(watcher.spawn(inspector.look()))
    history.mark_faults += inspector.faults
    history.true_acks = witness.receipts_of(history.deliveries)
    history.largest_skew_us = world.worst_skew_us
    if fifo:
        # Who does not trust its own clock goes by the store's, which has several that are wrong by a little.
        history.largest_skew_us += max(abs(skew_us) for skew_us in world.cluster.node_skews_us)
    if fifo:
        redriven = frozenset(item.body for item in history.deliveries if item.origin.startswith(f"{MOVED}/"))
    else:
        redriven = world.run_until_done(watcher.spawn(moved_bodies(Truth(world.cluster), ACCOUNT, DEAD)))
    return Outcome(
        world.seed, QUEUE, DEAD, variation.settings, history, dict(world.faults.counts), world.steps, redriven,
        variation,
    )


def _end_faults(world: World, variation: Variation, servers: dict[str, Server]) -> None:
    """Calm; and what the servers remember may be gone, or one of them: then what is durable has to do."""
    if variation.ending == "reboot":
        for name in list(servers):
            world.restart(name)
    world.calm(flush=variation.flush)
    if variation.ending == "loss" and len(servers) > 1:
        lost = world.random.choice(list(servers))
        world.crash(lost)
        del servers[lost]


async def _make_queues(clients: Clients, settings: QueueSettings) -> None:
    dead = QueueSettings(kind=settings.kind, bucket_size=DEAD_BUCKET_SIZE, retention_ms=None)
    if settings.kind != FIFO:
        dead = replace(dead, repair_timeout_ms=1_000)
    await clients.make_queue(DEAD, dead)
    await clients.make_queue(QUEUE, settings)


def _load(world: World, clients: Clients, variation: Variation, inspector: Inspector) -> None:
    process = clients.process
    share = variation.messages // variation.producers
    producers = [
        process.spawn(clients.produce(share, variation.put_sizes, variation.delays_ms, variation.rest_ms))
        for _ in range(variation.producers)
    ]
    for _ in range(variation.consumers):
        process.spawn(clients.consume(QUEUE, variation.rest_ms, variation.manners))
    if variation.settings.dead_letter_queue and world.random.random() < 0.5:
        process.spawn(clients.consume(DEAD, variation.rest_ms, ("ack", "forget")))
    if variation.deeds:
        process.spawn(clients.operate(variation.deeds, variation.operator_rest_ms))
    watcher = world.processes["watcher"]
    began_ms = world.now_ms
    while world.now_ms - began_ms < LOAD_LIMIT_MS and not all(task.done() for task in producers):
        world.run_for_ms(LOOK_EVERY_MS)
        world.run_until_done(watcher.spawn(inspector.look()))


def _drain(
    world: World,
    clients: Clients,
    variation: Variation,
    inspector: Inspector,
    history: History,
    acked: set[str],
) -> None:
    outcome = Outcome(world.seed, QUEUE, DEAD, variation.settings, history, {}, 0)
    for queue in (QUEUE, DEAD):
        clients.process.spawn(clients.drain(queue))
    watcher = world.processes["watcher"]
    began_ms = world.now_ms
    expected: set[str] = set()
    settled, settled_ms = -1, began_ms
    while world.now_ms - began_ms < DRAIN_LIMIT_MS and world.now_ms - settled_ms < DRAIN_PATIENCE_MS:
        world.run_for_ms(DRAIN_SLICE_MS)
        if len(acked) > settled:
            settled, settled_ms = len(acked), world.now_ms
        expected = {put.body for put in history.puts if put.outcome == CONFIRMED and not outcome.may_be_cleared(put)}
        if expected <= acked and not history.putting:
            break
    history.undrained = sorted(expected - acked)
    if history.undrained:
        return
    began_ms = world.now_ms
    while True:
        marks = world.run_until_done(watcher.spawn(inspector.look()))
        history.leftovers = world.run_until_done(watcher.spawn(inspector.leftovers(marks)))
        if not history.leftovers or world.now_ms - began_ms > TIDY_LIMIT_MS or history.cleared:
            break
        world.run_for_ms(5 * DRAIN_SLICE_MS)
    if history.cleared:
        history.leftovers = []
