"""The SQS door beside ElasticMQ, which keeps everything in memory: `python -m bench.over_sqs`.

Both are given the same requests by the same load generator, in rounds that take turns. What it can do by itself is
measured too, against a server with nothing behind its door.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import uvloop

from bench.chart import bars as bar_chart
from bench.clients import BODY, CONNECTIONS
from bench.elasticmq import elasticmq
from bench.over_http import check_file
from bench.paced import PacedSends
from bench.processes import Running, embedded, empty_handler
from bench.sheet import Bar, Section, table
from bench.wrk import Wrk, fetch_wrk, load

BATCH = 10

OURS, THEIRS, EMPTY = "Angelhair", "ElasticMQ", "empty handler"
SEND, BATCHES, TAKE, SINGLE_TAKE, PACED = (
    "single sends", f"sends in batches of {BATCH}", f"receive and delete, batches of {BATCH}",
    "single receive and delete", "p99 of a send at half of ElasticMQ's top rate, ms",
)
SINGLE_SHARE, BATCH_SHARE, TAKE_SHARE, LATENCY_SHARE = 1.2, 2.0, 2.0, 1.0
"""Of ElasticMQ's; of its p99, at most."""

GENERATOR_SHARE = 2.0
"""What the load generator can do, of the fastest that is measured with it, at least."""

SPARE = 2.0
"""So many times as many messages wait to be taken as were taken in the last round; nobody may find an empty queue."""

CHART = "sqs"


class Lengths(NamedTuple):
    rounds: int
    seconds: float
    """Of each measurement."""
    warm_up_seconds: float
    """Of each kind of request: Java is slow at first."""
    first_taken: int
    """Messages a second for which the first round is prepared."""


LONG = Lengths(7, 2.0, 8.0, 40_000)
SHORT = Lengths(1, 1.0, 2.0, 40_000)


