"""Tells a story: takes it sentence by sentence, remembers who holds what, and says which line cannot be told.

What the sentences are is in `sentences.py`; docs/scenarios.md tells how to write a story.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from angelhair.engine.puts import Reservation
from angelhair.errors import AngelhairError, OutcomeUnknown, Unavailable
from angelhair.model import Delivery, DueId, MessageId
from tests.faults import Rule
from tests.queues import Server, World
from tests.scenarios import looking

FOLDER = Path(__file__).parent
WHERE_TO_LOOK = "the sentences that there are stand in docs/scenarios.md"

Answer = list[str]
Handler = Callable[..., Awaitable[Answer]]
Sentence = tuple[re.Pattern[str], Handler]


class Slip(ValueError):
    """A story cannot be told as it is written."""


def slips(name: str, text: str) -> Iterator[str]:
    """Lines that were meant as sentences and would be read as prose."""
    told = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith(">"):
            continue
        if not re.match(r">>? \S", line):
            yield f"{name}, line {number}: a sentence begins with '> ' or '>> ', and has words: {line!r}"
        if line.startswith(">>") and not told:
            yield f"{name}, line {number}: there is no sentence above that this one could happen in: {line!r}"
        told = True


def place(sentence: str) -> str:
    """Where a sentence is written: its file and line, or files and lines if it is in several."""
    found = [
        f"{path.name}, line {number}"
        for path in sorted(FOLDER.glob("*.txt"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.startswith(">") and line.lstrip(">").strip() == sentence
    ]
    return " or ".join(found) or "a story"


class Story:
    """What has happened so far: servers by name, ids that were taken, receipts that consumers hold."""

    def __init__(self, world: World, sentences: Sequence[Sentence]) -> None:
        found = [slip for path in sorted(FOLDER.glob("*.txt")) for slip in slips(path.name, path.read_text())]
        if found:
            raise Slip("; ".join(found))
        self.world = world
        self.sentences = sentences
        self.servers: dict[str, Server] = {}
        self.queues: list[str] = []
        self.taken: dict[tuple[str, str], Reservation] = {}
        self.held: dict[tuple[str, str], list[Delivery]] = {}
        self.interruptions: list[Rule] = []
        self.late: list[MessageId] = []
        """Ids of messages that wait or have waited in the delay line: nobody counts them, so the story does."""

    def called(self, identity: MessageId) -> str:
        """As the story says it."""
        if not isinstance(identity, DueId):
            return looking.reference(identity)
        if identity not in self.late:
            self.late.append(identity)
        return f"L{self.late.index(identity) + 1}"

    def server(self, name: str | None) -> Server:
        name = name or "A"
        if name not in self.servers:
            self.servers[name] = self.world.server()
        return self.servers[name]

    async def tell(self, line: str, meanwhile: Callable[[], Awaitable[None]] | None = None) -> Answer:
        try:
            return await self._tell(line, meanwhile)
        except Slip as slip:
            if slip.__cause__ is not None:
                raise  # of a sentence inside this one, which has said where it stands
            raise Slip(f"{place(line)}: {slip}") from slip

    async def _tell(self, line: str, meanwhile: Callable[[], Awaitable[None]] | None) -> Answer:
        for pattern, handler in self.sentences:
            match = pattern.fullmatch(line)
            if match:
                *groups, server = match.groups()
                arguments: list[Any] = [self, self.server(server), *groups]
                if ("meanwhile" in inspect.signature(handler).parameters) != (meanwhile is not None):
                    wanted = "takes no" if meanwhile is not None else "wants"
                    raise Slip(f"{line!r} {wanted} lines with '>> ' below it")
                if meanwhile is not None:
                    arguments.append(meanwhile)
                try:
                    return await handler(*arguments)
                except Unavailable:
                    return ["failed: it did not happen"]
                except OutcomeUnknown:
                    return ["failed: it may have happened, or may yet"]
                except AngelhairError as error:
                    return [f"refused: {error}".replace(self.world.account, "this account")]
        raise Slip(f"no sentence reads {line!r}; {WHERE_TO_LOOK}")

    def receipt(self, queue: str, identity: str, delivery: str | None) -> Delivery:
        held = self.held.get((queue, identity), [])
        if not held:
            raise Slip(f"nobody has received {identity} of {queue}")
        if delivery is None:
            return held[-1]
        for item in held:
            if item.deliveries == int(delivery):
                return item
        raise Slip(f"nobody has received delivery {delivery} of {identity} of {queue}")
