"""Single puts, and single receives with their acks, over HTTP on one Cassandra node, beside the bare driver."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.cassandra_node import SETTINGS, Node, cassandra_node
from bench.clients import BODY, CONNECTIONS, fill, load, putting, taking
from bench.here import ROOT
from bench.load import Load
from bench.metrics import Metrics
from bench.over_http import HEADINGS, PUT, TAKE, Figure, Measured
from bench.processes import Running, on_cassandra
from bench.sheet import Bar, Section, table

SECONDS = 4.0
ROUNDS = 5
"""As for the embedded server, a ratio is taken in each round by itself, and the median counts."""

SHORT_SECONDS = 1.0
SHORT_ROUNDS = 1

MANY_CONNECTIONS = 256

DRIVER_SHARE = 0.5
"""Of what the bare driver reaches with the same groups, at least."""

CASSIEQ = {PUT: 350, TAKE: 345}
"""What the first of its kind reached: CassieQ's last commit, warm, on one Cassandra node, with 32 clients; a second."""

WARM_UP_SECONDS = 8.0
"""A Java program that has just started is slow: without this the first round would measure its compiler."""

UNBOUNDED = 1_000_000
"""Messages under way: more than there are."""

LEAST_MESSAGES = 500
"""For the bare driver, however slow the server was."""

SPARE = 1.5
"""How much more there is to take than the round before took: one that is faster must not run dry."""


