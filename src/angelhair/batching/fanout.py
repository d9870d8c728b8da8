"""Fan-out: what lies in an outbox is put into the queues of those who were subscribed (R16).

A publication is a message of the outbox like any other: whoever receives it spreads it, and acks it when every put is
confirmed. A server that dies half way leaves it to be received again. What is spread again carries keys (R10): however
often that happens, a queue gets it once more at most. Where a queue cannot be written to, the message stays, with those
that are still to come, and is tried again after a pause that grows; the others have theirs. A message of a fifo queue
cannot be changed: there each server remembers who has what it tried, as queues know keys for some minutes only.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from angelhair import limits
from angelhair.batching.batching import Batching
from angelhair.batching.runtime import Promise, Runtime
from angelhair.batching.topics import Publishing
from angelhair.engine.engine import PutOutcome
from angelhair.engine.topics.delivering import message_for, pause_ms, queue_for
from angelhair.engine.topics.postings import FIFO_OUTBOX, hidden_account, pack, unpack
from angelhair.engine.topics.values import QUEUE, Posting, Render, Target
from angelhair.errors import AngelhairError, InvalidRequest, QueueNotFound
from angelhair.model import Ask, Delivery, MessageId, NewMessage, WantedChange, validate_message

Prepare = Callable[[Sequence[tuple[Posting, Target]]], Awaitable[None]]
"""Is given what is to be rendered next, and as long as it likes. What it raises has all of it tried again."""

Put = Callable[[str, str, Sequence[NewMessage]], Awaitable[list[PutOutcome]]]


class Told(Protocol):
    """Hears of what becomes of publications."""

    def spread(self, account: str, count: int) -> None:
        """So many publications have reached everybody."""
        ...

    def dropped(self, posting: Posting, target: Target, why: str) -> None:
        """A subscription's queue is gone, and it has no dead-letter queue."""
        ...

    def unreadable(self, account: str, why: str) -> None:
        """A publication that a newer version wrote, perhaps. It stays where it is."""
        ...

    def waits(self, posting: Posting, target: Target, why: str) -> None:
        """It will be tried again."""
        ...


@dataclass(slots=True)
class _Work:
    """A publication that this server has received from the outbox."""

    delivery: Delivery
    posting: Posting
    left: list[Target]
    """Who has not got it yet."""
    everybody: frozenset[str]
    """The subscriptions that it goes to."""
    failed: bool = False

    @property
    def resumed(self) -> bool:
        return self.delivery.deliveries > 1


@dataclass(slots=True)
class _Job:
    """What one queue is to get."""

    account: str
    name: str
    items: list[tuple[_Work, Target]] = field(default_factory=list)
    last_resort: bool = False
    """It is a dead-letter queue."""


