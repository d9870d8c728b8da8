"""What a worker of a timeline decides: when to touch its locks, what to ask for, what to start, ack, extend or retry.

One plan, `wire`, driven by a thread of its own that does nothing else, so that no handler can hold a touch up. It
speaks over one connection: where several servers stand behind one address, one of them keeps the worker's shards.
Beside the steps of every plan there is one:

    Collect     what handlers have come to since; waits for the first of it, for so long at most
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from angelhair import limits
from angelhair.client.consuming import OnError, tell
from angelhair.client.locks import Locks
from angelhair.client.plans import Plan
from angelhair.client.retrying import Manner
from angelhair.client.values import Message, Seconds
from angelhair.client.verbs.deliveries import ack_many, extend, receive, release
from angelhair.client.verbs.timelines import leave, touch
from angelhair.errors import AngelhairError, RequestError, StoreError
from angelhair.model import validate_name, validate_whole

_log = logging.getLogger("angelhair.client")


class Collect(NamedTuple):
    seconds: float


@dataclass(frozen=True, slots=True)
class WorkRules:
    """What a worker was told."""

    queue: str
    consumer: str
    concurrency: int

    def __post_init__(self) -> None:
        validate_name("queue", self.queue)
        validate_name("consumer", self.consumer)
        validate_whole("concurrency", self.concurrency, 1, limits.BATCH_MESSAGES)


@dataclass(slots=True, eq=False)
class Held:
    """A message that was received and is not settled yet."""

    message: Message
    shard: int
    fence: int | None
    extend_at: float
    running: bool = False
    retry_after: Seconds | None = None
    """Its handler failed, and it is to come again after this."""


class Ended(NamedTuple):
    """What became of a handler."""

    held: Held
    started: bool
    """False when it was not called: the lock may have been lost meanwhile."""
    error: Exception | CancelledError | None = None


@dataclass(slots=True)
class Figures:
    """What a worker has done so far; for people and for tests."""

    shards: tuple[int, ...] = ()
    processed: int = 0
    """Handled and acked."""
    retried: int = 0
    """Of those, how many came with a delivery number above 1: its server had given them before. What another worker had
    when it was lost, and what was put twice, comes as new, and nobody can count it."""
    failed: int = 0
    """Calls of the handler that raised."""
    unsettled: int = 0
    """Handled, and then not ours to ack any more: somebody else handles them again."""
    stops: int = 0
    """How often the locks were in doubt, and no handler was started."""
    suspended: bool = False
    """Whether they are now."""


class Working:
    """One worker's state and its plan. All of it belongs to whoever drives the plan, but for `stop` and `may_start`."""

    def __init__(
        self, rules: WorkRules, manner: Manner, on_error: OnError | None, start: Callable[[Held], None]
    ) -> None:
        self.rules = rules
        self.stopping = False
        self.figures = Figures()
        self._locks = Locks()
        self._manner = manner
        # The loop tries again by itself, and looks in between at its locks.
        self._once = replace(manner, retry=None)
        self._on_error = on_error
        self._start = start
        self._waiting: list[Held] = []
        self._running: set[Held] = set()
        self._done: list[Held] = []
        self._touch_at = self._ask_at = self._settle_at = self._retry_at = 0.0
        self._pause = limits.TIMELINE_POLL_FIRST_SECONDS
        self._pace = _Pace(manner.now())
        self._refused: RequestError | None = None

    def stop(self) -> None:
        """No more messages are asked for, and none is started. Takes no lock: signal handlers call it."""
        self.stopping = True

    def may_start(self, held: Held) -> bool:
        """Asked by the handler's thread at the very last moment."""
        return not self.stopping and self._locks.hold(held.shard, held.fence, self._manner.now())

    # --- the plan ---------------------------------------------------------------------------------------------------

    def wire(self) -> Plan[None]:
        """Until it is told to stop, or the server refuses; then until what runs is done and settled."""
        while not self._is_over():
            # Before the touch too: who was stopped for long says so, though it is answered at once when it wakes.
            self._watch_locks()
            if self._manner.now() >= self._touch_at:
                yield from self._touch()
                self._watch_locks()
            yield from self._settle()
            yield from self._extend()
            self._start_some()
            if not (yield from self._receive()):
                self._take((yield Collect(self._rest_seconds())))
            else:
                self._take((yield Collect(0.0)))
        yield from self._leave()
        if self._refused is not None:
            raise self._refused

    def _is_over(self) -> bool:
        if not self.stopping:
            return False
        # What may not be acked, as the last touch was in vain, is left to whoever has the shards next.
        now = self._manner.now()
        given_up = self._refused is not None or (not self._locks.are_sure(now) and now < self._touch_at)
        return not self._running and (not self._done or given_up)

    def _rest_seconds(self) -> float:
        if self._is_over():
            # The last of it was settled a moment ago: nothing more comes that could be waited for.
            return 0.0
        now = self._manner.now()
        times = [self._touch_at]
        if self._done:
            times.append(max(self._retry_at, self._settle_at if self._running else 0.0))
        if self._room() and self._locks.fences and not self.stopping:
            times.append(self._ask_at)
        return max(min(times) - now, 0.0)

    # --- locks ------------------------------------------------------------------------------------------------------

    def _touch(self) -> Plan[None]:
        asked_at = self._manner.now()
        lock_seconds = self._locks.lock_seconds
        timeout = self._manner.timeout_seconds
        if lock_seconds is not None:
            timeout = min(timeout, lock_seconds * limits.TIMELINE_SURE_SHARE)
        manner = replace(self._once, timeout_seconds=timeout)
        try:
            share = yield from touch(manner, self.rules.queue, self.rules.consumer)
        except StoreError as error:
            _log.warning("%s: the locks of %s could not be touched: %s", self.rules.queue, self.rules.consumer, error)
            self._touch_at = self._manner.now() + limits.TIMELINE_POLL_MOST_SECONDS
            return
        except RequestError as error:
            self._refused, self.stopping = error, True
            self._touch_at = self._manner.now() + limits.TIMELINE_SEARCH_SECONDS
            return
        self._locks.touched(share, asked_at)
        self.figures.shards = tuple(sorted(share.shards))
        self._touch_at = asked_at + self._locks.touch_seconds
        self._let_go()

    def _let_go(self) -> None:
        """What was received under another fence is somebody else's now, or will be; and the unknown fence is known."""
        for held in (*self._waiting, *self._running, *self._done):
            if held.fence is None:
                held.fence = self._locks.fences.get(held.shard, -1)
        self._waiting = [held for held in self._waiting if not self._locks.lost(held.shard, held.fence)]
        lost = [held for held in self._done if self._locks.lost(held.shard, held.fence)]
        self._done = [held for held in self._done if held not in lost]
        self.figures.unsettled += sum(held.retry_after is None for held in lost)

    def _watch_locks(self) -> None:
        sure = self._locks.are_sure(self._manner.now())
        if self.figures.suspended and sure:
            self.figures.suspended = False
            _log.warning("%s: %s works on, with %d shards", self.rules.queue, self.rules.consumer,
                         len(self._locks.fences))
        elif not self.figures.suspended and not sure and self._locks.lock_seconds is not None:
            self.figures.suspended = True
            self.figures.stops += 1
            _log.warning(
                "%s: %s may have lost its shards: no answer to a touch for %g seconds. No handler is started and "
                "nothing is acked until there is one", self.rules.queue, self.rules.consumer,
                self._locks.lock_seconds * limits.TIMELINE_SURE_SHARE,
            )

    # --- messages ---------------------------------------------------------------------------------------------------

    def _room(self) -> int:
        held = len(self._waiting) + len(self._running) + len(self._done)
        ahead = min(limits.TIMELINE_AHEAD_MOST, int(self._pace.a_second * limits.TIMELINE_AHEAD_SECONDS))
        return max(min(self.rules.concurrency + ahead - held, limits.BATCH_MESSAGES), 0)

    def _receive(self) -> Plan[bool]:
        """Whether anything came."""
        now = self._manner.now()
        room = self._room()
        if self.stopping or not room or now < self._ask_at or not self._locks.fences or not self._locks.are_sure(now):
            return False
        lock_seconds = self._locks.lock_seconds or 0.0
        idle = not (self._waiting or self._running or self._done)
        wait = min(limits.TIMELINE_WAIT_SECONDS, lock_seconds / 8, max(self._touch_at - now, 0.0)) if idle else 0.0
        fences = self._locks.fences
        try:
            messages = yield from receive(
                self._once, self.rules.queue, room, wait=round(wait, 3), visibility=lock_seconds,
                consumer=self.rules.consumer,
            )
        except StoreError as error:
            _log.warning("receiving from %s failed, and is tried again: %s", self.rules.queue, error)
            self._ask_at = self._manner.now() + limits.TIMELINE_POLL_MOST_SECONDS
            return False
        except RequestError as error:
            self._refused, self.stopping = error, True
            return False
        for message in messages:
            shard = shard_of(message)
            self._waiting.append(Held(message, shard, fences.get(shard), now + lock_seconds / 2))
        if messages:
            self._pause = limits.TIMELINE_POLL_FIRST_SECONDS
        elif not idle:
            self._ask_at = self._manner.now() + self._pause
            self._pause = min(2 * self._pause, limits.TIMELINE_POLL_MOST_SECONDS)
        return bool(messages) or idle

    def _start_some(self) -> None:
        now = self._manner.now()
        while self._waiting and len(self._running) < self.rules.concurrency and not self.stopping:
            held = self._waiting[0]
            if not self._locks.hold(held.shard, held.fence, now):
                return
            self._waiting.pop(0)
            held.running = True
            self._running.add(held)
            self._start(held)

    def _take(self, ended: list[Ended]) -> None:
        for held, started, error in ended:
            self._running.discard(held)
            held.running = False
            if not started:
                # In its place, before those that came later.
                self._waiting.insert(0, held)
                continue
            if error is not None:
                self.figures.failed += 1
                held.retry_after = self._tell(held.message, error) if isinstance(error, Exception) else 0.0
            now = self._manner.now()
            self._pace.count(now)
            if not self._done:
                # Others that are just about to end are acked along with it.
                self._settle_at = now + limits.TIMELINE_SETTLE_SECONDS
            self._done.append(held)
        if ended:
            self._start_some()

    def _tell(self, message: Message, error: Exception) -> Seconds:
        return tell(self._on_error, self._manner, message, error)

    # --- settling ---------------------------------------------------------------------------------------------------

    def _settle(self) -> Plan[None]:
        now = self._manner.now()
        if not self._done or now < self._retry_at or (self._running and now < self._settle_at):
            return
        mine = [held for held in self._done if self._locks.hold(held.shard, held.fence, now)]
        good = {held.message.receipt: held for held in mine if held.retry_after is None}
        if good:
            failures = yield from ack_many(self._once, [held.message for held in good.values()])
            failed = {failure.receipt.receipt: failure.error for failure in failures}
            for receipt, held in good.items():
                self._settled(held, failed.get(receipt))
        for held in mine:
            if held.retry_after is not None:
                yield from self._give_back(held, held.retry_after)

    def _settled(self, held: Held, error: AngelhairError | None) -> None:
        if isinstance(error, StoreError):
            self._retry_at = self._manner.now() + limits.TIMELINE_POLL_MOST_SECONDS
            return
        self._done.remove(held)
        if error is None:
            self.figures.processed += 1
            self.figures.retried += held.message.deliveries > 1
        else:
            self.figures.unsettled += 1
            self._say_lost(held, error)

    def _give_back(self, held: Held, delay: Seconds) -> Plan[None]:
        try:
            yield from release(self._once, held.message, round(delay, 3))
        except StoreError:
            self._retry_at = self._manner.now() + limits.TIMELINE_POLL_MOST_SECONDS
            return
        except RequestError as error:
            self._say_lost(held, error)
        self._done.remove(held)

    def _extend(self) -> Plan[None]:
        """Those whose handlers take long. Not for longer than the lock lasts: that would be to set them aside."""
        lock_seconds = self._locks.lock_seconds or 0.0
        for held in [*self._running, *self._waiting]:
            now = self._manner.now()
            if held.extend_at > now or not self._locks.hold(held.shard, held.fence, now):
                continue
            if now >= self._touch_at:
                return
            held.extend_at = now + lock_seconds / 2
            try:
                yield from extend(self._once, held.message, lock_seconds)
            except StoreError as error:
                _log.warning("message %s of %s could not be extended yet: %s", held.message.id, self.rules.queue, error)
                held.extend_at = now + limits.TIMELINE_POLL_MOST_SECONDS
            except RequestError as error:
                self._say_lost(held, error)
                if held in self._waiting:
                    self._waiting.remove(held)

    def _say_lost(self, held: Held, error: AngelhairError) -> None:
        _log.warning("message %s of %s is not ours to settle any more: %s", held.message.id, self.rules.queue, error)

    def _leave(self) -> Plan[None]:
        try:
            yield from leave(self._once, self.rules.queue, self.rules.consumer)
        except AngelhairError as error:
            _log.warning("%s: %s could not say goodbye: its locks lapse by themselves: %s", self.rules.queue,
                         self.rules.consumer, error)


class _Pace:
    """How many messages a second are handled, by the last second that is over."""

    def __init__(self, now: float) -> None:
        self.a_second = 0.0
        self._since = now
        self._count = 0

    def count(self, now: float) -> None:
        self._count += 1
        if now - self._since >= 1:
            self.a_second = self._count / (now - self._since)
            self._since, self._count = now, 0


def shard_of(message: Message) -> int:
    """The first part of its id."""
    return int(message.id.partition("-")[0])
