"""Where messages go that say of which tenant they are, or how urgent: each to lanes of its rank."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.engine.bucketed.lane import LaneView
from angelhair.engine.catalog import Queue
from angelhair.engine.memory import Memory
from angelhair.engine.ranks import NO_LANE, PLAIN, Rank
from angelhair.engine.tenants import Tenants
from angelhair.errors import AngelhairError
from angelhair.model import BUCKETED, HIDDEN, DueId, MessageId, NewMessage

PutOutcome = MessageId | AngelhairError


class Routed:
    """The messages of one request, by rank: `parts` has the places of each in the request."""

    def __init__(self, messages: Sequence[NewMessage], parts: dict[Rank, list[int]], tenants: Tenants | None) -> None:
        self.parts = parts
        self._messages = messages
        self._tenants = tenants

    def messages(self, rank: Rank) -> list[NewMessage]:
        return [self._messages[index] for index in self.parts[rank]]

    def joined(self, outcomes: dict[Rank, list[PutOutcome] | AngelhairError]) -> list[PutOutcome]:
        """In the order of the request. What a whole part met raises only if it is all that there is."""
        if len(outcomes) == 1 and isinstance(error := next(iter(outcomes.values())), AngelhairError):
            raise error
        by_index: dict[int, PutOutcome] = {}
        for rank, found in outcomes.items():
            places = self.parts[rank]
            each = [found] * len(places) if isinstance(found, AngelhairError) else found
            by_index.update(zip(places, each, strict=True))
        return [by_index[index] for index in range(len(self._messages))]

    def end(self, outcomes: Sequence[PutOutcome]) -> None:
        """To be told at the end in any case; without outcomes when there are none."""
        if self._tenants is None:
            return
        elsewhere = set(self.parts.get(NO_LANE, ()))
        for index, message in enumerate(self._messages):
            if message.group is not None and index not in elsewhere:
                outcome = outcomes[index] if outcomes else None
                # With the key of a message that waits in the delay line, nothing waits in a lane.
                here = outcome if isinstance(outcome, MessageId) and not isinstance(outcome, DueId) else None
                self._tenants.was_put(message.group, here)


def route(memory: Memory, account: str, name: str, messages: Sequence[NewMessage]) -> Routed | None:
    """None when there is nothing to be told apart: then all go where all messages go.

    By what is remembered of the queue, however old: whoever takes a lane looks again. Of a queue that this server does
    not know yet, only the priorities count.
    """
    queue = memory.remembered(account, name)
    delay_ms = 0 if queue is None else queue.settings.delay_ms
    for message in messages:
        if message.group is not None or message.priority or message.delay_ms or delay_ms:
            break
    else:
        return None
    if queue is not None and queue.settings.kind != BUCKETED:
        return None
    longest_ms = limits.DURATION_MAXIMUM_MS if str(account).startswith(HIDDEN) else limits.DELAY_LINE_MS
    tenants = memory.tenants(queue) if queue is not None and queue.settings.fair else None
    handed_out, waiting = ({}, 0) if queue is None or tenants is None else _standing(memory, queue)
    parts: dict[Rank, list[int]] = {}
    for index, message in enumerate(messages):
        if (delay_ms if message.delay_ms is None else message.delay_ms) > longest_ms:
            parts.setdefault(NO_LANE, []).append(index)
            continue
        noisy = tenants is not None and message.group is not None and tenants.put(message.group, handed_out, waiting)
        waiting += 1
        parts.setdefault(Rank(message.priority, noisy), []).append(index)
    if tenants is None and [*parts] == [PLAIN]:
        return None
    return Routed(messages, parts, tenants)


def _standing(memory: Memory, queue: Queue) -> tuple[dict[int, int], int]:
    """By lane, up to which id its messages have been handed out; and how many wait in all."""
    views = {number: memory.view(queue, number, LaneView) for number in queue.read_lanes}
    handed_out = {number: view.handed_out() for number, view in views.items()}
    waiting = sum(max(0, (view.next_id or 0) - handed_out[number]) for number, view in views.items())
    return handed_out, waiting
