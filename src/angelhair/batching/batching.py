"""The engine's verbs for single requests: each joins the group that is forming for its queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from angelhair import limits
from angelhair.batching.group import Group
from angelhair.batching.puts import Puts
from angelhair.batching.runtime import Runtime
from angelhair.engine.engine import Engine, PutOutcome, ReceiveOutcome
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.routing import Routed
from angelhair.errors import AngelhairError, RequestError
from angelhair.model import (
    Ask,
    Delivery,
    NewMessage,
    WantedChange,
    validate_ask,
    validate_change,
    validate_message,
    validate_name,
    validate_whole,
)

AckOutcome = AngelhairError | None
Acks = Group[Sequence[str], list[AckOutcome]]
Changes = Group[Sequence[WantedChange], list[AckOutcome]]
Receives = Group[Ask, list[Delivery]]

Name = tuple[str, str]
K = TypeVar("K")
V = TypeVar("V")


class Batching:
    """What a door calls: one request in, one answer out. Requests are checked before they join a group."""

    def __init__(self, engine: Engine, runtime: Runtime) -> None:
        self.engine = engine
        self._runtime = runtime
        self._puts: dict[tuple[str, str, Rank], Puts] = {}
        self._receives: dict[Name, Receives] = {}
        self._acks: dict[Name, Acks] = {}
        self._acks_in_flight: dict[Name, Acks] = {}
        self._changes: dict[Name, Changes] = {}

    async def put(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """An id for each message, or the error that it met."""
        # A copy: a caller that gives up may go on using its list while the group that holds it is under way.
        messages = tuple(messages)
        _check_count(len(messages))
        for message in messages:
            validate_message(message)
        _key(account, name)
        await self.engine.check_dues(account, name, messages)
        routed = self.engine.route(account, name, messages)
        if routed is None:
            return await self._puts_of(account, name, PLAIN).ask(messages)
        return await self._put_routed(account, name, routed)

    async def _put_routed(self, account: str, name: str, routed: Routed) -> list[PutOutcome]:
        """Those of different ranks in groups of their own, side by side."""
        outcomes: list[PutOutcome] = []
        try:
            promises = {
                rank: self._puts_of(account, name, rank).ask(routed.messages(rank)) for rank in routed.parts
            }
            found: dict[Rank, list[PutOutcome] | AngelhairError] = {}
            for rank, promise in promises.items():
                try:
                    found[rank] = await promise
                except AngelhairError as error:
                    found[rank] = error
            refusals = [each for each in found.values() if isinstance(each, RequestError)]
            if len(refusals) == len(found):
                # It is the queue that is wrong, as it would be for messages of one rank.
                raise refusals[0]
            outcomes = routed.joined(found)
            return outcomes
        finally:
            routed.end(outcomes)

    def _puts_of(self, account: str, name: str, rank: Rank) -> Puts:
        key = (account, name, rank)
        puts = self._puts.get(key)
        if puts is None:
            puts = Puts(self.engine, self._runtime, account, name, rank, lambda: _forget(self._puts, key))
            self._puts[key] = puts
        return puts

    async def receive(self, account: str, name: str, ask: Ask) -> list[Delivery]:
        """Up to as many messages as asked for; none when there are none. Raises what kept it from looking."""
        validate_ask(ask)
        key = _key(account, name)
        receives = self._receives.get(key)
        if receives is None:

            async def run(group: list[Ask]) -> list[ReceiveOutcome]:
                return await self.engine.receive(account, name, group)

            # Where changes of one partition line up and cost no more for it, one group is looked for while the one
            # before is being claimed. Elsewhere two claims of one bucket would only keep each other from it.
            at_once = limits.RECEIVE_GROUPS if self.engine.joined is not None else 1
            receives = Group(
                self._runtime, run, _weigh_ask, limits.BATCH_MESSAGES, lambda: _forget(self._receives, key), at_once
            )
            self._receives[key] = receives
        return await receives.ask(ask)

    async def ack(
        self, account: str, name: str, receipts: Sequence[str], in_flight: bool = False
    ) -> list[AckOutcome]:
        """None for each receipt that settled its message, or what is wrong. `in_flight`: see `Engine.ack`."""
        receipts = tuple(receipts)
        _check_count(len(receipts))
        key = _key(account, name)
        waiting = self._acks_in_flight if in_flight else self._acks
        acks = waiting.get(key)
        if acks is None:

            async def run(group: list[Sequence[str]]) -> list[list[AckOutcome]]:
                texts = [text for request in group for text in request]
                return _split(group, await self.engine.ack(account, name, texts, in_flight))

            acks = Group(self._runtime, run, len, limits.BATCH_MESSAGES, lambda: _forget(waiting, key))
            waiting[key] = acks
        return await acks.ask(receipts)

    async def change(self, account: str, name: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        """Extends, releases or rewrites delivered messages; None for each that was changed, or what is wrong."""
        changes = tuple(changes)
        _check_count(len(changes))
        for change in changes:
            validate_change(change)
        key = _key(account, name)
        waiting = self._changes.get(key)
        if waiting is None:

            async def run(group: list[Sequence[WantedChange]]) -> list[list[AckOutcome]]:
                wanted = [change for request in group for change in request]
                return _split(group, await self.engine.change(account, name, wanted))

            waiting = Group(self._runtime, run, len, limits.BATCH_MESSAGES, lambda: _forget(self._changes, key))
            self._changes[key] = waiting
        return await waiting.ask(changes)


def _key(account: str, name: str) -> Name:
    """What a group goes by. A name that only equals another would join its group, and fail it."""
    if type(account) is not str or type(name) is not str:
        validate_name("account", account)
        validate_name("name", name)
    return account, name


def _weigh_ask(ask: Ask) -> int:
    return ask.messages


def _split(group: Sequence[Sequence[object]], outcomes: list[AckOutcome]) -> list[list[AckOutcome]]:
    """One flat list of outcomes, cut up by request again."""
    answers = []
    position = 0
    for request in group:
        answers.append(outcomes[position : position + len(request)])
        position += len(request)
    return answers


def _forget(groups: dict[K, V], key: K) -> None:
    """An idle queue costs nothing."""
    groups.pop(key, None)


def _check_count(count: int) -> None:
    validate_whole("messages", count, 1, limits.BATCH_MESSAGES)
