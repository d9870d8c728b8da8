"""How the tour speaks: headings, sentences, and a small picture of a queue's buckets. Plain unless on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TextIO

from angelhair.engine.marks import Marks

WIDTH = 100
"""Columns of told text: what a narrow terminal still shows without breaking lines itself."""

SHOWN_BUCKETS = 6
"""Buckets in one picture; a tour has fewer."""

SHOWN_RECEIPT_CHARACTERS = 8

_RESET = "\x1b[0m"
_BOLD, _DIM, _RED, _GREEN, _YELLOW, _BLUE, _CYAN = (f"\x1b[{code}m" for code in (1, 2, 31, 32, 33, 34, 36))


class Cell(Enum):
    """An id in a bucket: its sign, and its colour on a terminal."""

    WAITING = ("o", _CYAN)
    IN_FLIGHT = (">", _YELLOW)
    SETTLED = ("=", _GREEN)
    MISSING = ("?", _RED)
    FREE = (".", _DIM)


LEGEND = "o waiting   > in flight   = settled   ? reserved, not written   . not reserved"

_STATE_COLOURS = {"open": _CYAN, "closed": _BLUE, "final": _YELLOW, "finished": _GREEN, "dropped": _DIM}


class BucketPicture(NamedTuple):
    number: int
    state: str
    cells: Sequence[Cell]


class Teller:
    def __init__(self, out: TextIO, colours: bool) -> None:
        self._out = out
        self._colours = colours
        self._steps = 0
        self._legend_told = False

    def heading(self, title: str) -> None:
        self._steps += 1
        self._line()
        self._line(self._paint(f"{self._steps}. {title}", _BOLD))

    def say(self, text: str) -> None:
        """A paragraph, in the words of somebody who explains."""
        for line in textwrap.wrap(" ".join(text.split()), WIDTH - 3):
            self._line(f"   {line}")

    def did(self, call: str, answer: str = "") -> None:
        """A call that was made, and what came back."""
        arrow = self._paint(" -> ", _DIM) + answer if answer else ""
        self._line(f"     {self._paint(call, _CYAN)}{arrow}")

    def draw(self, buckets: Sequence[BucketPicture], marks: Marks) -> None:
        for bucket in buckets[-SHOWN_BUCKETS:]:
            cells = "".join(self._paint(cell.value[0], cell.value[1]) for cell in bucket.cells)
            state = self._paint(f"{bucket.state:<8}", _STATE_COLOURS[bucket.state])
            self._line(f"       bucket {bucket.number}  {state}  [{cells}]")
        low_to_high = f"floor {marks.floor} <= repair {marks.repair} <= settled {marks.settled} <= final {marks.final}"
        self._line(self._paint(f"       {low_to_high} <= reader {marks.reader}; next id {marks.next_id}", _DIM))
        if not self._legend_told:
            self._legend_told = True
            self._line(self._paint(f"       ({LEGEND})", _DIM))

    def failed(self, text: str) -> None:
        self._line()
        self._line(self._paint(text, _RED))

    def say_what_next(self, kept: Path | None) -> None:
        self._line()
        self._line(self._paint("All of it was as told.", _GREEN))
        self._line()
        self._line(self._paint("What to try next", _BOLD))
        for line in WHAT_NEXT.splitlines():
            self._line(f"   {line}" if line else "")
        if kept is not None:
            self._line(f"   The file of this tour is {kept}.")

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colours else text

    def _line(self, text: str = "") -> None:
        print(text, file=self._out, flush=True)


def short(receipt: str) -> str:
    """The end of a receipt, where it is signed: the beginnings of one queue's receipts are all alike."""
    return f"...{receipt[-SHOWN_RECEIPT_CHARACTERS:]}"


EXAMPLE = '''\
import asyncio
from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.model import Ask, NewMessage, QueueSettings
from angelhair.identities import RandomIdentities
from angelhair.stores.sqlite import open_store

async def main():
    engine = Engine(await open_store("queue.db"), RandomIdentities(), SystemClock())
    await engine.create_queue("me", "jobs", QueueSettings())
    await engine.put("me", "jobs", [NewMessage(b"hello")])
    for job in (await engine.receive("me", "jobs", [Ask(10)]))[0]:
        print(job.id, job.body)
        await engine.ack("me", "jobs", [job.receipt])
    await engine.store.close()

asyncio.run(main())
'''

WHAT_NEXT = f"""\
make serve                       queues over HTTP; README.md goes on from there, with curl and with Python's Client
make test                        everything, a real three-node Cassandra included
make simulate SEEDS=200          the same engine in 200 simulated worlds full of faults
.venv/bin/angelhair simulate --replay 7
                                 one of those worlds, step by step; the same every time
make cassandra NODES=3           a Cassandra cluster on this machine, to try things on

A queue of your own, in Python (after make setup, with .venv/bin/python):

{textwrap.indent(EXAMPLE, "    ")}
ARCHITECTURE.md is the map; docs/concepts.md has the words."""
