"""Runs the handlers of a timeline's worker, and beside them the thread that speaks to the server.

Handlers that are coroutine functions run as tasks of the event loop, others in threads. The wire has a thread of its
own and shares nothing with them but the interpreter: neither a handler that blocks the loop nor a pool full of slow
ones can hold a touch up.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any

from angelhair.client.consuming import OnError
from angelhair.client.driving import Sender, drive
from angelhair.client.retrying import Manner
from angelhair.client.signals import stopping_on_signals
from angelhair.client.transport import Address
from angelhair.client.values import Message
from angelhair.client.working import Collect, Ended, Figures, Held, Working, WorkRules

_log = logging.getLogger("angelhair.client")

Handler = Callable[[Message], object]
"""May be a coroutine function, or return something to await."""


def fresh_consumer() -> str:
    """A name that tells people which process it is, and that no other has."""
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname()).strip("-") or "worker"
    return f"{host[:32]}-{os.getpid()}-{secrets.token_hex(3)}"


class Worker:
    """Hands what is due in a timeline to a handler, from the shards that are its share. Made by `Timeline.worker`; runs
    once.

    A message whose handler returns is acked. One whose handler raises comes again, later with every try, until it has
    been delivered `max_deliveries` times; then it is set aside among the queue's dead letters. A worker that may have
    lost its shards starts no further handler and acks nothing (`figures.suspended`), until the server says which are
    its own.
    """

    def __init__(
        self, address: Address, manner: Manner, rules: WorkRules, handler: Handler, on_error: OnError | None
    ) -> None:
        self._address = address
        self._handler = handler
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004 - an object whose call is a coroutine function
        )
        self._working = Working(rules, manner, on_error, self._start)
        # What `stop` does must be allowed in a signal handler, and of all queues only this one promises it.
        self._ended: SimpleQueue[Ended | None] = SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    @property
    def consumer(self) -> str:
        return self._working.rules.consumer

    @property
    def figures(self) -> Figures:
        """What it has done so far."""
        return self._working.figures

    def run(self, *, signals: bool = False) -> None:
        """Until `stop`, which with `signals` SIGTERM and SIGINT call. What runs is finished and acked first; then it
        says goodbye, so that others take over at once."""
        asyncio.run(self.run_async(signals=signals))

    async def run_async(self, *, signals: bool = False) -> None:
        """As `run`, on the running loop."""
        self._loop = asyncio.get_running_loop()
        over = asyncio.Event()
        thread = threading.Thread(target=self._speak, args=(over,), name=f"wire of {self.consumer}", daemon=True)
        with (
            stopping_on_signals(self.stop, signals),
            ThreadPoolExecutor(self._working.rules.concurrency, "angelhair handler") as self._threads,
        ):
            thread.start()
            try:
                await over.wait()
            except asyncio.CancelledError:
                self.stop()
                for task in self._tasks:
                    task.cancel()
                await over.wait()
                raise
            finally:
                thread.join()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """From any thread, from a handler too: starts nothing more. `run` returns when what runs is done."""
        self._working.stop()
        self._ended.put(None)

    # --- the wire ---------------------------------------------------------------------------------------------------

    def _speak(self, over: asyncio.Event) -> None:
        sender = Sender(self._address)
        try:
            drive(self._working.wire(), lambda step: self._do(sender, step))
        except BaseException as error:  # noqa: BLE001 - whoever called `run` is told
            self._failure = error
        finally:
            sender.close()
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(over.set)

    def _do(self, sender: Sender, step: Any) -> Any:
        return self._collect(step.seconds) if isinstance(step, Collect) else sender.do(step)

    def _collect(self, seconds: float) -> list[Ended]:
        found: list[Ended | None] = []
        try:
            found.append(self._ended.get(timeout=seconds) if seconds > 0 else self._ended.get_nowait())
            while True:
                found.append(self._ended.get_nowait())
        except Empty:
            pass
        return [each for each in found if each is not None]

    # --- handlers ---------------------------------------------------------------------------------------------------

    def _start(self, held: Held) -> None:
        """Called by the wire's thread."""
        if self._is_async:
            self._loop.call_soon_threadsafe(self._start_task, held)
        else:
            self._threads.submit(self._run_in_thread, held)

    def _start_task(self, held: Held) -> None:
        task = self._loop.create_task(self._run_as_task(held))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_as_task(self, held: Held) -> None:
        if not self._working.may_start(held):
            self._ended.put(Ended(held, started=False))
            return
        error: Exception | asyncio.CancelledError | None = None
        try:
            await self._handler(held.message)  # type: ignore[misc]
        except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - the plan decides what becomes of it
            error = raised
        except SystemExit as raised:
            error = _exited(raised)
        self._ended.put(Ended(held, started=True, error=error))

    def _run_in_thread(self, held: Held) -> None:
        if not self._working.may_start(held):
            self._ended.put(Ended(held, started=False))
            return
        error: Exception | asyncio.CancelledError | None = None
        try:
            result = self._handler(held.message)
            if inspect.isawaitable(result):
                asyncio.run_coroutine_threadsafe(_awaited(result), self._loop).result()
        except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - as above
            error = raised
        except SystemExit as raised:
            error = _exited(raised)
        self._ended.put(Ended(held, started=True, error=error))


def _exited(error: SystemExit) -> RuntimeError:
    """It would end this thread or the loop, and nobody would hear what became of the message."""
    return RuntimeError(f"the handler wants to exit: {error.code!r}")


async def _awaited(result: Any) -> object:
    try:
        return await result
    except SystemExit as raised:
        raise _exited(raised) from None
