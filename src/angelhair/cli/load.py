"""`angelhair load`: produce and consume at a rate, and account for every message."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected_async
from angelhair.cli.exits import DONE, FAILED, INTERRUPTED, OUTCOME_UNKNOWN, WrongUsage, complain
from angelhair.cli.load_accounts import Accounts
from angelhair.cli.output import Advance, Cell, Column, print_json, print_table, progress
from angelhair.cli.parsers import add_command, duration, whole
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError, Unavailable
from angelhair.model import DATABAG, FIFO

if TYPE_CHECKING:
    from angelhair.client import AsyncClient, Draft, Message, Queue

DEFAULT_RATE = 100
DEFAULT_SECONDS = 10.0
DEFAULT_TASKS = 4
DEFAULT_BATCH = 100
DEFAULT_BODY_BYTES = 200

SHOW_SECONDS = 0.2
"""How often the progress bar moves."""

FIFO_GROUPS = 64
"""Groups that the messages for a fifo queue are of, in turn: one alone would be received by one consumer at a time."""

HEAD_BYTES = 48
"""The run's name and a message's number, which every body begins with."""


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "load", "produce and consume at a rate, and account for every message",
        "Puts messages at a rate for a time, receives and acks them, and accounts for each: sent, received, acked, "
        "lost, doubled. A message is due at its moment whatever the server does, and its times count from then. "
        "Without QUEUE it makes one and deletes it at the end; of a queue with other messages it leaves those alone "
        "(they come back when their visibility time-out ends); to a fifo queue it sends messages of "
        f"{FIFO_GROUPS} groups, each with a key; of a databag it hides what it receives for "
        f"{limits.LOAD_DATABAG_SECONDS:g} s only, as what is left in a partition waits for that. Exits with 0 if "
        "everything was sent, received and acked, with 75 if that is open because the server cannot be asked, else "
        "with 1; messages that come twice are allowed, and counted. Ctrl-C ends it early, with a report of what it "
        "knows.",
        """
        angelhair load
        angelhair load --rate 2000 --duration 5m --producers 8 --consumers 8
        angelhair load orders --rate 50 --duration 10s --json
        angelhair load clicks --visibility 5s""",
        run,
    )
    parser.add_argument("queue", metavar="QUEUE", nargs="?", help="the queue (default: a new one)")
    parser.add_argument("--rate", type=whole(1, limits.LOAD_RATE_MAXIMUM), metavar="N", default=DEFAULT_RATE,
                        help=f"messages a second (default: {DEFAULT_RATE})")
    parser.add_argument("--duration", type=duration, metavar="TIME", default=DEFAULT_SECONDS,
                        help=f"for how long to produce (default: {DEFAULT_SECONDS:g}s)")
    tasks = whole(1, limits.LOAD_TASKS)
    parser.add_argument("--producers", type=tasks, metavar="N", default=DEFAULT_TASKS,
                        help=f"how many put at the same time (default: {DEFAULT_TASKS})")
    parser.add_argument("--consumers", type=tasks, metavar="N", default=DEFAULT_TASKS,
                        help=f"how many receive at the same time (default: {DEFAULT_TASKS})")
    parser.add_argument("--batch", type=whole(1, limits.BATCH_MESSAGES), metavar="N", default=DEFAULT_BATCH,
                        help="at most so many messages in one request; as many as are due go together "
                        f"(default: {DEFAULT_BATCH})")
    parser.add_argument("--size", type=whole(HEAD_BYTES, limits.BODY_BYTES), metavar="BYTES",
                        default=DEFAULT_BODY_BYTES, help=f"bytes in a body (default: {DEFAULT_BODY_BYTES})")
    parser.add_argument("--visibility", type=duration, metavar="TIME",
                        help="for how long others do not see what is received (default: the queue's "
                        f"visibility_timeout; of a databag {limits.LOAD_DATABAG_SECONDS:g}s)")
    parser.add_argument("--keys", action="store_true", help="put under idempotency keys, and try again what failed "
                        "(default: what failed is counted)")
    parser.add_argument("--drain", type=duration, metavar="TIME", default=limits.LOAD_DRAIN_SECONDS,
                        help="how long to wait for the last messages at the end "
                        f"(default: {limits.LOAD_DRAIN_SECONDS:g}s)")
    add_server_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    wanted = round(arguments.rate * arguments.duration)
    if not wanted:
        raise WrongUsage(f"{arguments.rate} a second for {arguments.duration:g} s is not one message")
    made: set[str] = set()
    try:
        load = asyncio.run(_run(arguments, wanted, made))
    finally:
        for name in made:
            complain(arguments.program, f"queue {name}, made for this run, may be left behind")
    if arguments.json:
        print_json(load.report())
    else:
        _print(load.report())
    if load.open_question is not None:
        complain(arguments.program, load.open_question)
    return load.code


async def _run(arguments: argparse.Namespace, wanted: int, made: set[str]) -> Load:
    async with (
        connected_async(arguments) as client,
        # Trying again takes a key for every message, which costs: a plain put is what is measured.
        connected_async(arguments, retrying=arguments.keys) as producer,
        _queue(client, arguments.queue, made) as queue,
    ):
        load = Load(client, producer, queue, arguments, Accounts(wanted))
        with progress("load", wanted, "acked") as advance:
            await load.run(advance)
        return load


@asynccontextmanager
async def _queue(client: AsyncClient, name: str | None, made: set[str]) -> AsyncIterator[Queue]:
    """The queue to use; one that is made here is in `made` for as long as it may be there."""
    if name is not None:
        # A name that is not there is said before anything is sent.
        yield await client.queue(name)
        return
    name = f"load-{uuid4().hex[:8]}"
    made.add(name)
    try:
        queue = await client.create_queue(name)
    except Unavailable:
        made.discard(name)
        raise
    try:
        yield queue
    finally:
        with suppress(AngelhairError):
            await client.delete_queue(name)
            made.discard(name)


class Load:
    def __init__(
        self, client: AsyncClient, producer: AsyncClient, queue: Queue, arguments: argparse.Namespace,
        accounts: Accounts,
    ) -> None:
        self.accounts = accounts
        self.interrupted = False
        self._unasked: str | None = None
        """Why the server could not be asked at the end."""
        self._client = client
        self._producer = producer
        self._queue = queue.name
        self._is_fifo = queue.kind == FIFO
        self._visibility: float | None = arguments.visibility
        if self._visibility is None and queue.kind == DATABAG:
            self._visibility = limits.LOAD_DATABAG_SECONDS
        self._arguments = arguments
        self._head = uuid4().hex[:16]
        self._next = 0
        self._began = self._sent = self._ended = 0.0
        self._last = 0.0
        """When a message was last received or acked: who then still waits, waits for nothing, and is not slow."""
        self._moved = asyncio.Event()
        """Something was acked."""
        self._over = asyncio.Event()

    async def run(self, advance: Advance) -> None:
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        showing = asyncio.create_task(self._show(advance))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._arguments.consumers):
                    group.create_task(self._consume())
                async with asyncio.TaskGroup() as producers:
                    for _ in range(self._arguments.producers):
                        producers.create_task(self._produce())
                self._sent = loop.time()
                try:
                    async with asyncio.timeout(self._arguments.drain):
                        while not self.accounts.settled:
                            self._moved.clear()
                            await self._moved.wait()
                except TimeoutError:
                    await self._look()
                self._over.set()
        except ExceptionGroup as group_error:
            raise _first(group_error) from group_error
        except asyncio.CancelledError:
            # Ctrl-C. What is known is worth telling, and the queue worth deleting; a second one ends at once.
            self.interrupted = True
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        finally:
            self._ended = loop.time()
            self._sent = self._sent or self._ended
            showing.cancel()

    async def _look(self) -> None:
        """Whether what has not come is still there. Only a server that says no makes it lost."""
        try:
            held = (await self._client.queue(self._queue)).statistics
        except StoreError as error:
            self._unasked = str(error)
            return
        assert held is not None, "a queue that was asked for comes with its statistics"
        self.accounts.drained = held.exact and not (held.visible or held.in_flight or held.delayed or held.dead)

    @property
    def open_question(self) -> str | None:
        """What the report leaves open, in one line."""
        return None if self._unasked is None else f"unsettled: the server could not be asked: {self._unasked}"

    @property
    def code(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        if self.accounts.good:
            return DONE
        return FAILED if self._unasked is None else OUTCOME_UNKNOWN

    def _due(self, number: int) -> float:
        return self._began + number / float(self._arguments.rate)

    def _body(self, number: int) -> bytes:
        return f"{self._head} {number} ".encode().ljust(self._arguments.size, b".")

    def _drafts(self, numbers: range) -> list[bytes | str | Draft]:
        if not self._is_fifo:
            return [self._body(number) for number in numbers]
        from angelhair.client import Draft

        return [
            Draft(self._body(number), key=f"{self._head}-{number}", group=f"{self._head}-{number % FIFO_GROUPS}")
            for number in numbers
        ]

    def _number(self, message: Message) -> int | None:
        head, _, rest = message.body.partition(b" ")
        number = rest.partition(b" ")[0]
        if head != self._head.encode() or not number.isdigit() or int(number) >= self.accounts.wanted:
            return None
        return int(number)

    async def _produce(self) -> None:
        now = asyncio.get_running_loop().time
        while self._next < self.accounts.wanted:
            early_seconds = self._due(self._next) - now()
            if early_seconds > 0:
                await asyncio.sleep(early_seconds)
                # Another producer may have taken it meanwhile.
                continue
            first = self._next
            due = int((now() - self._began) * self._arguments.rate) + 1
            self._next = min(max(due, first + 1), first + self._arguments.batch, self.accounts.wanted)
            await self._put(range(first, self._next))

    async def _put(self, numbers: range) -> None:
        outcomes = await self._producer.put_many(self._queue, self._drafts(numbers))
        answered = asyncio.get_running_loop().time()
        for number, outcome in zip(numbers, outcomes, strict=True):
            if outcome.error is None:
                self.accounts.put(number, answered - self._due(number))
            elif isinstance(outcome.error, StoreError):
                self.accounts.not_put(number, isinstance(outcome.error, OutcomeUnknown))
            else:
                raise outcome.error
        if any(outcome.error is not None for outcome in outcomes):
            await asyncio.sleep(limits.LOAD_REST_SECONDS)

    async def _consume(self) -> None:
        while not self._over.is_set():
            try:
                messages = await self._client.receive(
                    self._queue, self._arguments.batch, wait=limits.LOAD_WAIT_SECONDS, visibility=self._visibility
                )
                await self._settle(messages)
            except StoreError:
                # What was in an answer that was lost comes again; the books show if it does not.
                await asyncio.sleep(limits.LOAD_REST_SECONDS)

    async def _settle(self, messages: list[Message]) -> None:
        now = asyncio.get_running_loop().time
        arrived = now()
        ours: dict[str, int] = {}
        for message in messages:
            number = self._number(message)
            if number is None:
                self.accounts.foreign()
            else:
                ours[message.receipt] = number
                self.accounts.received(number, arrived - self._due(number))
        if not ours:
            return
        self._last = arrived
        failures = await self._client.ack_many(message for message in messages if message.receipt in ours)
        self._last = now()
        self.accounts.acks.add(self._last - arrived)
        failed = {failure.receipt.receipt for failure in failures}
        for receipt, number in ours.items():
            if receipt not in failed:
                self.accounts.acked(number)
        self._moved.set()

    async def _show(self, advance: Advance) -> None:
        shown = 0
        while True:
            acked = self.accounts.counts["acked"]
            advance(acked - shown)
            shown = acked
            await asyncio.sleep(SHOW_SECONDS)

    def report(self) -> dict[str, Any]:
        all_seconds = self._ended - self._began
        sending_seconds = self._sent - self._began
        consuming_seconds = (self._last or self._ended) - self._began
        if not self.interrupted:
            sending_seconds = max(sending_seconds, self._arguments.duration)
            consuming_seconds = max(consuming_seconds, self._arguments.duration)
        counts = self.accounts.counts
        return {
            "queue": self._queue,
            "seconds": round(all_seconds, 3),
            "messages": self.accounts.summary(),
            "per_second": {
                "wanted": self._arguments.rate,
                "sent": round(counts["sent"] / sending_seconds, 1),
                "received": round(counts["received"] / consuming_seconds, 1),
                "acked": round(counts["acked"] / consuming_seconds, 1),
            },
            "milliseconds": {
                "put": self.accounts.puts.summary_ms(),
                "delivery": self.accounts.deliveries.summary_ms(),
                "ack": self.accounts.acks.summary_ms(),
            },
        }


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """All tasks meet the same refusal; one of them is enough to say."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, ExceptionGroup) else found


def _print(report: dict[str, Any]) -> None:
    rows: list[list[Cell]] = [["queue", report["queue"]], ["seconds", report["seconds"]]]
    rows += [[f"messages {name.replace('_', ' ')}", value] for name, value in report["messages"].items()]
    rows += [[f"{name} a second", value] for name, value in report["per_second"].items()]
    for what, found in report["milliseconds"].items():
        rows += [[f"{what} {name} (ms)", value] for name, value in found.items()]
    print_table([Column("WHAT"), Column("FOUND", numeric=True)], rows)