@dataclass
class Sides:
    """Figures of each side, round by round, by what was measured."""

    figures: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, what: str, side: str, figure: float) -> None:
        self.figures.setdefault(what, {}).setdefault(side, []).append(figure)

    def median(self, what: str, side: str) -> float:
        return statistics.median(self.figures[what][side])

    def ratio(self, what: str) -> float:
        """The median of what the rounds say, each for itself."""
        pairs = zip(self.figures[what][OURS], self.figures[what][THEIRS], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


class Queue:
    """A queue of one side, made for one measurement."""

    def __init__(self, server: Running, wrk: Wrk) -> None:
        self._server = server
        self._wrk = wrk
        self.url = str(_asked(server, "CreateQueue", QueueName=f"q{uuid.uuid4().hex}")["QueueUrl"])

    def sends(self, seconds: float) -> float:
        return load(self._wrk, self._server.url, "send", self.url, CONNECTIONS, seconds).rate

    def batches(self, seconds: float) -> float:
        return load(self._wrk, self._server.url, "send-batch", self.url, CONNECTIONS, seconds).rate * BATCH

    def takes(self, seconds: float, what: str) -> float:
        found = load(self._wrk, self._server.url, what, self.url, CONNECTIONS, seconds)
        if found.dry > 2 * CONNECTIONS:
            raise RuntimeError(f"{found.dry} receives found nothing: there was too little to take")
        return found.deleted / found.seconds

    def fill(self, messages: float, seconds: float) -> None:
        while self.depth() < messages:
            self.batches(seconds)

    def depth(self) -> int:
        name = "ApproximateNumberOfMessages"
        said = _asked(self._server, "GetQueueAttributes", QueueUrl=self.url, AttributeNames=[name])
        return int(said["Attributes"][name])

    def paced(self, per_second: float, seconds: float) -> float:
        """p99 of single sends that leave when they are due, in milliseconds."""
        sends = PacedSends(self._server.port, _request("SendMessage", self._message()), per_second, CONNECTIONS)
        uvloop.run(sends.run(seconds))
        return statistics.quantiles(sends.put_seconds, n=100)[98] * 1000

    def delete(self) -> None:
        _asked(self._server, "DeleteQueue", QueueUrl=self.url)

    def _message(self) -> bytes:
        return json.dumps({"QueueUrl": self.url, "MessageBody": BODY.decode()}).encode()


@contextmanager
def queue(server: Running, wrk: Wrk) -> Iterator[Queue]:
    made = Queue(server, wrk)
    yield made
    made.delete()


def _request(action: str, body: bytes) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: 127.0.0.1", f"X-Amz-Target: AmazonSQS.{action}",
             "Content-Type: application/x-amz-json-1.0", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def measure(lengths: Lengths) -> Sides:
    found = Sides()
    wrk = fetch_wrk()
    with tempfile.TemporaryDirectory() as folder:
        check_file(Path(folder))
        with empty_handler() as empty, embedded(folder) as ours, elasticmq() as theirs:
            sides = {OURS: ours, THEIRS: theirs}
            for server in sides.values():
                _warm_up(server, wrk, lengths)
            taken = dict.fromkeys(sides, float(lengths.first_taken))
            for number in range(lengths.rounds):
                # Every other round goes backwards, so that none is always the first.
                for side in list(sides)[:: -1 if number % 2 else 1]:
                    taken[side] = _round(found, side, sides[side], wrk, lengths.seconds, taken[side])
                rate = load(wrk, empty.url, "send", f"{empty.url}/0/q", CONNECTIONS, lengths.seconds).rate
                found.add(SEND, EMPTY, rate)
            pace = found.median(SEND, THEIRS) / 2
            for number in range(lengths.rounds):
                for side in list(sides)[:: -1 if number % 2 else 1]:
                    with queue(sides[side], wrk) as made:
                        found.add(PACED, side, made.paced(pace, lengths.seconds))
    return found


def _warm_up(server: Running, wrk: Wrk, lengths: Lengths) -> None:
    with queue(server, wrk) as made:
        made.sends(lengths.warm_up_seconds)
        made.batches(lengths.warm_up_seconds)
        made.fill(SPARE * lengths.first_taken * lengths.seconds, lengths.warm_up_seconds)
        made.takes(lengths.seconds, "take-batch")
        made.takes(lengths.seconds, "take")


def _round(found: Sides, side: str, server: Running, wrk: Wrk, seconds: float, expected: float) -> float:
    """What was taken a second, which the next round is prepared for."""
    with queue(server, wrk) as made:
        found.add(SEND, side, made.sends(seconds))
        found.add(SINGLE_TAKE, side, made.takes(seconds, "take"))
    with queue(server, wrk) as made:
        found.add(BATCHES, side, made.batches(seconds))
        made.fill(SPARE * expected * seconds, seconds)
        taken = made.takes(seconds, "take-batch")
        found.add(TAKE, side, taken)
    return taken


def _asked(server: Running, action: str, **members: object) -> dict[str, object]:
    """One request, answered."""
    said = server.call("POST", "/", json.dumps(members).encode(), **{
        "X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"})
    return dict(json.loads(said)) if said.strip() else {}


def sqs_section(short: bool) -> Section:
    found = measure(SHORT if short else LONG)
    rates = (SEND, BATCHES, TAKE, SINGLE_TAKE)
    lines = [
        "`angelhair serve --data`, write-ahead log, synchronous=FULL, read back; ElasticMQ 1.7.1 in memory, as it "
        f"comes, on the same machine in the same minutes, warmed up. JSON protocol, {CONNECTIONS} connections, bodies "
        f"of {len(BODY)} bytes, load by wrk. Messages a second, medians of rounds; of a ratio, the median of what each "
        "round says.",
        "",
        *table(("", OURS, THEIRS, "ratio", f"rounds of {OURS}", f"rounds of {THEIRS}"), (
            (what, *(_shown(found.median(what, side)) for side in (OURS, THEIRS)), f"{found.ratio(what):.2f}",
             *(" ".join(map(_shown, found.figures[what][side])) for side in (OURS, THEIRS)))
            for what in (*rates, PACED)
        )),
        "",
        f"The same sends to an {EMPTY}: {found.median(SEND, EMPTY):,.0f} a second.",
        "",
        f"{{chart:{CHART}}}",
    ]
    bars = [
        Bar(f"SQS: {SEND} / ElasticMQ's", found.ratio(SEND), SINGLE_SHARE),
        Bar(f"SQS: {BATCHES} / ElasticMQ's", found.ratio(BATCHES), BATCH_SHARE),
        Bar(f"SQS: {TAKE} / ElasticMQ's", found.ratio(TAKE), TAKE_SHARE),
        Bar(f"SQS: {PACED} / ElasticMQ's", found.ratio(PACED), LATENCY_SHARE, True),
        Bar(f"SQS: wrk's sends to an {EMPTY} / the fastest that it measures",
            found.median(SEND, EMPTY) / max(found.median(SEND, side) for side in (OURS, THEIRS)), GENERATOR_SHARE),
    ]
    groups = {what: {side: found.median(what, side) for side in (OURS, THEIRS)} for what in (*rates, PACED)}
    drawing = bar_chart("The SQS door beside ElasticMQ: messages a second, and milliseconds", groups)
    return Section("The SQS door beside ElasticMQ", lines, bars, {CHART: drawing})


def _shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}"


if __name__ == "__main__":
    section = sqs_section("--short" in sys.argv)
    print("\n".join([*section.text(), *map(str, section.bars)]))
