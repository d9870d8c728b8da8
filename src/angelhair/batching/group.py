"""Group commit: what arrives while as many groups as may be are under way goes together in the next one.

There are no timers: a lone request never waits. A group fails only as a whole when what failed concerns all of it;
otherwise each request gets its own answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from angelhair.batching.runtime import Promise, Runtime

Q = TypeVar("Q")
A = TypeVar("A")


class Group(Generic[Q, A]):
    """Requests of one kind to one queue. `run` answers each request of a group, with an answer or an error.

    `at_once`: groups under way at the same time.
    """

    def __init__(
        self,
        runtime: Runtime,
        run: Callable[[list[Q]], Awaitable[Sequence[A | Exception]]],
        weigh: Callable[[Q], int],
        most: int,
        forget: Callable[[], None],
        at_once: int = 1,
    ) -> None:
        self._runtime = runtime
        self._run = run
        self._weigh = weigh
        self._most = most
        self._forget = forget
        self._at_once = at_once
        self._waiting: deque[tuple[Q, Promise[A]]] = deque()
        self._running = 0

    async def ask(self, request: Q) -> A:
        promise: Promise[A] = self._runtime.promise()
        self._waiting.append((request, promise))
        if self._running < self._at_once:
            self._running += 1
            self._runtime.spawn(self._work())
        return await promise

    async def _work(self) -> None:
        while self._waiting:
            group = take(self._waiting, self._weigh, self._most)
            if not group:
                break
            try:
                answers = await self._run([request for request, _ in group])
            except Exception as error:  # noqa: BLE001 - whatever it is, the requests wait for it
                answers = [error] * len(group)
            for (_, promise), answer in zip(group, answers, strict=True):
                answer_to(promise, answer)
        self._running -= 1
        if not self._running:
            self._forget()


def take(
    waiting: deque[tuple[Q, Promise[A]]],
    weigh: Callable[[Q], int],
    most: int,
    group: list[tuple[Q, Promise[A]]] | None = None,
) -> list[tuple[Q, Promise[A]]]:
    """As many requests, in order, as weigh no more than `most` together; at least one. Abandoned ones are left out.
    They join `group`, which may have some already."""
    group = [] if group is None else group
    weight = sum([weigh(request) for request, _ in group])
    while waiting:
        request, promise = waiting[0]
        if promise.done():
            waiting.popleft()
            continue
        weight += weigh(request)
        if group and weight > most:
            break
        group.append(waiting.popleft())
    return group


def answer_to(promise: Promise[A], answer: A | Exception) -> None:
    if promise.done():
        return
    if isinstance(answer, Exception):
        promise.set_exception(answer)
    else:
        promise.set_result(answer)
