"""What a consumer decides: when to ask for messages and for how many, what becomes of each, when to extend.

Three plans, run side by side by either driver:

    fetching    asks for as many messages as there are free places, one request at a time, and starts a handling of each
    handling    has the handler called, then acks the message or gives it back
    keeping     extends what is held, from a thread of its own, so that no handler can hold it up

Beside the steps of every plan there are three:

    Start       runs a plan beside this one; nothing comes back
    Rest        until something has changed, or for so long; nothing comes back
    Handle      calls the handler; what it raised comes back, or None
"""

from __future__ import annotations

import logging
import math
import threading
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from angelhair import limits
from angelhair.client.plans import Pause, Plan
from angelhair.client.retrying import Manner, Retry
from angelhair.client.values import Message, Seconds
from angelhair.client.verbs.deliveries import ack, extend, receive, release
from angelhair.errors import AngelhairError, InvalidRequest, RequestError, StoreError
from angelhair.model import validate_name, validate_whole

_log = logging.getLogger("angelhair.client")

OnError = Callable[[Message, Exception], Seconds | None]
BACK_OFF = Retry()


class Start(NamedTuple):
    plan: Plan[None]


class Rest(NamedTuple):
    seconds: float | None


class Handle(NamedTuple):
    message: Message


@dataclass(frozen=True, slots=True)
class Rules:
    """What a consumer was told."""

    queue: str
    concurrency: int
    visibility_seconds: Seconds
    wait_seconds: Seconds

    def __post_init__(self) -> None:
        validate_name("queue", self.queue)
        validate_whole("concurrency", self.concurrency, 1, limits.BATCH_MESSAGES)
        if not self.visibility_seconds >= limits.CONSUMER_VISIBILITY_LEAST_SECONDS:
            raise InvalidRequest("visibility", f"must be at least {limits.CONSUMER_VISIBILITY_LEAST_SECONDS:g} seconds")
        if not 0 <= self.wait_seconds <= limits.WAIT_MAXIMUM_SECONDS:
            raise InvalidRequest("wait", f"must be between 0 and {limits.WAIT_MAXIMUM_SECONDS:g} seconds")

    @property
    def margin_seconds(self) -> float:
        """What one try of an extension may take, so that several fit into the visibility that is left."""
        return self.visibility_seconds * (1 - limits.CONSUMER_EXTEND_SHARE) / limits.CONSUMER_EXTEND_TRIES


@dataclass(slots=True, eq=False)
class Held:
    """A message that is being handled."""

    message: Message
    extend_at: float
    """Never, of a databag: its partition is hidden, and for as long as it was asked for."""
    lost: AngelhairError | None = None
    """Why it cannot be extended any more: somebody else has it, or will."""
    given_back: Seconds | None = None
    """The delay with which it was released."""
    hidden_until: float = math.inf
    """Of a databag: from then on others are given it too."""


