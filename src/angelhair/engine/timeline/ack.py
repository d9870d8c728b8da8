"""Ack: in any order, in the memory of the shard's holder; the checkpoint follows over what is acked without a gap.

An ack is not durable before the checkpoint is. What is lost in between is given again, a window at most.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.timeline import lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.receipts import Receipt
from angelhair.engine.timeline.window import Entry, Held
from angelhair.errors import AngelhairError, MessageGone, NotInFlight, StaleReceipt
from angelhair.model import uuid_text

AckOutcome = AngelhairError | None


async def ack(line: Line, receipts: Sequence[Receipt], in_flight: bool) -> list[AckOutcome]:
    """None for each message that is settled by its receipt, or what is wrong. Raises `QueueGone`."""
    now = line.clock.now()
    outcomes = [_ack(line, receipt, in_flight, now) for receipt in receipts]
    lanes = {receipt.lane for receipt in receipts}
    full = [held for held in line.all_held() if held.lane in lanes and held.passed >= limits.TIMELINE_CHECKPOINT]
    if full:
        await lock.keep(line, full, None)
    return outcomes


def _ack(line: Line, receipt: Receipt, in_flight: bool, now: Moment) -> AckOutcome:
    try:
        held, entry = find(line, receipt, now)
    except SetAside as aside:
        return _ack_aside(line, aside.place)
    except StaleReceipt as error:
        return error
    if entry is None:
        return None
    if in_flight and entry.hidden_until_ms <= now.monotonic_ms:
        return NotInFlight("the time-out of this delivery has passed")
    held.settle(entry, receipt.delivery)
    return None


def _ack_aside(line: Line, place: tuple[int, str]) -> AckOutcome:
    """Where it lies now it is passed over, by this server; by others, if they come to it, it is given again."""
    held = line.held(place[0]) if place[0] in line.states else None
    entry = None if held is None else held.window.get(place[1])
    if held is None or entry is None:
        line.sessions.finish(place)
        if held is None:
            return StaleReceipt("the message was set aside to a shard of another server: it is delivered again")
    elif entry.given:
        return StaleReceipt("the message was delivered again since")
    else:
        held.settle(entry, None)
    return None


class SetAside(Exception):
    """The message lies elsewhere by now, and waits there."""

    def __init__(self, place: tuple[int, str]) -> None:
        super().__init__(place)
        self.place = place


def find(line: Line, receipt: Receipt, now: Moment) -> tuple[Held, Entry | None]:
    """Where the message of this delivery is in the window; no entry if this very delivery was acked before. Raises
    `StaleReceipt` or `SetAside`."""
    key = uuid_text(receipt.number)
    moved = line.sessions.aside.get((receipt.lane, key))
    held = line.held(receipt.lane) if receipt.lane in line.states else None
    if moved is not None:
        # Unless it is here again: its shard was lost before the checkpoint had passed it.
        here = held.window.get(key) if held is not None and held.fence == receipt.fence else None
        if here is None or here.settled:
            raise SetAside(moved)
    if held is None or held.fence != receipt.fence or not held.believed(now):
        raise StaleReceipt("the lock of the message's shard was lost since: it is delivered again")
    entry = held.window.get(key)
    if entry is None:
        if held.acked.get(key) == receipt.delivery:
            return held, None
        raise MessageGone("the message was settled, perhaps by this very receipt")
    if entry.settled:
        if entry.acked == receipt.delivery:
            return held, None
        raise StaleReceipt("the message was settled by another delivery, or moved")
    if entry.delivery != receipt.delivery:
        raise StaleReceipt("the message was delivered again since")
    return held, entry