class Fanout:
    def __init__(
        self, batching: Batching, publishing: Publishing, runtime: Runtime, put: Put, render: Render, told: Told,
        prepare: Prepare | None = None,
    ) -> None:
        self._batching = batching
        self._engine = batching.engine
        self._publishing = publishing
        self._runtime = runtime
        self._put = put
        self._render = render
        self._prepare = prepare
        self._told = told
        self._have: OrderedDict[tuple[str, int], frozenset[str]] = OrderedDict()
        """Of fifo topics' publications, by id and time: the subscriptions that are done."""

    async def step(self, account: str, outbox: str) -> int:
        """Spreads what one receive gives; how many publications that was. Raises what keeps it from receiving."""
        hidden = hidden_account(account)
        began_ms = self._engine.clock.now().monotonic_ms
        ask = Ask(min(limits.FANOUT_MESSAGES, limits.BATCH_MESSAGES))
        try:
            found = await self._batching.receive(hidden, outbox, ask)
        except QueueNotFound:
            return 0
        works = self._works(account, found)
        stopped: set[str | None] = set()
        for portion in _portions(works):
            # Who slept for so long leaves it to others: the keys that they put it under may soon be forgotten.
            late = self._engine.clock.now().monotonic_ms - began_ms >= limits.FANOUT_LATE_MS
            mine = [] if late else [work for work in portion if work.delivery.group not in stopped]
            await self._spread(mine)
            await self._settle(account, outbox, mine)
            if outbox == FIFO_OUTBOX:
                stopped.update(work.delivery.group for work in portion if work.failed or work not in mine)
        return len(found)

    def _works(self, account: str, found: Sequence[Delivery]) -> list[_Work]:
        works = []
        for delivery in found:
            try:
                posting, targets = unpack(delivery.body, delivery.id)
            except ValueError as error:
                # It stays, for a version that can read it, and is in nobody's way.
                self._told.unreadable(account, str(error))
                continue
            done = self._have.get(_name(posting), frozenset())
            left = [target for target in targets if target.subscription not in done]
            works.append(_Work(delivery, posting, left, frozenset(target.subscription for target in targets)))
        return works

    # --- putting ------------------------------------------------------------------------------------------------------

    async def _spread(self, works: Sequence[_Work]) -> None:
        jobs: dict[tuple[str, str], _Job] = {}
        for work in works:
            for target in work.left:
                key = queue_for(work.posting, target)
                jobs.setdefault(key, _Job(*key)).items.append((work, target))
        lost = await self._run(list(jobs.values()))
        resorts: dict[tuple[str, str], _Job] = {}
        for work, target, why in lost:
            if target.dead_letter_queue is None:
                self._drop(work, target, why)
            else:
                key = (work.posting.account, target.dead_letter_queue)
                resorts.setdefault(key, _Job(*key, last_resort=True)).items.append((work, target))
        for work, target, why in await self._run(list(resorts.values())):
            self._drop(work, target, why)

    def _drop(self, work: _Work, target: Target, why: str) -> None:
        work.left.remove(target)
        self._told.dropped(work.posting, target, why)

    async def _run(self, jobs: Sequence[_Job]) -> list[tuple[_Work, Target, str]]:
        """Several at once, so that none has to wait for one that hangs; what can never be delivered there, and why."""
        waiting = deque(jobs)
        lost: list[tuple[_Work, Target, str]] = []

        async def work(done: Promise[None]) -> None:
            while waiting:
                job = waiting.popleft()
                try:
                    lost.extend(await self._do(job))
                except Exception as error:  # noqa: BLE001 - whatever it is, these are tried again
                    self._try_again(job.items, error)
            done.set_result(None)

        promises: list[Promise[None]] = []
        for _ in range(min(len(jobs), limits.FANOUT_PUTS)):
            promise: Promise[None] = self._runtime.promise()
            promises.append(promise)
            self._runtime.spawn(work(promise))
        for promise in promises:
            await promise
        return lost

    async def _do(self, job: _Job) -> list[tuple[_Work, Target, str]]:
        try:
            kind = await self._kind_of(job)
            if self._prepare is not None:
                await self._prepare([(work.posting, target) for work, target in job.items])
            fit, lost = self._messages(job, kind)
            outcomes = await self._put(job.account, job.name, [message for *_, message in fit]) if fit else []
        except QueueNotFound as error:
            return [(work, target, str(error)) for work, target in job.items]
        for (work, target, _), outcome in zip(fit, outcomes, strict=True):
            if isinstance(outcome, MessageId):
                work.left.remove(target)
            elif isinstance(outcome, InvalidRequest) and work.resumed:
                # Not at the first try: what this server remembers of the queue may be old.
                lost.append((work, target, str(outcome)))
            else:
                self._try_again([(work, target)], outcome)
        return lost

    async def _kind_of(self, job: _Job) -> str:
        posting, target = job.items[0][0].posting, job.items[0][1]
        if target.protocol == QUEUE or job.last_resort:
            return (await self._engine.find_queue(job.account, job.name)).settings.kind
        try:
            found = await self._engine.find_queue(job.account, job.name)
        except QueueNotFound:
            await self._publishing.make_hidden(posting.account, job.name)
            found = await self._engine.find_queue(job.account, job.name)
        return found.settings.kind

    def _messages(
        self, job: _Job, kind: str
    ) -> tuple[list[tuple[_Work, Target, NewMessage]], list[tuple[_Work, Target, str]]]:
        fit: list[tuple[_Work, Target, NewMessage]] = []
        lost: list[tuple[_Work, Target, str]] = []
        for work, target in job.items:
            message = message_for(work.posting, target, kind, work.resumed, self._render)
            try:
                validate_message(message)
                fit.append((work, target, message))
            except InvalidRequest as error:
                lost.append((work, target, str(error)))
        return fit, lost

    def _try_again(self, items: Sequence[tuple[_Work, Target]], error: Exception) -> None:
        for work, target in items:
            work.failed = True
            self._told.waits(work.posting, target, str(error))

    # --- settling -----------------------------------------------------------------------------------------------------

    async def _settle(self, account: str, outbox: str, works: Sequence[_Work]) -> None:
        """What cannot be acked or changed becomes visible again by itself, and is spread with keys."""
        hidden = hidden_account(account)
        if outbox == FIFO_OUTBOX:
            self._remember(works)
        done = [work for work in works if not work.left]
        if done:
            receipts = [work.delivery.receipt for work in done]
            outcomes = await self._quietly(self._batching.ack(hidden, outbox, receipts))
            self._told.spread(account, outcomes.count(None))
            for work, outcome in zip(done, outcomes, strict=False):
                if outcome is None:
                    self._have.pop(_name(work.posting), None)
        changes = [
            WantedChange(
                work.delivery.receipt,
                pause_ms(work.delivery.deliveries),
                # A message of a fifo queue stays as it is: the keys of its targets tell who has it.
                None if outbox == FIFO_OUTBOX else pack(work.posting, work.left),
            )
            for work in works
            if work.left
        ]
        if changes:
            await self._quietly(self._batching.change(hidden, outbox, changes))

    def _remember(self, works: Sequence[_Work]) -> None:
        for work in works:
            name = _name(work.posting)
            done = work.everybody - {target.subscription for target in work.left}
            self._have[name] = self._have.pop(name, frozenset()) | done
        while len(self._have) > limits.FANOUT_REMEMBERED:
            self._have.popitem(last=False)

    @staticmethod
    async def _quietly(asked: Awaitable[list[AngelhairError | None]]) -> list[AngelhairError | None]:
        try:
            return await asked
        except AngelhairError as error:
            return [error]


def _name(posting: Posting) -> tuple[str, int]:
    """An id is made of a place, which an outbox that was made again has once more."""
    return posting.id, posting.published_at_ms


def _portions(works: Sequence[_Work]) -> list[list[_Work]]:
    """In their order, as many at a time as fit into memory with their copies."""
    portions: list[list[_Work]] = []
    size = 0
    for work in works:
        size += len(work.delivery.body)
        if not portions or size > limits.FANOUT_BYTES:
            portions.append([])
            size = len(work.delivery.body)
        portions[-1].append(work)
    return portions
