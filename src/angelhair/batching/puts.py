"""Puts in groups, in two stages that overlap: while one group's rows are being written the next reserves its ids. If
that is smaller it waits for more: by itself it would cost each of its messages more. A reservation that another server
was faster at is made again for all that have come meanwhile.

On a store that makes a put in one step there is one stage: a group is what came while the last one was under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from angelhair import limits
from angelhair.batching.group import answer_to, take
from angelhair.batching.runtime import Promise, Runtime
from angelhair.engine.engine import Engine, PutOutcome
from angelhair.engine.puts import Reservation
from angelhair.engine.ranks import Rank
from angelhair.model import NewMessage

Request = Sequence[NewMessage]
Waiting = tuple[Request, Promise[list[PutOutcome]]]


class Puts:
    """The puts of one queue, of one rank."""

    def __init__(
        self, engine: Engine, runtime: Runtime, account: str, name: str, rank: Rank, forget: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._runtime = runtime
        self._account = account
        self._name = name
        self._rank = rank
        self._forget = forget
        self._waiting: deque[Waiting] = deque()
        self._reserving = False
        self._writing = 0
        self._writing_requests = 0
        self._polite = 0
        """So many groups still wait for the one before to be written, because other servers reserve here too."""
        self._lost = 0
        self._room: Promise[None] | None = None

    def ask(self, request: Request) -> Promise[list[PutOutcome]]:
        promise: Promise[list[PutOutcome]] = self._runtime.promise()
        self._waiting.append((request, promise))
        if not self._reserving:
            self._reserving = True
            self._runtime.spawn(self._reserve() if self._engine.joined is None else self._put())
        else:
            self._tell_room()
        return promise

    async def _put(self) -> None:
        while group := take(self._waiting, _weigh, limits.BATCH_MESSAGES):
            outcomes: list[PutOutcome] | Exception
            try:
                outcomes = await self._engine.put_group(self._account, self._name, _messages(group), self._rank)
            except Exception as error:  # noqa: BLE001 - whatever it is, the requests wait for it
                outcomes = error
            # By another task, so that the next group is on its way before these are answered.
            self._runtime.spawn(_answer(group, outcomes))
        self._reserving = False
        self._forget()

    async def _reserve(self) -> None:
        while self._waiting:
            if not self._has_room():
                self._room = self._runtime.promise()
                await self._room
                continue
            group = take(self._waiting, _weigh, limits.BATCH_MESSAGES)
            if not group:
                break
            try:
                count = partial(self._join, group)
                reservation = await self._engine.reserve_or_none(self._account, self._name, count, self._rank)
                if reservation is None:
                    # A kind that puts whole groups: the next is what comes while this one is under way.
                    put = self._engine.put_whole(self._account, self._name, _messages(group), self._rank)
                    await _answer(group, await put)
                    continue
            except Exception as error:  # noqa: BLE001 - whatever it is, the requests wait for it
                await _answer(group, error)
                continue
            self._mind_others(reservation)
            self._writing += 1
            self._writing_requests += len(group)
            self._runtime.spawn(self._write(reservation, group))
        self._reserving = False
        if not self._writing:
            self._forget()

    def _join(self, group: list[Waiting]) -> int:
        """All that have come join the group whose ids are about to be asked for; how many messages they are."""
        return sum([len(request) for request, _ in take(self._waiting, _weigh, limits.BATCH_MESSAGES, group)])

    def _mind_others(self, reservation: Reservation) -> None:
        """Who reserves without a pause always knows the next id, and others, who must read it first, never get a turn:
        while there are others, the next reservation comes after this group is written."""
        lost = reservation.lane.view.reservations_lost
        self._polite = limits.POLITE_GROUPS if lost != self._lost else max(0, self._polite - 1)
        self._lost = lost

    def _has_room(self) -> bool:
        """Whether the next group may go beside those that are being written."""
        if not self._writing:
            return True
        if self._polite or self._writing >= limits.PUT_GROUPS_WRITING:
            return False
        return len(self._waiting) >= self._writing_requests

    def _tell_room(self) -> None:
        if self._room is not None and not self._room.done() and self._has_room():
            self._room.set_result(None)

    async def _write(self, reservation: Reservation, group: list[Waiting]) -> None:
        try:
            await _answer(group, await self._engine.put_reserved(reservation, _messages(group)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the requests wait for it
            await _answer(group, error)
        self._writing -= 1
        self._writing_requests -= len(group)
        self._tell_room()
        if not self._writing and not self._reserving:
            self._forget()


def _messages(group: list[Waiting]) -> list[NewMessage]:
    return [message for request, _ in group for message in request]


async def _answer(group: list[Waiting], outcomes: list[PutOutcome] | Exception) -> None:
    position = 0
    for request, promise in group:
        if isinstance(outcomes, Exception):
            answer_to(promise, outcomes)
        else:
            answer_to(promise, outcomes[position : position + len(request)])
        position += len(request)


def _weigh(request: Request) -> int:
    """Messages, or what their bodies come to in units of a message that a group holds comfortably."""
    size = sum([len(message.body) for message in request])
    return max(len(request), size * limits.BATCH_MESSAGES // limits.PUT_GROUP_BYTES)
