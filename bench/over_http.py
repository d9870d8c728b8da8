"""Rates of a whole server over HTTP: `python -m bench.over_http` measures the embedded one.

Single puts, single receives with their acks, and batches of ten; beside each what bounds it, measured in the same
minute. For the embedded server that is the same server with nothing behind its door.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from angelhair.settings import DATABASE_NAME
from angelhair.stores.sqlite import open_store
from bench.clients import BODY, CONNECTIONS, fill, load, putting, taking
from bench.load import Load
from bench.processes import embedded, empty_handler
from bench.sheet import Bar, Section, Unsafe, table

SECONDS = 2.5
ROUNDS = 9
"""A machine that others share is a third faster or slower from one half minute to the next. So rounds are short and
many, a ratio is one of figures taken within seconds of each other, and what counts is the median of the rounds."""

SHORT_SECONDS = 1.0
SHORT_ROUNDS = 1

BATCH = 10

MOST_TAKEN_PER_SECOND = 60_000
"""So many messages for each second are there when batches are taken: more than go."""

PUT_SHARE = 0.35
"""Of the rate of an empty handler, at least."""

BATCH_MULTIPLE = 2.0
"""Of the rate of single puts, at least."""

EMPTY = "empty handler"
PUT = "single put"
TAKE = "single receive and ack"
BATCHES = f"receive and ack, batches of {BATCH}"


@dataclass
class Figure:
    rates: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return statistics.median(self.rates)


class Measured:
    """Figures by name, in the order in which they were first taken."""

    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}

    def add(self, name: str, found: Load, messages_per_request: float = 1.0) -> None:
        figure = self.figures.setdefault(name, Figure())
        figure.rates.append(found.rate * messages_per_request)
        figure.p50_ms.append(found.percentile_ms(50))
        figure.p99_ms.append(found.percentile_ms(99))

    def rate(self, name: str) -> float:
        return self.figures[name].per_second

    def ratio(self, name: str, beside: str) -> float:
        """The median of what the rounds say, each for itself."""
        pairs = zip(self.figures[name].rates, self.figures[beside].rates, strict=True)
        return statistics.median(rate / other for rate, other in pairs)

    def rows(self, names: Iterable[str]) -> list[tuple[str, ...]]:
        return [
            (
                name,
                f"{figure.per_second:,.0f}",
                " ".join(f"{rate:,.0f}" for rate in figure.rates),
                f"{statistics.median(figure.p50_ms):.1f}",
                f"{statistics.median(figure.p99_ms):.1f}",
            )
            for name, figure in ((name, self.figures[name]) for name in names)
        ]


HEADINGS = ("", "messages/s", "rounds", "p50 of a request, ms", "p99, ms")


def check_file(folder: Path) -> None:
    """The file as a server opens it: `open_store` sets synchronous=FULL and refuses a SQLite that does not keep it."""

    async def made() -> None:
        await (await open_store(folder / DATABASE_NAME)).close()

    asyncio.run(made())
    connection = apsw.Connection(str(folder / DATABASE_NAME))
    mode = connection.pragma("journal_mode")
    connection.close()
    if mode != "wal":
        raise Unsafe(f"SQLite: the file's journal mode is {mode}, not wal")


def measure_embedded(seconds: float = SECONDS, rounds: int = ROUNDS) -> Measured:
    measured = Measured()
    with tempfile.TemporaryDirectory() as folder:
        check_file(Path(folder))
        with empty_handler() as empty, embedded(folder) as running:
            for _ in range(rounds):
                filled, queue = f"q{uuid.uuid4().hex}", f"q{uuid.uuid4().hex}"
                running.create_queue(filled)
                running.create_queue(queue)
                fill(running, filled, int(MOST_TAKEN_PER_SECOND * seconds))
                measured.add(EMPTY, load([empty], putting("q"), CONNECTIONS, seconds))
                measured.add(PUT, load([running], putting(queue), CONNECTIONS, seconds))
                measured.add(BATCHES, load([running], taking(filled, BATCH), CONNECTIONS, seconds), BATCH / 2)
                measured.add(TAKE, load([running], taking(queue, 1), CONNECTIONS, seconds), 0.5)
    return measured


def embedded_section(short: bool) -> Section:
    found = measure_embedded(SHORT_SECONDS, SHORT_ROUNDS) if short else measure_embedded()
    lines = [
        f"`angelhair serve --data`, {CONNECTIONS} connections, bodies of {len(BODY)} bytes; the load generator runs on "
        "the same cores. Write-ahead log, synchronous=FULL, read back. Medians of rounds; of a ratio, the median "
        "of what each round says.",
        "",
        *table(HEADINGS, found.rows(found.figures)),
    ]
    bars = [
        Bar("embedded: single puts / empty handler", found.ratio(PUT, EMPTY), PUT_SHARE),
        Bar(f"embedded: {BATCHES} / single puts", found.ratio(BATCHES, PUT), BATCH_MULTIPLE),
    ]
    return Section("Embedded, over HTTP", lines, bars)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.over_http", description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round of a second each")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    section = embedded_section(options.short)
    if options.json:
        print(json.dumps({bar.what: bar.figure for bar in section.bars}))
    else:
        print("\n".join([*section.text(), *map(str, section.bars)]))