class Consuming:
    """One consumer's state and plans. Plans of one run may be driven by different threads."""

    def __init__(self, rules: Rules, manner: Manner, on_error: OnError | None) -> None:
        self.rules = rules
        self.stopping = False
        self.over = False
        self._manner = manner
        # The loops that use these try again by themselves, and look in between whether they should stop.
        self._once = replace(manner, retry=None)
        self._quick = replace(
            manner, retry=None, timeout_seconds=min(manner.timeout_seconds, rules.margin_seconds)
        )
        self._on_error = on_error
        self._held: set[Held] = set()
        self._lock = threading.Lock()

    def stop(self) -> None:
        """No more messages are asked for. Takes no lock: signal handlers call it."""
        self.stopping = True

    # --- fetching ---------------------------------------------------------------------------------------------------

    def fetching(self) -> Plan[None]:
        """Until it is told to stop, or the server refuses; and then until all that is held has been settled."""
        refused: RequestError | None = None
        failures = 0
        while not self.stopping and refused is None:
            free = self.rules.concurrency - len(self._held)
            if not free:
                yield Rest(None)
                continue
            try:
                messages = yield from receive(
                    self._once, self.rules.queue, free,
                    wait=self.rules.wait_seconds, visibility=self.rules.visibility_seconds,
                )
                failures = 0
            except StoreError as error:
                if self.stopping:
                    # The connection that it waited on was told so.
                    continue
                failures += 1
                _log.warning("receiving from %s failed, and is tried again: %s", self.rules.queue, error)
                yield from self._rest(BACK_OFF.bound_seconds(failures) * self._manner.chance())
                continue
            except RequestError as error:
                refused = error
                continue
            for message in messages:
                yield Start(self.handling(self._take(message)))
        while self._held:
            yield Rest(None)
        if refused is not None:
            raise refused

    def _rest(self, seconds: float) -> Plan[None]:
        """For so long, whatever else changes, unless it is told to stop."""
        end = self._manner.now() + seconds
        while not self.stopping and (left := end - self._manner.now()) > 0:
            yield Rest(left)

    def _take(self, message: Message) -> Held:
        now, visibility = self._manner.now(), self.rules.visibility_seconds
        if message.is_of_databag:
            held = Held(message, math.inf, hidden_until=now + visibility)
        else:
            held = Held(message, now + visibility * limits.CONSUMER_EXTEND_SHARE)
        with self._lock:
            self._held.add(held)
        return held

    # --- handling ---------------------------------------------------------------------------------------------------

    def handling(self, held: Held) -> Plan[None]:
        """One message, from the handler's call to its settlement. It is extended until then."""
        message = held.message
        try:
            error: Exception | CancelledError | None = yield Handle(message)
            if error is not None:
                held.given_back = self._tell(message, error) if isinstance(error, Exception) else 0.0
                if held.lost is None and not message.is_of_databag:
                    yield from release(self._manner, message, held.given_back)
            elif held.lost is not None:
                self._tell(message, held.lost)
            else:
                if self._manner.now() > held.hidden_until:
                    _log.warning(
                        "message %s of %s was handled for longer than its databag hides it, and may come again: a "
                        "longer visibility would help", message.id, message.queue,
                    )
                yield from ack(self._manner, message)
        except AngelhairError as unsettled:
            # It comes again when its visibility ends; the handler must be able to bear that.
            self._tell(message, unsettled)
            error = None
        finally:
            with self._lock:
                self._held.discard(held)
        if isinstance(error, CancelledError):
            raise error

    def _tell(self, message: Message, error: Exception) -> Seconds:
        return tell(self._on_error, self._manner, message, error)

    # --- keeping ----------------------------------------------------------------------------------------------------

    def keeping(self) -> Plan[None]:
        """Extends what is held, each in time, until the run is over."""
        while not self.over:
            with self._lock:
                mine = [held for held in self._held if held.lost is None]
            for held in sorted(mine, key=lambda held: held.extend_at):
                if held.extend_at <= self._manner.now() and held in self._held:
                    yield from self._extend(held)
            # What is taken from now on is not due before twice this long.
            soon = self._manner.now() + self.rules.visibility_seconds * limits.CONSUMER_EXTEND_SHARE / 2
            with self._lock:
                next_at = min([soon, *(held.extend_at for held in self._held if held.lost is None)])
            yield Pause(max(next_at - self._manner.now(), 0.0))

    def _extend(self, held: Held) -> Plan[None]:
        began = self._manner.now()
        try:
            yield from extend(self._quick, held.message, self.rules.visibility_seconds)
            held.extend_at = began + self.rules.visibility_seconds * limits.CONSUMER_EXTEND_SHARE
            if held.given_back is not None:
                # The handler failed meanwhile: the release must be the last word.
                yield from release(self._quick, held.message, held.given_back)
        except StoreError as error:
            _log.warning("message %s of %s could not be extended yet: %s", held.message.id, self.rules.queue, error)
            held.extend_at = self._manner.now() + self.rules.margin_seconds
        except RequestError as error:
            held.lost = error


def tell(on_error: OnError | None, manner: Manner, message: Message, error: Exception) -> Seconds:
    """Says what went wrong, and in how many seconds the message shall come again."""
    delay: Seconds | None = None
    if on_error is None:
        _log.warning("message %s of %s: %s", message.id, message.queue, type(error).__name__, exc_info=error)
    else:
        try:
            delay = on_error(message, error)
        except Exception:  # noqa: BLE001 - one message's hook must not end whoever consumes
            _log.exception("on_error failed for message %s of %s", message.id, message.queue)
    return _retry_delay(message, manner) if delay is None else delay


def _retry_delay(message: Message, manner: Manner) -> Seconds:
    """Longer with every delivery, and never quite the same: what failed together must not come back together."""
    doublings = min(message.deliveries - 1, 64)
    bound = min(limits.CONSUMER_DELAY_MOST_SECONDS, limits.CONSUMER_DELAY_FIRST_SECONDS * 2.0**doublings)
    return bound * (1 + manner.chance()) / 2
