"""`angelhair timeline work`: handles what is due, and says how far it is."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, WrongUsage
from angelhair.cli.output import counted, escaped, on_terminal, print_json
from angelhair.cli.parsers import add_command, add_queue, whole
from angelhair.cli.timeline_kind import check_kind
from angelhair.clock import SystemClock
from angelhair.errors import AngelhairError

if TYPE_CHECKING:
    from angelhair.client import Client, Figures, Message, Worker


def add_work(verbs: Any) -> None:
    parser = add_command(
        verbs, "work", "handle what is due",
        "Takes its share of the timeline's shards and calls a function for each message that is due, with the message "
        "(its body, text, json(), due, deliveries). The function may be a coroutine function. A message for which it "
        "raises comes again, later with every try, and is set aside among the dead letters in the end. Start as many "
        "workers as there are shards, or fewer, or more: they share. Ctrl-C and SIGTERM let it finish what it has "
        "begun. On a terminal one line says how far it is; elsewhere a line comes now and then, on standard error.",
        """
        angelhair timeline work reminders --handler shop.reminders:send
        angelhair timeline work reminders --handler shop.reminders:send --concurrency 32
        angelhair timeline work reminders --print""",
        work,
    )
    add_queue(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--handler", metavar="PACKAGE.MODULE:FUNCTION",
                      help="what to call; looked for in this directory too")
    what.add_argument("--print", action="store_true", help="print every body as a line, to see that it works")
    parser.add_argument("--concurrency", type=whole(1, limits.BATCH_MESSAGES), metavar="N",
                        default=limits.CONSUMER_CONCURRENCY,
                        help=f"messages that are handled at the same time (default: {limits.CONSUMER_CONCURRENCY})")
    parser.add_argument("--consumer", metavar="NAME", help="what this worker is called (default: a new name)")
    parser.add_argument("--quiet", "-q", action="store_true", help="say nothing of how far it is")
    add_server_flags(parser)


def work(arguments: argparse.Namespace) -> int:
    handler = _printed if arguments.print else imported(arguments.handler)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    with connected(arguments) as client:
        check_kind(client, arguments.queue)
        worker = client.timeline(arguments.queue).worker(
            handler, concurrency=arguments.concurrency, consumer=arguments.consumer
        )
        reporting = _Reporting(client, arguments.queue, worker)
        if not arguments.quiet:
            reporting.start()
        try:
            worker.run(signals=True)
        finally:
            reporting.end()
    if arguments.json:
        print_json({"queue": arguments.queue, "consumer": worker.consumer, **_counts(worker.figures)})
    elif not arguments.quiet:
        print(f"{arguments.program}: stopped: {_totals(worker.figures)}", file=sys.stderr, flush=True)
    return DONE


def imported(text: str) -> Callable[[Message], object]:
    """Raises `WrongUsage`, with what is wrong: the form, the module, what it imports itself, or the name in it."""
    module_name, colon, name = text.partition(":")
    if not colon or not module_name or not name:
        raise WrongUsage(f"--handler: {text!r} is not PACKAGE.MODULE:FUNCTION, as in shop.reminders:send")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise WrongUsage(f"--handler: {module_name} cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise WrongUsage(f"--handler: {module_name} has no {name}")
        found = getattr(found, part)
    if not callable(found):
        raise WrongUsage(f"--handler: {name} of {module_name} cannot be called: it is of the type "
                         f"{type(found).__name__}")
    handler: Callable[[Message], object] = found
    return handler


def _printed(message: Message) -> None:
    print(escaped(message.body), flush=True)


def _counts(figures: Figures) -> dict[str, Any]:
    return {
        "processed": figures.processed, "retried": figures.retried, "failed": figures.failed,
        "unsettled": figures.unsettled, "stops": figures.stops,
    }


def _totals(figures: Figures) -> str:
    return (
        f"{figures.processed:,} processed, {figures.retried:,} of them at a later try, {figures.failed:,} failures, "
        f"{figures.unsettled:,} not ours to ack any more"
    )


class _Reporting:
    """Says how far a worker is, from a thread of its own: a server that does not answer holds nothing else up."""

    def __init__(self, client: Client, queue: str, worker: Worker) -> None:
        self._client = client
        self._queue = queue
        self._worker = worker
        self._over = threading.Event()
        self._clock = SystemClock()
        self._lag: float | None = None
        self._lag_at = self._rate_at = self._now()
        self._seen = 0
        self._thread = threading.Thread(target=self._run, name="reporting", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
            if on_terminal(sys.stderr):
                print(file=sys.stderr)

    def _now(self) -> float:
        return self._clock.now().monotonic_ms / 1000

    def _run(self) -> None:
        changing = on_terminal(sys.stderr)
        pause = limits.TIMELINE_LINE_SECONDS if changing else limits.TIMELINE_REPORT_SECONDS
        while not self._over.wait(pause):
            line = self.line()
            if changing:
                print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
            else:
                print(line, file=sys.stderr, flush=True)

    def line(self) -> str:
        self._look()
        figures = self._worker.figures
        now = self._now()
        rate = (figures.processed - self._seen) / max(now - self._rate_at, 0.001)
        self._seen, self._rate_at = figures.processed, now
        lag = "-" if self._lag is None else f"{self._lag:.1f} s"
        state = "suspended: the locks are in doubt · " if figures.suspended else ""
        return (
            f"{state}{counted(len(figures.shards), 'shard')} · {figures.processed:,} processed ({rate:,.0f}/s) · "
            f"{figures.retried:,} at a later try · {figures.failed:,} failed · lag {lag}"
        )

    def _look(self) -> None:
        """How late the shards of this worker are; a figure that cannot be had now is no reason to stop."""
        if self._now() < self._lag_at:
            return
        self._lag_at = self._now() + limits.TIMELINE_LAG_SECONDS
        try:
            found = self._client.timeline(self._queue).shards()
        except AngelhairError:
            self._lag = None
            return
        mine = self._worker.figures.shards
        self._lag = max([shard.lag or 0.0 for shard in found if shard.shard in mine], default=0.0)
