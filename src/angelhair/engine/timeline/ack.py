"""Ack: in any order, in the memory of the shard's holder; the checkpoint follows over what is acked without a gap.

An ack is not durable before the checkpoint is. What is lost in between is given again, a window at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.store import Slice, Span
from angelhair.engine.timeline import lock
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.receipts import Receipt
from angelhair.engine.timeline.voiding import Place, settle_elsewhere
from angelhair.engine.timeline.window import Entry, Held
from angelhair.errors import AngelhairError, MessageGone, NotInFlight, StaleReceipt, StoreError
from angelhair.model import uuid_text

AckOutcome = AngelhairError | None


async def ack(line: Line, receipts: Sequence[Receipt], in_flight: bool) -> list[AckOutcome]:
    """None for each message that is settled by its receipt, or what is wrong. Raises `QueueGone`."""
    now = line.clock.now()
    outcomes: list[AckOutcome] = []
    elsewhere: dict[int, Place] = {}
    for index, receipt in enumerate(receipts):
        outcome = _ack(line, receipt, in_flight, now)
        if isinstance(outcome, tuple):
            elsewhere[index], outcome = outcome, None
        outcomes.append(outcome)
    if elsewhere:
        found: Sequence[AckOutcome]
        try:
            found = await settle_elsewhere(line, list(elsewhere.values()))
        except StoreError as error:
            # Of these; others are settled in memory.
            found = [error] * len(elsewhere)
        for index, outcome in zip(elsewhere, found, strict=True):
            outcomes[index] = outcome
    await say_why(line, receipts, outcomes)
    lanes = {receipt.lane for receipt in receipts}
    full = [held for held in line.all_held() if held.lane in lanes and held.passed >= limits.TIMELINE_CHECKPOINT]
    if full:
        await lock.keep(line, full, None)
    return outcomes


def _ack(line: Line, receipt: Receipt, in_flight: bool, now: Moment) -> AckOutcome | Place:
    """A place is one that others may read."""
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


def _ack_aside(line: Line, place: Place) -> AckOutcome | Place:
    """Where it lies now it is passed over, if this server comes to it. If it does not hold that shard, its row says so
    to whoever does."""
    held = line.held(place[0]) if place[0] in line.states else None
    entry = None if held is None else held.window.get(place[1])
    if entry is not None and entry.given:
        return StaleReceipt("the message was delivered again since")
    if held is None or not held.believed(line.clock.now()):
        return place
    if entry is None:
        line.sessions.finish(place)
    else:
        held.settle(entry, None)
    return None


class NotHeld(StaleReceipt):
    """This server does not hold the message's shard as it was held when the message was given."""


async def say_why(line: Line, receipts: Sequence[Receipt], outcomes: list[AckOutcome]) -> None:
    """Why a shard is not held here: its lock was lost, or it is another server's that gave the message. That one would
    take the receipt, and what is to be done is another thing."""
    refused = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, NotHeld)]
    lanes = sorted({receipts[place].lane for place in refused})
    found: Sequence[Slice] = ()
    with suppress(StoreError):
        found = await line.store.read([Span(line.shard(lane)) for lane in lanes]) if lanes else ()
    rows = {lane: part.rows[0].values for lane, part in zip(lanes, found, strict=False) if part.rows}
    for place in refused:
        row = rows.get(receipts[place].lane, {})
        holder = str(row.get("holder") or "")
        if row.get("fence") == receipts[place].fence and holder and not holder.startswith(f"{line.server}/"):
            outcomes[place] = StaleReceipt(
                "the message was given by another server, or another process of this one, which holds its shard: only "
                "there its receipt is good. Name a consumer and keep the connection over which it receives; the "
                "message is delivered again when its time-out has passed"
            )


class SetAside(Exception):
    """The message lies elsewhere by now, and waits there."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.place = place


def find(line: Line, receipt: Receipt, now: Moment) -> tuple[Held, Entry | None]:
    """Where the message of this delivery is in the window; no entry if this very delivery was acked before. Raises
    `StaleReceipt` or `SetAside`."""
    key = uuid_text(receipt.number)
    moved = line.sessions.moved((receipt.lane, key))
    held = line.held(receipt.lane) if receipt.lane in line.states else None
    if moved is not None:
        # Unless it is here again: its shard was lost before the checkpoint had passed it.
        here = held.window.get(key) if held is not None and held.fence == receipt.fence else None
        if here is None or here.settled:
            if (moved.fence, moved.delivery) != (receipt.fence, receipt.delivery):
                raise StaleReceipt("the message was delivered again since, and set aside")
            raise SetAside(moved.place)
    if held is None or held.fence != receipt.fence or not held.believed(now):
        raise NotHeld("the lock of the message's shard was lost since: it is delivered again")
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
