"""Runs plans on asyncio, over httpx.AsyncClient. `driving.py` is the same for threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from angelhair import limits
from angelhair.client.lines import Lines
from angelhair.client.parting import Parting
from angelhair.client.plans import Answer, Broken, Pause, Plan, Send
from angelhair.client.transport import Address, answer, arguments, broken

T = TypeVar("T")


async def drive(plan: Plan[T], do: Callable[[Any], Awaitable[Any]]) -> T:
    """Has every step of the plan done, until it is through."""
    outcome: Any = None
    try:
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await do(step)
    finally:
        plan.close()


class AsyncSender:
    """Does the steps that every plan has. Any number of tasks of one loop may share one."""

    def __init__(self, address: Address, parting: Parting | None = None) -> None:
        self._lines = Lines(lambda: httpx.AsyncClient(**address.options()))
        self._places = asyncio.Semaphore(limits.CLIENT_CONNECTIONS)
        self._extensions = {} if parting is None else {"trace": parting.trace_async}

    async def do(self, step: Send | Pause) -> Answer | Broken | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        async with self._places:
            line = self._lines.take()
            try:
                return answer(await line.request(**arguments(step), extensions=self._extensions))
            except httpx.RequestError as error:
                return broken(error)
            finally:
                if (old := self._lines.give_back(line)) is not None:
                    await old.aclose()

    async def close(self) -> None:
        for line in self._lines.close():
            await line.aclose()