@dataclass
class Beside:
    """The same groups given to the bare driver, by name of the figure."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    bounded: dict[str, list[float]] = field(default_factory=dict)
    """With no more messages under way than there were connections."""
    groups: dict[str, list[Metrics]] = field(default_factory=dict)

    def add(self, name: str, rate: float, bounded: float, groups: Metrics) -> None:
        self.rates.setdefault(name, []).append(rate)
        self.bounded.setdefault(name, []).append(bounded)
        self.groups.setdefault(name, []).append(groups)

    def rate(self, name: str) -> float:
        return statistics.median(self.rates[name])

    def bounded_rate(self, name: str) -> float:
        return statistics.median(self.bounded[name])

    def ratio(self, name: str, figure: Figure) -> float:
        return _ratio(figure.rates, self.rates[name])

    def bounded_ratio(self, name: str, figure: Figure) -> float:
        return _ratio(figure.rates, self.bounded[name])

    def group(self, name: str, verb: str) -> float:
        return statistics.median(groups.group_size(verb) for groups in self.groups[name])


def _ratio(rates: Sequence[float], beside: Sequence[float]) -> float:
    """The median of what the rounds say, each for itself."""
    return statistics.median(rate / other for rate, other in zip(rates, beside, strict=True))


def cassandra_section(short: bool) -> Section:
    seconds, rounds = (SHORT_SECONDS, SHORT_ROUNDS) if short else (SECONDS, ROUNDS)
    measured, beside = Measured(), Beside()
    with cassandra_node() as node, on_cassandra(node.contact_points, node.keyspace) as servers:
        (server,) = servers
        _warm_up(server)
        for number in range(rounds):
            for connections in (CONNECTIONS, MANY_CONNECTIONS):
                _round(node, server, connections, seconds, measured, beside)
                print(f"cassandra: round {number + 1} of {rounds} with {connections} connections", flush=True)
    return Section("One Cassandra node, over HTTP", _lines(measured, beside), _bars(measured, beside))


def _name(verb: str, connections: int) -> str:
    return f"{verb}, {connections} connections"


def _warm_up(server: Running) -> None:
    queue = f"q{uuid.uuid4().hex}"
    server.create_queue(queue)
    load([server], putting(queue), CONNECTIONS, WARM_UP_SECONDS)
    load([server], taking(queue, 1), CONNECTIONS, WARM_UP_SECONDS)


def _round(
    node: Node, server: Running, connections: int, seconds: float, measured: Measured, beside: Beside
) -> None:
    queue = f"q{uuid.uuid4().hex}"
    server.create_queue(queue)
    puts, groups = _counted(server, lambda: load([server], putting(queue), connections, seconds))
    name = _name(PUT, connections)
    measured.add(name, puts)
    size = groups.group_size("put")
    unbounded, bounded = (
        _bare(node, puts.requests, under_way, verb="put", group=size) for under_way in (UNBOUNDED, connections)
    )
    beside.add(name, unbounded, bounded, groups)
    name = _name(TAKE, connections)
    if name in measured.figures:
        fill(server, queue, max(0, int(measured.rate(name) * seconds * SPARE) - puts.requests))
    takes, groups = _counted(server, lambda: load([server], taking(queue, 1), connections, seconds))
    measured.add(name, takes, 0.5)
    sizes = {"group": groups.group_size("receive"), "ack-group": groups.group_size("ack")}
    # Claims and acks in turn, or as they come: whichever is better for the bare driver.
    unbounded, bounded = (
        max(_bare(node, takes.requests // 2, under_way, *turns, verb="take", **sizes) for turns in ((), ("--turns",)))
        for under_way in (UNBOUNDED, connections)
    )
    beside.add(name, unbounded, bounded, groups)


def _counted(server: Running, run: Callable[[], Load]) -> tuple[Load, Metrics]:
    before = server.metrics()
    found = run()
    return found, server.metrics() - before


def _bare(node: Node, messages: int, under_way: int, *flags: str, **options: object) -> float:
    """Messages a second of the bare driver, in a process of its own."""
    messages = max(messages, LEAST_MESSAGES)
    arguments = [f"--{name}={value}" for name, value in options.items()]
    said = subprocess.run(
        [
            sys.executable, "-m", "bench.bare_driver", f"--contact-points={','.join(node.contact_points)}",
            f"--keyspace={node.keyspace}", f"--messages={messages}", f"--under-way={under_way}",
            *arguments, *flags,
        ],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )
    return float(messages / json.loads(said.stdout)["seconds"])


def _lines(measured: Measured, beside: Beside) -> list[str]:
    rows = []
    for name, figure in measured.figures.items():
        verb, *_ = name.split(",")
        verbs = ("put",) if verb == PUT else ("receive", "ack")
        rows.append(
            (
                name,
                f"{figure.per_second:,.0f}",
                f"{beside.rate(name):,.0f}",
                f"{beside.ratio(name, figure):.2f}",
                f"{beside.bounded_rate(name):,.0f}",
                f"{beside.bounded_ratio(name, figure):.2f}",
                " and ".join(f"{beside.group(name, group):.1f}" for group in verbs),
                f"{figure.per_second / CASSIEQ[verb]:.1f} ×",
            )
        )
    return [
        f"`angelhair serve --contact-points` on {SETTINGS}; bodies of {len(BODY)} bytes; load generator, server and "
        "Cassandra share the machine. The bare driver is given groups of the sizes that the server's own metrics "
        "show, right after each run, in a process of its own without HTTP: see `bench/bare_driver.py`. It begins a "
        "group as soon as the one before lets it; beside that stands what it reaches when, as over HTTP, no more "
        "messages may be under way than there are connections.",
        "",
        *table(
            (
                "", "messages/s", "bare driver, same groups", "ratio", "bare driver, as many under way", "ratio",
                "messages a group", "of CassieQ's",
            ),
            rows,
        ),
        "",
        *table(HEADINGS, measured.rows(measured.figures)),
    ]


def _bars(measured: Measured, beside: Beside) -> list[Bar]:
    return [
        Bar(f"one Cassandra node: {name} / bare driver", beside.ratio(name, figure), DRIVER_SHARE)
        for name, figure in measured.figures.items()
    ]


if __name__ == "__main__":
    section = cassandra_section("--short" in sys.argv)
    print("\n".join([*section.text(), *map(str, section.bars)]))
