"""One seed with a topic: queues are subscribed and unsubscribed while others publish and servers die half way."""

from __future__ import annotations

import random
from dataclasses import replace

from angelhair import limits
from angelhair.engine.topics.values import STANDARD, TopicSettings
from angelhair.model import FIFO, NOT_OF_KIND, QueueSettings
from angelhair.simulation.checkers.topics import due
from angelhair.simulation.fifo_variation import FIFO_VARIED, LONG_WINDOW_MS
from angelhair.simulation.nemesis import Nemesis
from angelhair.simulation.process import Process
from angelhair.simulation.themes import Theme
from angelhair.simulation.topic_clients import TopicClients
from angelhair.simulation.topic_history import TopicHistory
from angelhair.simulation.topic_outcome import TopicOutcome
from angelhair.simulation.topic_servers import TopicServer
from angelhair.simulation.variation import Variation
from angelhair.simulation.world import World

TOPIC = "news"
QUEUES = ("a", "b", "c", "d")
MESSAGES_MOST = 130
LOAD_LIMIT_MS = 30 * 60_000
DRAIN_LIMIT_MS = 45 * 60_000
DRAIN_PATIENCE_MS = 8 * 60_000
SLICE_MS = 2_000

TOPIC_VARIED: dict[str, tuple[int, ...]] = {
    "OUTBOX_VISIBILITY_MS": (500, 2_000, 10_000),
    "FANOUT_MESSAGES": (1, 3, 100),
    "FANOUT_BYTES": (1, 4 * 1024 * 1024),
    "FANOUT_PUTS": (1, 2, 32),
    "FANOUT_PAUSE_MS": (100, 1_000),
    "FANOUT_PAUSE_MAXIMUM_MS": (1_000, 10_000),
    "OUTBOX_WINDOW_MS": (LONG_WINDOW_MS,),
    "GRAVE_PATIENCE_MS": (1_000, 600_000),
    "PUBLISH_MESSAGES": (1, 3, 100),
}


def draw_topics(source: random.Random, theme: Theme) -> Variation:
    base = Variation.draw(source, theme)
    varied = FIFO_VARIED | TOPIC_VARIED
    return replace(
        base,
        settings=replace(
            base.settings, lanes=1, dead_letter_queue=None, max_deliveries=None
        ),
        messages=min(base.messages, MESSAGES_MOST),
        groups=source.choice((1, 2, 4)),
        bounds=base.bounds | {name: source.choice(choices) for name, choices in varied.items()},
    )


def play_topics(world: World, variation: Variation) -> TopicOutcome:
    world.cluster.joins = variation.joins
    fifo = world.random.random() < 0.4
    history = TopicHistory()
    servers: dict[str, TopicServer] = {}

    def boot(process: Process) -> None:
        servers[process.name] = TopicServer(world, process, QUEUES, history)

    names = [f"server-{number}" for number in range(1, variation.servers + 1)]
    for name in names:
        world.start(name, boot)
    settings = TopicSettings(kind=FIFO if fifo else STANDARD)
    clients = TopicClients(world, servers, history, TOPIC, settings, variation.groups)
    # A fifo topic may also feed queues without an order.
    fifo_queues = QUEUES[: world.random.randint(1, len(QUEUES))] if fifo else ()
    world.run_until_done(clients.process.spawn(_prepare(clients, variation.settings, fifo_queues)))
    nemesis = Nemesis(world, names)
    nemesis.start()
    _load(world, clients, variation)
    nemesis.stop()
    if variation.ending == "reboot":
        for name in names:
            world.restart(name)
    world.calm(flush=variation.flush)
    if variation.ending == "loss" and len(servers) > 1:
        lost = world.random.choice(names)
        world.crash(lost)
        del servers[lost]
    clients.draining = True
    outcome = TopicOutcome(history, fifo, QUEUES, fifo_queues, False)
    _drain(world, outcome)
    outcome.outlived_keys = world.now_ms >= limits.OUTBOX_WINDOW_MS
    return outcome


async def _prepare(clients: TopicClients, settings: QueueSettings, fifo_queues: tuple[str, ...]) -> None:
    absent = {name: getattr(QueueSettings(), name) for name in NOT_OF_KIND[FIFO]}
    fifo = replace(settings, kind=FIFO, dedup_window_ms=LONG_WINDOW_MS, **absent)
    for name in QUEUES:
        await clients.make_queue(name, fifo if name in fifo_queues else settings)
    await clients.make_topic()
    for name in QUEUES[:2]:
        await clients.subscribe(name)


def _load(world: World, clients: TopicClients, variation: Variation) -> None:
    process = clients.process
    share = max(1, variation.messages // variation.producers)
    publishers = [
        process.spawn(clients.publish(share, variation.put_sizes, variation.rest_ms))
        for _ in range(variation.producers)
    ]
    for queue in QUEUES:
        process.spawn(clients.consume(queue))
    # One queue is left alone: something must always be due.
    process.spawn(clients.meddle(list(QUEUES[1:]), 5 * variation.rest_ms + 200, world.random.random() < 0.4))
    began_ms = world.now_ms
    while world.now_ms - began_ms < LOAD_LIMIT_MS and not all(task.done() for task in publishers):
        world.run_for_ms(SLICE_MS)


def _drain(world: World, outcome: TopicOutcome) -> None:
    """Until all that is due has come, or for a while nothing did; then for a moment more, for what is not due."""
    began_ms = world.now_ms
    known, known_ms = -1, began_ms
    while world.now_ms - began_ms < DRAIN_LIMIT_MS and world.now_ms - known_ms < DRAIN_PATIENCE_MS:
        world.run_for_ms(SLICE_MS)
        arrived = outcome.history.arrived
        if len(arrived) > known:
            known, known_ms = len(arrived), world.now_ms
        if not outcome.history.publishing and all((queue, deed.what) in arrived for deed, queue in due(outcome)):
            break
    world.run_for_ms(5 * SLICE_MS)
