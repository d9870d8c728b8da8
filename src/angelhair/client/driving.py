"""Runs plans where blocking is allowed: in the caller's thread, over httpx.Client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from angelhair import limits
from angelhair.client.lines import Lines
from angelhair.client.parting import Parting
from angelhair.client.plans import Answer, Broken, Pause, Plan, Send
from angelhair.client.transport import Address, answer, arguments, broken

T = TypeVar("T")


def drive(plan: Plan[T], do: Callable[[Any], Any]) -> T:
    """Has every step of the plan done, until it is through."""
    outcome: Any = None
    try:
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = do(step)
    finally:
        plan.close()


class Sender:
    """Does the steps that every plan has. Any number of threads may share one."""

    def __init__(
        self, address: Address, pause: Callable[[float], object] = time.sleep, parting: Parting | None = None
    ) -> None:
        self._lines = Lines(lambda: httpx.Client(**address.options()))
        self._places = threading.Semaphore(limits.CLIENT_CONNECTIONS)
        self._pause = pause
        self._extensions = {} if parting is None else {"trace": parting.trace}

    def do(self, step: Send | Pause) -> Answer | Broken | None:
        if isinstance(step, Pause):
            self._pause(step.seconds)
            return None
        with self._places:
            line = self._lines.take()
            try:
                return answer(line.request(**arguments(step), extensions=self._extensions))
            except httpx.RequestError as error:
                return broken(error)
            finally:
                if (old := self._lines.give_back(line)) is not None:
                    old.close()

    def close(self) -> None:
        for line in self._lines.close():
            line.close()
