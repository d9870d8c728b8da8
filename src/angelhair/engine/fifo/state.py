"""The state of a message group: one row for all of its messages (R12).

    done      every message of the group below this number is settled
    touched   those at or above it that were delivered, or are being moved
    acked     the last deliveries that were acked, so that who acks again hears that it was done

What is touched follows `done` without a gap: a message is delivered only if all before it in its group are settled or
delivered too. So `done` may rise over the settled ones at the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from angelhair import limits
from angelhair.engine.store import Value, Values

ACKED, EXPIRED, MOVING, DEAD, MOVED = "acked", "expired", "moving", "dead", "moved"


class Entry(NamedTuple):
    """One message that was delivered, or is being moved."""

    number: int
    delivery: int
    visible_at: int
    duration: int
    first_delivered_at: int
    settled: str | None = None
    attempt: str | None = None
    """Of the receive that it was delivered to, as its consumer calls it."""
    target: str | None = None
    """Where it is moving to."""

    @property
    def is_settled(self) -> bool:
        return self.settled is not None and self.settled != MOVING


class State(NamedTuple):
    revision: int | None = None
    """None when there is no row."""
    done: int = 0
    touched: Mapping[int, Entry] = {}
    acked: tuple[tuple[int, int], ...] = ()
    """Numbers with their deliveries, the last first."""

    def settled(self, number: int) -> bool:
        if number < self.done:
            return True
        entry = self.touched.get(number)
        return entry is not None and entry.is_settled

    def settled_below(self, first: int) -> State:
        """The same, for who knows that all below this number is settled. A row that said no more than that was left
        behind when the epoch changed: without it, what is long gone would look new."""
        if self.done >= first:
            return self
        touched = {number: entry for number, entry in self.touched.items() if number >= first}
        return self._replace(done=first, touched=touched)

    def changed(self, entries: Mapping[int, Entry], done: int = 0, acked: tuple[tuple[int, int], ...] = ()) -> State:
        """With these entries in the place of others, and as short as it can be said. `done`: all below is settled."""
        done = max(done, self.done)
        touched = {number: entry for number, entry in self.touched.items() if number >= done} | dict(entries)
        order = sorted(touched)
        for number in order:
            if not touched[number].is_settled:
                break
            done = number + 1
            del touched[number]
        kept = (*acked, *self.acked)[: max(len(acked), limits.GROUP_ACKED)]
        ordered = {number: touched[number] for number in order if number in touched}
        return State((self.revision or 0) + 1, done, ordered, kept)

    def values(self, token: str) -> Values:
        touched = [list(entry) for entry in self.touched.values()]
        values: dict[str, Value] = {"done": self.done, "revision": self.revision, "claim": token}
        values["touched"] = json.dumps(touched, separators=(",", ":")) if touched else None
        values["acked"] = json.dumps(self.acked, separators=(",", ":")) if self.acked else None
        return values


NONE = State()


def state_of(values: Values) -> State:
    revision, done = values.get("revision"), values.get("done")
    if not isinstance(revision, int):
        return NONE
    touched, acked = values.get("touched"), values.get("acked")
    entries = [Entry(*entry) for entry in json.loads(touched)] if isinstance(touched, str) else []
    pairs = json.loads(acked) if isinstance(acked, str) else []
    return State(
        revision,
        done if isinstance(done, int) else 0,
        {entry.number: entry for entry in entries},
        tuple((number, delivery) for number, delivery in pairs),
    )
