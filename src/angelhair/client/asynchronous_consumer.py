"""The consumer for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from angelhair.client.asynchronous_driving import AsyncSender, drive
from angelhair.client.consuming import Consuming, Handle, OnError, Rest, Rules, Start
from angelhair.client.keeper import Keeper
from angelhair.client.parting import Parting
from angelhair.client.plans import Plan, Send
from angelhair.client.retrying import Manner
from angelhair.client.signals import stopping_on_signals
from angelhair.client.transport import Address
from angelhair.client.values import Message
from angelhair.errors import RequestError

_log = logging.getLogger("angelhair.client")


class AsyncConsumer:
    """Hands the messages of a queue to a handler, several at a time, each in a task.

    What `Consumer` says holds here. A handler that is cancelled, because `run` was, gives its message back at once.
    Made by `AsyncClient.consumer`; runs once.
    """

    def __init__(
        self,
        address: Address,
        manner: Manner,
        sender: AsyncSender,
        rules: Rules,
        handler: Callable[[Message], Awaitable[object]],
        on_error: OnError | None,
    ) -> None:
        self._address = address
        self._sender = sender
        self._parting = Parting()
        self._handler = handler
        self._consuming = Consuming(rules, manner, on_error)
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, *, signals: bool = False) -> None:
        """Until `stop`, which with `signals` SIGTERM and SIGINT call. Messages under way are finished first."""
        self._loop = asyncio.get_running_loop()
        refused: RequestError | None = None
        self._receives = AsyncSender(self._address, self._parting)
        keeper = Keeper(self._consuming, self._address)
        keeper.start()
        try:
            with stopping_on_signals(self.stop, signals):
                async with asyncio.TaskGroup() as self._tasks:
                    try:
                        await drive(self._consuming.fetching(), self._fetch)
                    except RequestError as error:
                        # Raised in here it would come out as one of a group.
                        refused = error
        finally:
            self._loop = None
            # Joining may take as long as one extension.
            await asyncio.to_thread(keeper.end)
            await self._receives.close()
        if refused is not None:
            raise refused

    def stop(self) -> None:
        """From any thread, from a handler too: takes no more messages. `run` returns when those under way are done."""
        self._consuming.stop()
        loop = self._loop
        if loop is not None:
            # A loop that is closed has nobody left to tell.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._changed.set()
        self._parting.leave()

    async def _fetch(self, step: Any) -> Any:
        return await (self._receives.do(step) if isinstance(step, Send) else self._do(step))

    async def _do(self, step: Any) -> Any:
        match step:
            case Start(plan):
                self._tasks.create_task(self._run_beside(plan))
            case Rest(seconds):
                await self._rest(seconds)
            case Handle(message):
                return await self._handle(message)
            case _:
                return await self._sender.do(step)
        return None

    async def _run_beside(self, plan: Plan[None]) -> None:
        try:
            await drive(plan, self._do)
        except Exception:  # noqa: BLE001 - one message must not end the consumer
            _log.exception("handling a message met an error that it does not know")
        finally:
            self._changed.set()

    async def _rest(self, seconds: float | None) -> None:
        # Not `wait_for`: in Python 3.11 it can swallow a cancellation that meets a wake-up.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def _handle(self, message: Message) -> Exception | asyncio.CancelledError | None:
        try:
            await self._handler(message)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the plan decides what becomes of it
            return error
        return None
