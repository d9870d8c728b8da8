"""The book of a load: what clients tried and what they were told, in order; and what must follow from it.

Every entry is a line, so that a process which is about to be killed can say it into a pipe:

    TIME putting BODY               before a put
    TIME put BODY ID                confirmed
    TIME unknown BODY               answered: it may have happened
    TIME refused BODY               answered: it provably did not happen
    TIME receiving CLIENT           before a receive
    TIME got CLIENT BODY ID NUMBER  handed out: the message's delivery of this number
    TIME acking BODY NUMBER         before an ack
    TIME acked BODY NUMBER          confirmed
    TIME stale BODY NUMBER          the receipt was out of date
    TIME unacked BODY NUMBER        answered: it provably did not happen
    TIME perhaps BODY NUMBER        answered: it may have happened

A put or an ack without an answer (its process was killed) is one of unknown outcome.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

CLOCK_GRAIN_SECONDS = 0.05
"""The engine counts in whole milliseconds of the wall clock, the book in seconds of the monotonic one."""

SHOWN_COMPLAINTS = 20


def line(*words: object) -> str:
    return " ".join([f"{time.monotonic():.6f}", *map(str, words)])


@dataclass
class Account:
    """Every message is in one of the first three; the complaints are promises that were broken."""

    confirmed: int = 0
    unknown: int = 0
    refused: int = 0
    deliveries: int = 0
    delivered: int = 0
    duplicates: int = 0
    """Deliveries beyond each message's first."""
    acked: int = 0
    acks_unknown: int = 0
    """Messages that were never told to be acked but may have been: nobody is owed another delivery of them."""
    unknown_delivered: int = 0
    """Messages of unknown outcome that turned out to be there."""
    lost: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        return ([f"lost: {', '.join(self.lost[:SHOWN_COMPLAINTS])}"] if self.lost else []) + self.complaints

    def __str__(self) -> str:
        return (
            f"{self.confirmed} puts confirmed, {self.unknown} unknown ({self.unknown_delivered} of them delivered), "
            f"{self.refused} refused; {self.delivered} messages delivered, {self.duplicates} of them again; "
            f"{self.acked} acked, {self.acks_unknown} perhaps; {len(self.lost)} lost, "
            f"{len(self.complaints)} other complaints"
        )


class Ledger:
    def __init__(self, visibility_seconds: float) -> None:
        self._visibility_seconds = visibility_seconds
        self._put: dict[str, str] = {}
        """By body: its id, or "" while its put was not confirmed."""
        self._refused: set[str] = set()
        self._ids: dict[str, str] = {}
        self._receiving: dict[str, tuple[int, float]] = {}
        """By client: the entry and the time at which its present receive began."""
        self._deliveries: dict[str, dict[int, float]] = defaultdict(dict)
        """By body: the time at which the receive of each delivery began."""
        self._acked: dict[str, tuple[int, int]] = {}
        """By body: the delivery that was acked, and the entry that said so."""
        self._acking: Counter[str] = Counter()
        self._complaints: list[str] = []
        self._position = 0

    def enter(self, entries: Iterable[str]) -> None:
        for entry in entries:
            self._position += 1
            moment, verb, *words = entry.split(" ")
            getattr(self, f"_on_{verb}")(float(moment), *words)

    def _on_putting(self, _moment: float, body: str) -> None:
        self._put[body] = ""

    def _on_put(self, _moment: float, body: str, number: str) -> None:
        self._put[body] = number
        if self._ids.setdefault(number, body) != body:
            self._complaints.append(f"id {number} was given to {self._ids[number]} and to {body}")

    def _on_unknown(self, _moment: float, body: str) -> None:
        self._put[body] = ""

    def _on_refused(self, _moment: float, body: str) -> None:
        self._refused.add(body)

    def _on_receiving(self, moment: float, client: str) -> None:
        self._receiving[client] = (self._position, moment)

    def _on_got(self, moment: float, client: str, body: str, number: str, delivery_text: str) -> None:
        began_at, began = self._receiving[client]
        delivery = int(delivery_text)
        earlier = self._deliveries[body]
        if body not in self._put:
            self._complaints.append(f"{body} was delivered and never put")
        elif self._put[body] not in ("", number):
            self._complaints.append(f"{body} was put as {self._put[body]} and delivered as {number}")
        if delivery in earlier:
            self._complaints.append(f"delivery {delivery} of {body} was handed out twice")
        if body in self._acked and self._acked[body][1] < began_at:
            self._complaints.append(f"{body} was delivered after its ack was confirmed")
        before = earlier.get(delivery - 1)
        if before is not None and moment < before + self._visibility_seconds - CLOCK_GRAIN_SECONDS:
            self._complaints.append(f"delivery {delivery} of {body} came {moment - before:.3f} s after the one before")
        earlier[delivery] = began

    def _on_acking(self, _moment: float, body: str, _delivery: str) -> None:
        self._acking[body] += 1

    def _on_acked(self, _moment: float, body: str, delivery: str) -> None:
        self._acking[body] -= 1
        if body in self._acked and self._acked[body][0] != int(delivery):
            self._complaints.append(f"deliveries {self._acked[body][0]} and {delivery} of {body} were both acked")
        self._acked.setdefault(body, (int(delivery), self._position))

    def _on_stale(self, _moment: float, body: str, delivery: str) -> None:
        self._acking[body] -= 1
        if self._acked.get(body, (0, 0))[0] == int(delivery):
            self._complaints.append(f"delivery {delivery} of {body} was acked and then called stale")

    def _on_unacked(self, _moment: float, body: str, _delivery: str) -> None:
        self._acking[body] -= 1

    def _on_perhaps(self, _moment: float, body: str, _delivery: str) -> None:
        """Stays among the acks that may have happened."""

    @property
    def confirmed(self) -> int:
        return len(self._ids)

    def owed(self) -> list[str]:
        """Confirmed messages that somebody must still be given: neither acked nor perhaps acked."""
        return [
            body
            for body, number in self._put.items()
            if number and body not in self._acked and not (self._deliveries.get(body) and self._acking[body])
        ]

    def account(self) -> Account:
        confirmed = {body for body, number in self._put.items() if number}
        delivered = set(self._deliveries)
        unknown = self._put.keys() - confirmed - self._refused
        deliveries = sum(len(numbers) for numbers in self._deliveries.values())
        account = Account(
            confirmed=len(confirmed),
            unknown=len(unknown),
            refused=len(self._refused),
            deliveries=deliveries,
            delivered=len(delivered),
            duplicates=deliveries - len(delivered),
            acked=len(self._acked),
            acks_unknown=sum(1 for body in delivered if self._acking[body] and body not in self._acked),
            unknown_delivered=len(unknown & delivered),
            lost=self.owed(),
            complaints=list(self._complaints),
        )
        account.complaints += [f"{body} was refused and delivered" for body in sorted(self._refused & delivered)]
        return account
