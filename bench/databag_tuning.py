"""How partitions, batch and time-out of a databag act on rate, waiting time and duplicates: the tuning guide's curves.

`python -m bench.databag_tuning --short` is a trial. Messages come at one pace; consumers take a batch, work a little on
each message, and delete the batch: so a time-out that is shorter than that shows.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import uvloop

from bench.chart import Panel, steps
from bench.clients import BODY, request
from bench.over_http import check_file
from bench.paced import PacedSends, _Connection
from bench.processes import Running, embedded
from bench.sheet import Section, table

PER_SECOND = 400
"""Messages that are put: less than a server can do, so that what is missing is due to locks."""

BURST = 100
"""They come so many at a time, so that there are batches to be taken."""

WORK_SECONDS = 0.005
"""For one message. Then a batch is deleted as a whole."""

PRODUCERS, CONSUMERS = 4, 16
WAIT_SECONDS = 1

SECONDS, SHORT_SECONDS = 4.0, 1.0
"""Over which each setting is measured."""

WARM_UP_SECONDS = 0.5
"""Before that, and for one time-out: at first nothing is locked."""

PARTITIONS = (16, 64, 256, 1_000)
BATCHES = (1, 10, 100)
USUAL_TIMEOUT = 1.0
"""Seconds, where partitions and batches are compared: longer than the largest batch takes."""

TIMEOUTS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Seconds, where time-outs are compared."""

TIMEOUT_BATCHES = (10, 100)
USUAL_PARTITIONS = 256

TITLE = "Tuning a databag"
BY_PARTITIONS, BY_TIMEOUT = "databag-partitions", "databag-timeout"


class _Given(msgspec.Struct):
    id: str
    enqueued_at: datetime


class _Answer(msgspec.Struct):
    messages: list[_Given]


_answers, _acks = msgspec.json.Decoder(_Answer), msgspec.json.Encoder()


class Setting(NamedTuple):
    partitions: int
    batch: int
    timeout_seconds: float

    @property
    def rule(self) -> float:
        """Messages a second if every partition gives one batch in every time-out. Receives that a server answers
        together are one to a partition: while several wait it gives more."""
        return self.partitions * self.batch / self.timeout_seconds


class Point(NamedTuple):
    """What came of one setting, after the warm-up."""

    setting: Setting
    per_second: float
    """Messages that were delivered for the first time."""
    mean_ms: float
    p95_ms: float
    """From when a message was put to its first delivery, of those that were delivered."""
    again_percent: float
    """Deliveries of what had been delivered before, of all."""


class BagLoad(PacedSends):
    """Puts that leave when they are due, and consumers that work on what they are given before they delete it."""

    def __init__(self, port: int, queue: str, batch: int) -> None:
        burst = request("PUT", f"/queues/{queue}/messages", json.dumps([{"body": BODY.decode()}] * BURST).encode())
        super().__init__(port, burst, PER_SECOND / BURST, PRODUCERS)
        self._receiving = request("GET", f"/queues/{queue}/messages/{batch}?wait={WAIT_SECONDS}")
        self._acking = f"/queues/{queue}/acks"
        self._receives: set[_Connection] = set()
        self.seen: Counter[str] = Counter()
        self.counting = False
        self.first, self.again = 0, 0
        """Deliveries since it is counted."""
        self.waits_ms: list[float] = []

    async def _consume(self) -> None:
        for _ in range(CONSUMERS):
            self._receive(await self._connect(self._consumer_answered))

    def _receive(self, consumer: _Connection) -> None:
        if not consumer.lost:
            self._receives.add(consumer)
            consumer.send(self._receiving)

    def _consumer_answered(self, consumer: _Connection, status: int, body: bytes) -> None:
        if status >= 300:
            self.refused[status] += 1
        given = _answers.decode(body).messages if consumer in self._receives else []
        self._receives.discard(consumer)
        if not given:
            self._receive(consumer)
            return
        now = time.time()
        for message in given:
            self.seen[message.id] += 1
            if self.counting and self.seen[message.id] == 1:
                self.first += 1
                self.waits_ms.append((now - message.enqueued_at.timestamp()) * 1_000)
            elif self.counting:
                self.again += 1
        deleting = request("POST", self._acking, _acks.encode({"receipts": [message.id for message in given]}))
        asyncio.get_running_loop().call_later(
            WORK_SECONDS * len(given), lambda: None if consumer.lost else consumer.send(deleting)
        )


