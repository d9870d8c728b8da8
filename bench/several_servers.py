"""Two and four servers on one Cassandra: what a message costs the store, and that each is seen once.

The same number of messages goes through one, two and four servers, put one by one and then received and acked one by
one; the servers' own metrics say what they asked of the store meanwhile, background included. More are put than are
counted: a queue that runs dry costs looks that find nothing, and those are no message's.

Group commit makes the cost of a message depend on how many share a commit, and that on how many clients a server has.
So there are two comparisons. Each server has as many connections as the one server had, because a server is added when
there is more to do: the bar is about this one. And the same connections are dealt out to more servers: then every
group is smaller, and operations cannot but grow as the groups shrink; the table shows both.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from bench.cassandra_node import SETTINGS, Node, cassandra_node
from bench.clients import CONNECTIONS, UNAVAILABLE, Takers, load, putting_so_many
from bench.metrics import Metrics, total
from bench.processes import Running, on_cassandra
from bench.sheet import Bar, Section, table

SERVERS = (1, 2, 4)
MESSAGES = 4_000
SHORT_SERVERS = (1, 2)
SHORT_MESSAGES = 1_000

WARM_UP_MESSAGES = 512

SETTLE_SECONDS = 12.0
"""Until every server has found the queue and the leases of its lanes are where they stay: more than one lease."""

GROWTH = 1.10
"""Store operations per message, compared with one server, at most."""

UNCOUNTED_SHARE = 0.25
"""Of the counted messages: so many more are put, and taken when the counting is over."""

SHOWN_OPERATIONS = 5


@dataclass(frozen=True)
class Passed:
    """So many messages, put, received and acked."""

    servers: int
    connections: int
    lanes: int
    put: int
    """Messages put."""
    taken: int
    """Messages received and acked while that was counted."""
    puts: Metrics
    takes: Metrics
    put_rate: float
    take_rate: float
    repeated: int
    unavailable: int
    """Requests that were told to come again."""

    @property
    def name(self) -> str:
        servers = f"{self.servers} server{'s' * (self.servers > 1)}"
        return f"{servers}, {self.connections} connections, {self.lanes} lane{'s' * (self.lanes > 1)}"

    @property
    def puts_cost(self) -> float:
        return self.puts.operations_in_all / self.put

    @property
    def takes_cost(self) -> float:
        return self.takes.operations_in_all / self.taken

    @property
    def operations(self) -> float:
        """Of one message, from its put to its ack."""
        return self.puts_cost + self.takes_cost

    def row(self, alone: Passed) -> tuple[str, ...]:
        return (
            self.name,
            f"{self.put_rate:,.0f}",
            f"{self.take_rate:,.0f}",
            f"{self.puts_cost:.3f}",
            f"{self.takes_cost:.3f}",
            f"{self.operations / alone.operations:.2f}",
            f"{self.puts.group_size('put'):.1f} / {self.takes.group_size('receive'):.1f} / "
            f"{self.takes.group_size('ack'):.1f}",
            f"{sum(self.puts.refused.values()):,} / {sum(self.takes.refused.values()):,}",
            str(self.repeated),
            f"{self.unavailable:,}",
        )

    @property
    def most_asked(self) -> str:
        def told(found: Metrics, messages: int) -> str:
            most = found.operations.most_common(SHOWN_OPERATIONS)
            return ", ".join(f"{verb} {name} {count / messages:.3f}" for (verb, name), count in most if count)

        return f"put: {told(self.puts, self.put)}; get+ack: {told(self.takes, self.taken)}"


HEADINGS = (
    "", "puts/s", "get+ack/s", "operations per put", "per get+ack", "both / one server",
    "messages a group: put / receive / ack", "conditional writes lost: put / take", "seen again", "503",
)


def pass_through(servers: Sequence[Running], connections: int, lanes: int, messages: int) -> Passed:
    """Puts so many messages through all servers in a queue of its own, then receives and acks them."""
    queue = f"q{uuid.uuid4().hex}"
    servers[0].create_queue(queue, lanes=lanes)
    time.sleep(SETTLE_SECONDS)
    warmed = Takers(queue, 1, WARM_UP_MESSAGES)
    for clients in (putting_so_many(queue, WARM_UP_MESSAGES), warmed.client):
        load(servers, clients, connections, allowed=[UNAVAILABLE])
    before = total(server.metrics() for server in servers)
    more = int(messages * UNCOUNTED_SHARE)
    puts = load(servers, putting_so_many(queue, messages + more), connections, allowed=[UNAVAILABLE])
    between = total(server.metrics() for server in servers)
    takers = Takers(queue, 1, messages)
    takes = load(servers, takers.client, connections, allowed=[UNAVAILABLE])
    after = total(server.metrics() for server in servers)
    taken = len(takers.seen)
    takers.messages = messages + more
    load(servers, takers.client, connections, allowed=[UNAVAILABLE])
    # Else its background would be counted with the next one's.
    servers[0].call("DELETE", f"/queues/{queue}")
    return Passed(
        len(servers),
        connections,
        lanes,
        messages + more,
        taken,
        between - before,
        after - between,
        (messages + more) / puts.seconds,
        taken / takes.seconds,
        sum(takers.seen.values()) - len(takers.seen),
        sum(part.statuses.get(UNAVAILABLE, 0) for part in (puts, takes)),
    )


def measure(node: Node, counts: Sequence[int], messages: int) -> list[Passed]:
    found = []
    for count in counts:
        # A fresh set of servers each time: nobody remembers leases of the last one.
        with on_cassandra(node.contact_points, node.keyspace, count) as servers:
            for lanes in sorted({1, count}):
                for connections in sorted({CONNECTIONS, CONNECTIONS * count}):
                    found.append(pass_through(servers, connections, lanes, messages))
                    print(f"servers: {found[-1].name}: {found[-1].operations:.3f} operations a message", flush=True)
    return found


def servers_section(short: bool) -> Section:
    counts, messages = (SHORT_SERVERS, SHORT_MESSAGES) if short else (SERVERS, MESSAGES)
    with cassandra_node() as node:
        found = measure(node, counts, messages)
    alone = found[0]
    lines = [
        f"`angelhair serve --contact-points` on {SETTINGS}; {messages:,} messages, put one by one, then received and "
        "acked one by one, connections dealt out evenly. Operations are what the servers asked of the store, counted "
        "by themselves, background included.",
        "",
        *table(HEADINGS, (passed.row(alone) for passed in found)),
        "",
        "What was asked most, per message:",
        "",
        *(f"- {passed.name}: {passed.most_asked}" for passed in found),
    ]
    bars = [
        Bar(f"{passed.name}: operations per message / one server", passed.operations / alone.operations, GROWTH, True)
        for passed in found[1:]
        if passed.connections == CONNECTIONS * passed.servers
    ]
    bars.append(
        Bar("several servers: messages seen again", sum(passed.repeated for passed in found), 0, True, digits=0)
    )
    return Section("Several servers on one Cassandra", lines, bars)


if __name__ == "__main__":
    section = servers_section("--short" in sys.argv)
    print("\n".join([*section.text(), *map(str, section.bars)]))
