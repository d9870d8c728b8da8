"""Trying again: when, how long, and what is said when it was in vain.

A call that provably did not happen may always be repeated; one that may have happened only if twice is as good as
once. `Unavailable` is raised only if no try may have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import random
from typing import TypeVar, cast

from angelhair import limits
from angelhair.client.plans import Answer, Broken, Call, Pause, Plan, Repeat, Send
from angelhair.client.reading import Unreadable
from angelhair.client.refusals import refusal
from angelhair.clock import Clock, SystemClock
from angelhair.errors import AngelhairError, InvalidRequest, OutcomeUnknown, RequestError, StoreError, Unavailable

T = TypeVar("T")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Retry:
    """How a client tries again: pauses that double, each drawn at random below its bound, for so long in all."""

    total_seconds: float = limits.CLIENT_RETRY_SECONDS
    first_pause_seconds: float = limits.CLIENT_PAUSE_FIRST_SECONDS
    most_pause_seconds: float = limits.CLIENT_PAUSE_MOST_SECONDS

    def bound_seconds(self, tries: int) -> float:
        """The longest pause after so many tries."""
        # Beyond some 1,000 doublings a float overflows; the bound is long reached by then.
        return min(self.most_pause_seconds, self.first_pause_seconds * 2.0 ** min(tries - 1, 64))


@dataclass(frozen=True, slots=True)
class Manner:
    """How a client goes about its calls. Clock and chance are here so that a test can hold them."""

    timeout_seconds: float = limits.CLIENT_TIMEOUT_SECONDS
    retry: Retry | None = field(default_factory=Retry)
    clock: Clock = field(default_factory=SystemClock)
    chance: Callable[[], float] = random
    keyless: dict[str, float] = field(default_factory=dict)
    """Queues that have refused a key, and until when that is believed: one may be made again as another kind."""

    def __post_init__(self) -> None:
        given: object = self.retry
        if given is not None and not isinstance(given, Retry):
            meant = "must be an angelhair.Retry, such as Retry(total_seconds=60), or None"
            raise InvalidRequest("retry", f"{meant}, not {type(given).__name__}")

    def is_keyless(self, queue: str) -> bool:
        return self.keyless.get(queue, 0.0) > self.now()

    def note_keyless(self, queue: str) -> None:
        now = self.now()
        for known, until in list(self.keyless.items()):
            if until <= now:
                self.keyless.pop(known, None)
        self.keyless[queue] = now + limits.CLIENT_KEYLESS_SECONDS

    def now(self) -> float:
        return self.clock.now().monotonic_ms / 1000


class Patience:
    """What is left for one call of the user's, over all its requests and their repetitions."""

    def __init__(self, manner: Manner, wait_seconds: float = 0.0) -> None:
        self._manner = manner
        self._tries = 0
        self._end: float | None = None
        if manner.retry is not None:
            self._end = manner.now() + manner.retry.total_seconds + wait_seconds

    def timeout_seconds(self) -> float:
        """For the next try. The first always has all of it; later ones no more than is left."""
        whole = self._manner.timeout_seconds
        if self._end is None or not self._tries:
            return whole
        return min(whole, max(self._end - self._manner.now(), limits.CLIENT_PAUSE_FIRST_SECONDS))

    def pause(self, least_seconds: float = 0.0) -> float | None:
        """How long to wait before the next try; None when it is not worth one."""
        if self._end is None or self._manner.retry is None:
            return None
        self._tries += 1
        bound = self._manner.retry.bound_seconds(self._tries)
        seconds = least_seconds + bound * self._manner.chance()
        return seconds if self._manner.now() + seconds < self._end else None


def exchange(manner: Manner, call: Call[T], patience: Patience | None = None) -> Plan[T]:
    """Sends the call until there is an answer that counts."""
    patience = patience or Patience(manner, call.wait_seconds)
    may_have_happened = False
    while True:
        came: Answer | Broken = yield Send(call.request, patience.timeout_seconds(), call.wait_seconds)
        try:
            return _read(call, came)
        except StoreError as error:
            unknown = isinstance(error, OutcomeUnknown)
            may_have_happened = may_have_happened or unknown
            pause = None
            if not unknown or call.repeat is not Repeat.UNSAFE:
                pause = patience.pause(_retry_after_seconds(came))
            if pause is None:
                raise _last_word(call, error, may_have_happened) from error.__cause__
        except RequestError as error:
            if may_have_happened and isinstance(error, call.done_if):
                # Only calls that answer nothing are told that way.
                return cast("T", None)
            raise
        yield Pause(pause)


def exchange_items(
    manner: Manner, items: Sequence[Item], ask: Callable[[Sequence[Item]], Call[list[T | AngelhairError]]]
) -> Plan[list[T | AngelhairError]]:
    """One request for many items, an outcome for each. Those that met an error of the store are sent again alone."""
    patience = Patience(manner)
    outcomes: dict[int, T | AngelhairError] = {}
    pending = list(range(len(items)))
    while True:
        call = ask([items[index] for index in pending])
        try:
            found = yield from exchange(manner, call, patience)
        except AngelhairError as error:
            found = [error] * len(pending)
        for index, outcome in zip(pending, found, strict=True):
            if isinstance(outcome, Unavailable) and isinstance(outcomes.get(index), OutcomeUnknown):
                continue
            outcomes[index] = outcome
        pending = [index for index in pending if _again(call, outcomes[index])]
        pause = patience.pause() if pending else None
        if pause is None:
            return [outcomes[index] for index in range(len(items))]
        yield Pause(pause)


def _again(call: Call[T], outcome: object) -> bool:
    return isinstance(outcome, Unavailable) or (
        isinstance(outcome, OutcomeUnknown) and call.repeat is not Repeat.UNSAFE
    )


def _read(call: Call[T], came: Answer | Broken) -> T:
    if isinstance(came, Broken):
        if came.for_good:
            raise RequestError(came.reason)
        raise OutcomeUnknown(came.reason) if came.sent else Unavailable(came.reason)
    if not 200 <= came.status < 300:
        raise refusal(came, call.queue, call.topic)
    try:
        return call.read(came)
    except Unreadable as error:
        raise OutcomeUnknown(f"the answer is {came.status}, and not Angelhair's ({error})") from error


def _last_word(call: Call[T], error: StoreError, may_have_happened: bool) -> AngelhairError:
    if call.repeat is Repeat.READS:
        return error if isinstance(error, Unavailable) else Unavailable(str(error))
    if may_have_happened and not isinstance(error, OutcomeUnknown):
        return OutcomeUnknown(f"an earlier try may have happened; the last one: {error}")
    return error


def _retry_after_seconds(came: Answer | Broken) -> float:
    """What the server asks for, in seconds. The other form, a date, is not one that ours sends."""
    text = came.headers.get("retry-after", "") if isinstance(came, Answer) else ""
    return float(text) if text.isascii() and text.isdigit() else 0.0