def measure(server: Running, setting: Setting, seconds: float) -> Point:
    warm_up_seconds = WARM_UP_SECONDS + setting.timeout_seconds
    queue = f"q{uuid.uuid4().hex}"
    server.create_queue(
        queue, kind="databag", min_partitions=setting.partitions, max_partitions=setting.partitions,
        visibility_timeout=setting.timeout_seconds,
    )
    load = BagLoad(server.port, queue, setting.batch)

    async def run() -> float:
        running = asyncio.create_task(load.run(warm_up_seconds + seconds))
        await asyncio.wait([running], timeout=warm_up_seconds)
        load.counting, began = True, time.perf_counter()
        await asyncio.wait([running], timeout=seconds)
        load.counting, took = False, time.perf_counter() - began
        await running
        return took

    took_seconds = uvloop.run(run())
    server.call("DELETE", f"/queues/{queue}")
    waits = sorted(load.waits_ms) or [0.0]
    return Point(
        setting, load.first / took_seconds, statistics.fmean(waits), waits[int(len(waits) * 0.95)],
        100 * load.again / max(1, load.first + load.again),
    )


def settings() -> tuple[list[Setting], list[Setting]]:
    by_partitions = [
        Setting(partitions, batch, USUAL_TIMEOUT) for batch in BATCHES for partitions in PARTITIONS
    ]
    by_timeout = [
        Setting(USUAL_PARTITIONS, batch, timeout) for batch in TIMEOUT_BATCHES for timeout in TIMEOUTS
    ]
    return by_partitions, by_timeout


def databags_section(short: bool) -> Section:
    seconds = SHORT_SECONDS if short else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        check_file(Path(folder))
        with embedded(folder) as server:
            by_partitions, by_timeout = (
                [measure(server, setting, seconds) for setting in some] for some in settings()
            )
    lines = [
        f"`angelhair serve --data`: {PER_SECOND} messages a second come, {BURST} at a time. {CONSUMERS} consumers take "
        f"a batch each, work for {WORK_SECONDS * 1_000:g} ms on each message and then delete the batch. Each line is a "
        f"databag of its own, over {seconds:g} s. Waiting: from the put to the first delivery, of those that were "
        "delivered; where fewer come out than go in, the others wait longer and longer.",
        "",
        f"By partitions and batch, with a time-out of {USUAL_TIMEOUT:g} s:",
        "",
        *_table(by_partitions),
        "",
        f"{{chart:{BY_PARTITIONS}}}",
        "",
        f"By time-out and batch, with {USUAL_PARTITIONS} partitions:",
        "",
        *_table(by_timeout),
        "",
        f"{{chart:{BY_TIMEOUT}}}",
    ]
    return Section(TITLE, lines, [], charts_of(by_partitions, by_timeout))


def charts_of(by_partitions: Sequence[Point], by_timeout: Sequence[Point]) -> dict[str, str]:
    return {
        BY_PARTITIONS: steps(
            f"By partitions; batches of {_listed(BATCHES)}; time-out {USUAL_TIMEOUT:g} s",
            [f"{each:,}" for each in PARTITIONS], "partitions", _panels(by_partitions, BATCHES)[:2],
        ),
        BY_TIMEOUT: steps(
            f"By time-out; batches of {_listed(TIMEOUT_BATCHES)}; {USUAL_PARTITIONS} partitions",
            [f"{each:g} s" for each in TIMEOUTS], "time-out", _panels(by_timeout, TIMEOUT_BATCHES),
        ),
    }


def _listed(numbers: Sequence[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _panels(points: Iterable[Point], batches: Sequence[int]) -> list[Panel]:
    found = list(points)

    def curves(read: Callable[[Point], float]) -> dict[str, list[float]]:
        return {
            f"batches of {batch}": [read(point) for point in found if point.setting.batch == batch] for batch in batches
        }

    return [
        Panel(f"delivered, messages a second ({PER_SECOND} are put)", curves(lambda point: point.per_second)),
        Panel("waiting, ms, on average", curves(lambda point: point.mean_ms)),
        Panel("delivered again, % of deliveries", curves(lambda point: point.again_percent)),
    ]


def _table(points: Iterable[Point]) -> list[str]:
    headings = (
        "partitions", "batch", "time-out", "partitions × batch ÷ time-out", "delivered a second", "waiting, on average",
        "p95", "delivered again",
    )
    return table(
        headings,
        (
            (
                f"{point.setting.partitions:,}", f"{point.setting.batch}", f"{point.setting.timeout_seconds:g} s",
                f"{point.setting.rule:,.0f}/s", f"{point.per_second:,.0f}", f"{point.mean_ms:,.0f} ms",
                f"{point.p95_ms:,.0f} ms", f"{point.again_percent:.1f} %",
            )
            for point in points
        ),
    )


if __name__ == "__main__":
    section = databags_section("--short" in sys.argv)
    print("\n".join(section.text()))
