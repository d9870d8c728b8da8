"""Consumers of both kinds that run beside a test; as a program, one that signals end."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from angelhair.client import AsyncClient, Client, Message
from tests.client.conftest import QUICK
from tests.client.server import PATIENCE_SECONDS

Work = Callable[[Message], object]


class Running:
    """A consumer in a thread of its own."""

    def __init__(self, kind: str, url: str, work: Work, blocking_the_loop: bool = False, **options: Any) -> None:
        self.failure: BaseException | None = None
        self.consumer: Any = None
        self._made = threading.Event()
        arguments = (url, work, options)
        self._thread = threading.Thread(
            target=self._run, args=(self._blocking, *arguments) if kind == "blocking"
            else (self._asynchronous, *arguments, blocking_the_loop),
        )
        self._thread.start()
        assert self._made.wait(PATIENCE_SECONDS)

    def join(self) -> None:
        """Waits until the consumer has ended by itself, and raises what it raised."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the consumer does not end"
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        self.consumer.stop()
        self.join()

    def _run(self, run: Callable[..., None], *arguments: Any) -> None:
        try:
            run(*arguments)
        except BaseException as error:
            self.failure = error
        finally:
            self._made.set()

    def _blocking(self, url: str, work: Work, options: dict[str, Any]) -> None:
        with Client(url, retry=QUICK) as client:
            self.consumer = client.consumer("chores", work, **options)
            self._made.set()
            self.consumer.run()

    def _asynchronous(self, url: str, work: Work, options: dict[str, Any], blocking_the_loop: bool) -> None:
        async def handler(message: Message) -> None:
            if blocking_the_loop:
                work(message)
            else:
                await asyncio.to_thread(work, message)

        async def main() -> None:
            async with AsyncClient(url, retry=QUICK) as client:
                self.consumer = client.consumer("chores", handler, **options)
                self._made.set()
                await self.consumer.run()

        asyncio.run(main())


@contextmanager
def running(kind: str, url: str, work: Work, **options: Any) -> Iterator[Running]:
    consumer = Running(kind, url, work, **{"wait": 1, **options})
    try:
        yield consumer
    finally:
        consumer.stop()


def main(kind: str, url: str) -> None:
    """Consumes until a signal comes; says what it does, and reads a line before it is done with a message."""

    def work(message: Message) -> None:
        print("handling", message.text, flush=True)
        sys.stdin.readline()
        print("handled", message.text, flush=True)

    async def handler(message: Message) -> None:
        await asyncio.to_thread(work, message)

    async def consume() -> None:
        async with AsyncClient(url) as client:
            await client.consumer("chores", handler, concurrency=1, wait=1).run(signals=True)

    if kind == "blocking":
        with Client(url) as client:
            client.consumer("chores", work, concurrency=1, wait=1).run(signals=True)
    else:
        asyncio.run(consume())
    print("stopped", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
