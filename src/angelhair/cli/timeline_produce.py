"""`angelhair timeline produce`: a producer that puts at a rate, to try a timeline with."""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, FAILED, INTERRUPTED, complain, in_words
from angelhair.cli.output import counted, print_json, progress, rfc3339, say
from angelhair.cli.parsers import add_command, add_queue, duration, whole
from angelhair.cli.timeline_kind import check_kind
from angelhair.clock import SystemClock

if TYPE_CHECKING:
    from angelhair.client import Draft, Timeline

DEFAULT_RATE = 1
TICKS_A_SECOND = 10
"""Requests a second at most: what falls due for putting in between goes together."""


def add_produce(verbs: Any) -> None:
    parser = add_command(
        verbs, "produce", "put messages at a rate, to try a timeline with",
        "Puts numbered messages at a rate, until Ctrl-C, or so many, or for so long; prints the id and the due time of "
        "each. With --spread the due times lie evenly in so much time from the start on; without it each message is "
        "due when it is put.",
        """
        angelhair timeline produce reminders
        angelhair timeline produce reminders --rate 1000 --count 20000 --spread 30s --quiet""",
        produce,
    )
    add_queue(parser)
    parser.add_argument("--rate", type=whole(1, limits.LOAD_RATE_MAXIMUM), metavar="N", default=DEFAULT_RATE,
                        help=f"messages a second (default: {DEFAULT_RATE})")
    parser.add_argument("--count", type=whole(1), metavar="N", help="stop after so many (default: never)")
    parser.add_argument("--duration", type=duration, metavar="TIME", help="stop after this (default: never)")
    parser.add_argument("--spread", type=duration, metavar="TIME",
                        help="with --count: the messages are due evenly over so much time")
    parser.add_argument("--delay", type=duration, metavar="TIME", default=0.0,
                        help="all due times are so much later (default: 0)")
    parser.add_argument("--size", type=whole(1, limits.BODY_BYTES), metavar="BYTES", default=1,
                        help="fill bodies up to this")
    parser.add_argument("--quiet", "-q", action="store_true", help="print no ids")
    add_server_flags(parser)


def produce(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        check_kind(client, arguments.queue)
        producing = _Producing(client.timeline(arguments.queue), arguments)
        try:
            with progress("producing", arguments.count) as advance:
                while (count := producing.put_some()) is not None:
                    advance(count)
        except KeyboardInterrupt:
            producing.interrupted = True
    if arguments.json:
        print_json({"queue": arguments.queue, "run": producing.run, "put": producing.put, "failed": producing.failed})
    else:
        say(f"{counted(producing.put, 'message')} put")
    if producing.failed:
        complain(arguments.program, f"{counted(producing.failed, 'message')} not put, the first because: "
                 f"{producing.reason}")
        return FAILED
    # Who produces without end is meant to be ended.
    return INTERRUPTED if producing.interrupted and arguments.count is not None else DONE


class _Producing:
    def __init__(self, timeline: Timeline, arguments: argparse.Namespace) -> None:
        self.run = uuid4().hex[:8]
        self.put = self.failed = 0
        self.reason = ""
        self.interrupted = False
        self._timeline = timeline
        self._arguments = arguments
        self._clock = SystemClock()
        self._began = self._clock.now()
        self._next = 0

    def put_some(self) -> int | None:
        """What is to be put by now; None when that was all."""
        arguments = self._arguments
        passed = (self._clock.now().monotonic_ms - self._began.monotonic_ms) / 1000
        if arguments.duration is not None and passed >= arguments.duration:
            return None
        if arguments.count is not None and self._next >= arguments.count:
            return None
        until = min(int(passed * arguments.rate) + 1, self._next + limits.BATCH_MESSAGES)
        until = until if arguments.count is None else min(until, arguments.count)
        if until <= self._next:
            time.sleep(max(self._next / arguments.rate - passed, 1 / TICKS_A_SECOND))
            return 0
        numbers = range(self._next, until)
        self._next = until
        self._put([self._draft(number) for number in numbers])
        return len(numbers)

    def _put(self, drafts: list[Draft]) -> None:
        for draft, outcome in zip(drafts, self._timeline.put_many(drafts), strict=True):
            if outcome.error is not None:
                self.failed += 1
                self.reason = self.reason or in_words(outcome.error)
                continue
            self.put += 1
            if not self._arguments.quiet and not self._arguments.json:
                assert draft.due is not None
                print(f"{outcome.id}\t{rfc3339(draft.due)}", flush=True)

    def _draft(self, number: int) -> Draft:
        from angelhair.client import Draft

        arguments = self._arguments
        began = datetime.fromtimestamp(self._began.wall_ms / 1000, UTC)
        if arguments.spread is not None and arguments.count is not None:
            due = began + timedelta(seconds=arguments.spread * number / arguments.count)
        else:
            due = datetime.fromtimestamp(self._clock.now().wall_ms / 1000, UTC)
        body = json.dumps({"run": self.run, "number": number})
        return Draft(body.ljust(arguments.size), "application/json", due=due + timedelta(seconds=arguments.delay))
