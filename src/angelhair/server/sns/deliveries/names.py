"""Addresses of names. A resolver that hangs for one name holds up nobody who asks for another.

The system's resolver cannot be told to stop: each look runs in a thread of its own, of which there are so many, one for
a name, and nobody waits for longer than a bound. The threads are daemons: a server that stops does not wait for them.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from contextvars import Context
from typing import NamedTuple

from angelhair import limits


class Unresolved(Exception):
    """The name has no address now."""


class StillLooking(Exception):
    """Somebody waits for the address of this name already, and it takes long: come again."""


class Names:
    """To be made inside a running loop."""

    def __init__(self) -> None:
        self._looks: dict[tuple[str, int], _Look] = {}
        self._room = asyncio.Semaphore(limits.SNS_RESOLVES_AT_ONCE)

    async def addresses(self, host: str, port: int) -> list[str]:
        """Raises `Unresolved` or `StillLooking`."""
        # What is an address in itself is no question for a resolver.
        with suppress(OSError, ValueError):
            return _resolved(host, port, socket.AI_NUMERICHOST)
        loop = asyncio.get_running_loop()
        look = self._looks.get((host, port))
        late: Unresolved | StillLooking = Unresolved(_late(host))
        if look is None:
            task = loop.create_task(self._look(host, port), name=f"address of {host}", context=Context())
            look = self._looks[host, port] = _Look(loop.time(), task)
            wait_seconds = limits.SNS_RESOLVE_SECONDS
        elif loop.time() - look.began >= limits.SNS_RESOLVE_SECONDS:
            raise late
        else:
            wait_seconds = look.began + limits.SNS_RESOLVE_JOINED_SECONDS - loop.time()
            late = StillLooking(f"the address of {host} is being looked for")
        if look.task not in (await asyncio.wait([look.task], timeout=max(0, wait_seconds)))[0]:
            raise late
        found = look.task.result()
        if isinstance(found, Unresolved):
            raise found
        return found

    async def stop(self) -> None:
        tasks = [look.task for look in self._looks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, host: str, port: int) -> list[str] | Unresolved:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str] | Unresolved] = loop.create_future()

        def look() -> None:
            try:
                found: list[str] | Unresolved = _resolved(host, port) or Unresolved(f"{host} has no address")
            except Exception as error:  # noqa: BLE001 - whatever it is, who waits is to hear of it
                found = Unresolved(f"{host} has no address: {error}")
            with suppress(RuntimeError):
                # The loop may be gone by now.
                loop.call_soon_threadsafe(_tell, answer, found)

        try:
            async with self._room:
                threading.Thread(target=look, name=f"address of {host}", daemon=True).start()
                return await answer
        finally:
            self._looks.pop((host, port), None)


class _Look(NamedTuple):
    began: float
    task: asyncio.Task[list[str] | Unresolved]


def _resolved(host: str, port: int, flags: int = 0) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)]


def _tell(answer: asyncio.Future[list[str] | Unresolved], found: list[str] | Unresolved) -> None:
    if not answer.done():
        answer.set_result(found)


def _late(host: str) -> str:
    return f"{host} has no address after {limits.SNS_RESOLVE_SECONDS:g} seconds"
