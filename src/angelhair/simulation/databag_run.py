"""One seed with a databag: servers come, go, sleep and mistake the time while epochs end and slices are cut anew."""

from __future__ import annotations

from angelhair import limits
from angelhair.simulation.databag_clients import DatabagClients
from angelhair.simulation.databag_history import DatabagHistory
from angelhair.simulation.databag_inspection import DatabagWitness, counted_duplicates, leftovers
from angelhair.simulation.databag_outcome import DatabagOutcome
from angelhair.simulation.databag_servers import DatabagServer
from angelhair.simulation.databag_variation import OLD_EPOCHS_MS
from angelhair.simulation.history import CONFIRMED
from angelhair.simulation.inspection import Truth
from angelhair.simulation.nemesis import Nemesis
from angelhair.simulation.process import Process
from angelhair.simulation.servers import ACCOUNT, Server
from angelhair.simulation.variation import Variation
from angelhair.simulation.world import World

QUEUE = "work"
LOAD_LIMIT_MS = 30 * 60_000
DRAIN_PATIENCE_MS = 5 * 60_000
"""Virtual time without a delete after which the rest will not come: several times any lock and sync together."""
DRAIN_LIMIT_MS = 45 * 60_000
SLICE_MS = 2_000
TIDY_LIMIT_MS = 10 * 60_000
DRAINERS = 2


def play_databag(world: World, variation: Variation) -> DatabagOutcome:
    world.cluster.joins = variation.joins
    history = DatabagHistory()
    servers: dict[str, Server] = {}
    witness = DatabagWitness(world.cluster, history, variation.settings, variation.calm)

    def boot(process: Process) -> None:
        servers[process.name] = DatabagServer(world, process, (QUEUE,), history, not variation.calm)

    names = [f"server-{number}" for number in range(1, variation.servers + 1)]
    for name in names:
        world.start(name, boot)
    clients = DatabagClients(world, servers, history, QUEUE, variation)
    world.run_until_done(clients.process.spawn(clients.make_queue(QUEUE, variation.settings)))
    nemesis = Nemesis(world, names)
    nemesis.start()
    _load(world, clients, variation)
    nemesis.stop()
    _end_faults(world, variation, servers)
    clients.draining = True
    outcome = DatabagOutcome(
        seed=world.seed, queue=QUEUE, dead_letter_queue="", settings=variation.settings, history=history, faults={},
        steps=0, variation=variation, node_skew_us=max(abs(skew_us) for skew_us in world.cluster.node_skews_us),
    )
    # What is fair is judged while messages come; to drain all of it in turn would take as long as the locks.
    del witness
    _drain(world, clients, outcome)
    counted = world.start("counter", skew_us=0).spawn(counted_duplicates(Truth(world.cluster), ACCOUNT, QUEUE))
    history.counted_duplicates = world.run_until_done(counted)
    history.largest_skew_us = world.worst_skew_us
    outcome.faults, outcome.steps = dict(world.faults.counts), world.steps
    return outcome


def _load(world: World, clients: DatabagClients, variation: Variation) -> None:
    process = clients.process
    share = max(1, variation.messages // variation.producers)
    producers = [
        process.spawn(clients.produce(share, variation.put_sizes, variation.delays_ms, variation.rest_ms))
        for _ in range(variation.producers)
    ]
    for _ in range(variation.consumers):
        process.spawn(clients.consume(QUEUE, variation.rest_ms, variation.manners))
    if variation.deeds:
        process.spawn(clients.operate(variation.deeds, variation.operator_rest_ms))
    began_ms = world.now_ms
    while world.now_ms - began_ms < LOAD_LIMIT_MS and not all(task.done() for task in producers):
        world.run_for_ms(SLICE_MS)


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


def _missing(outcome: DatabagOutcome) -> list[str]:
    history = outcome.history
    return sorted(
        put.body for put in history.puts
        if put.outcome == CONFIRMED and put.id not in history.deleted and not outcome.may_be_cleared(put)
    )


def _drain(world: World, clients: DatabagClients, outcome: DatabagOutcome) -> None:
    """Until all is deleted that was confirmed; then until no epoch is left that has to go."""
    # Small ones would never be sealed by their size; `bounds_in_force` sets it back.
    limits.BAG_EPOCH_AGE_MS = min(limits.BAG_EPOCH_AGE_MS, OLD_EPOCHS_MS)
    for _ in range(DRAINERS):
        clients.process.spawn(clients.drain(QUEUE))
    history, began_ms = outcome.history, world.now_ms
    done, done_ms = -1, began_ms
    while world.now_ms - began_ms < DRAIN_LIMIT_MS and world.now_ms - done_ms < DRAIN_PATIENCE_MS:
        world.run_for_ms(SLICE_MS)
        if len(history.deleted) > done:
            done, done_ms = len(history.deleted), world.now_ms
        if not history.putting and not _missing(outcome):
            break
    history.undrained = _missing(outcome)
    if not history.undrained and not history.cleared:
        _tidy(world, outcome)


def _tidy(world: World, outcome: DatabagOutcome) -> None:
    watcher = world.start("watcher", skew_us=0)
    began_ms = world.now_ms
    world.run_for_ms(2 * OLD_EPOCHS_MS)
    while True:
        look = leftovers(Truth(world.cluster), ACCOUNT, QUEUE, outcome.settings)
        outcome.history.leftovers = world.run_until_done(watcher.spawn(look))
        if not outcome.history.leftovers or world.now_ms - began_ms > TIDY_LIMIT_MS:
            return
        world.run_for_ms(5 * SLICE_MS)
