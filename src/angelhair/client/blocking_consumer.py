"""The consumer for threads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Barrier
from typing import Any

from angelhair.client.consuming import Consuming, Handle, OnError, Rest, Rules, Start
from angelhair.client.driving import Sender, drive
from angelhair.client.keeper import Keeper
from angelhair.client.parting import Parting
from angelhair.client.plans import Plan, Send
from angelhair.client.retrying import Manner
from angelhair.client.signals import stopping_on_signals
from angelhair.client.transport import Address
from angelhair.client.values import Message

_log = logging.getLogger("angelhair.client")


def _begin(threads: ThreadPoolExecutor, count: int) -> None:
    """Has the pool start all its threads before there is a message. A Control-C that comes while it starts one makes it
    forget that thread, and with it the message that it was started for: `run` would end before its handler does."""
    all_there = Barrier(count)
    try:
        for started in [threads.submit(all_there.wait) for _ in range(count)]:
            started.result()
    except BaseException:
        all_there.abort()
        raise


class Consumer:
    """Hands the messages of a queue to a handler, several at a time, each in a thread.

    A message whose handler returns is acked. One whose handler raises is given back, to be delivered again after a
    delay that grows with its deliveries; `on_error` is told, and may return another delay in seconds. While a handler
    runs, its message is kept hidden from others. In a databag, which hides partitions and not messages, it is hidden
    for `visibility` and no longer, and comes again then if its handler raised. Made by `Client.consumer`; runs once.
    """

    def __init__(
        self,
        address: Address,
        manner: Manner,
        sender: Sender,
        rules: Rules,
        handler: Callable[[Message], object],
        on_error: OnError | None,
    ) -> None:
        self._address = address
        self._sender = sender
        self._parting = Parting()
        self._handler = handler
        self._consuming = Consuming(rules, manner, on_error)
        # What `stop` does must be allowed in a signal handler, and of all queues and events only this one promises it.
        self._changes: SimpleQueue[None] = SimpleQueue()

    def run(self, *, signals: bool = False) -> None:
        """Until `stop`, which with `signals` SIGTERM and SIGINT call. Messages under way are finished first."""
        self._receives = Sender(self._address, parting=self._parting)
        keeper = Keeper(self._consuming, self._address)
        keeper.start()
        try:
            with (
                stopping_on_signals(self.stop, signals),
                ThreadPoolExecutor(self._consuming.rules.concurrency, "angelhair handler") as self._threads,
            ):
                _begin(self._threads, self._consuming.rules.concurrency)
                drive(self._consuming.fetching(), self._fetch)
        finally:
            keeper.end()
            self._receives.close()

    def stop(self) -> None:
        """From any thread, from a handler too: takes no more messages. `run` returns when those under way are done."""
        self._consuming.stop()
        self._changes.put(None)
        self._parting.leave()

    def _fetch(self, step: Any) -> Any:
        return self._receives.do(step) if isinstance(step, Send) else self._do(step)

    def _do(self, step: Any) -> Any:
        match step:
            case Start(plan):
                self._threads.submit(self._run_beside, plan)
            case Rest(seconds):
                self._rest(seconds)
            case Handle(message):
                return self._handle(message)
            case _:
                return self._sender.do(step)
        return None

    def _run_beside(self, plan: Plan[None]) -> None:
        try:
            drive(plan, self._do)
        except Exception:  # noqa: BLE001 - one message must not end the consumer
            _log.exception("handling a message met an error that it does not know")
        finally:
            self._changes.put(None)

    def _rest(self, seconds: float | None) -> None:
        try:
            self._changes.get(timeout=seconds)
            while True:
                self._changes.get_nowait()
        except Empty:
            pass

    def _handle(self, message: Message) -> Exception | None:
        try:
            self._handler(message)
        except Exception as error:  # noqa: BLE001 - the plan decides what becomes of it
            return error
        return None
