"""Put: one blind write, then one look at the block's epochs before it is confirmed (D5, R1).

A group of puts goes to one block, or a few, to slices without an order in it. If the epoch is still open, whoever
seals it later reads it after that, and finds what was written. If it was sealed meanwhile, the putter admits its
messages itself; if it is finished, they are put again under new ids. Nobody was told the old ones, and nobody reads
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.epochs import Epochs, Place
from angelhair.engine.databag.lane import LANE, Bag
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import begun, change_one, expect_decided, write_through
from angelhair.engine.store import Applied, Change, Row, RowChange, Span, Value, Write
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError, Unavailable
from angelhair.model import MessageId, NewMessage

PutOutcome = MessageId | AngelhairError


class Sent:
    """Whether anything of a group may have been written."""

    __slots__ = ("some",)

    def __init__(self) -> None:
        self.some = False


async def put(bag: Bag, messages: Sequence[NewMessage], sent: Sent) -> list[PutOutcome]:
    """An id for each message, or the error that it met. Raises `QueueGone`."""
    serials = await take_serials(bag, len(messages))
    enqueued_at_ms = await bag.time_ms()
    outcomes: dict[int, PutOutcome] = {}
    waiting = list(range(len(messages)))
    for attempt in range(limits.PUT_ROUNDS):
        drafts = spread(bag, waiting)
        # What was remembered has led to an epoch that is over: of other blocks it may be as old.
        look = epochs_of.load if attempt else epochs_of.known
        with begun(sent.some):
            epochs = await look(bag, [draft.block for draft in drafts])
        writes: list[Write] = []
        for draft, block_epochs in zip(drafts, epochs, strict=True):
            draft.epoch = block_epochs.open
            draft.numbers = [
                ids.make(slice_, draft.epoch, serials[index], bag.secret)
                for slice_, index in zip(draft.slices, draft.indices, strict=True)
            ]
            rows = [
                Row(number, values_of(messages[index], enqueued_at_ms))
                for number, index in zip(draft.numbers, draft.indices, strict=True)
            ]
            writes.append(Write(bag.messages(draft.block, draft.epoch), rows))
        before, sent.some = sent.some, True
        written = await write_through(bag.store, writes)
        waiting = []
        for draft, error in zip(drafts, written, strict=True):
            if error is not None:
                outcomes.update(dict.fromkeys(draft.indices, _told(error, before)))
        there = [draft for draft, error in zip(drafts, written, strict=True) if error is None]
        verdicts = await confirmed(bag, [(draft.block, draft.epoch) for draft in there])
        for draft, is_confirmed in zip(there, verdicts, strict=True):
            if isinstance(is_confirmed, StoreError):
                outcomes.update(dict.fromkeys(draft.indices, is_confirmed))
            elif is_confirmed:
                weight = epochs_of.weight(messages[index].body for index in draft.indices)
                await epochs_of.count(bag, draft.block, draft.epoch, weight)
                found = zip(draft.indices, draft.numbers, strict=True)
                outcomes.update((index, MessageId(LANE, number)) for index, number in found)
            else:
                waiting += draft.indices
        if not waiting:
            return [outcomes[index] for index in range(len(messages))]
    late = OutcomeUnknown("epochs end faster than messages can be put")
    outcomes.update(dict.fromkeys(waiting, late))
    return [outcomes[index] for index in range(len(messages))]


@dataclass(slots=True)
class Draft:
    """Those of a group that go to one block, and what they are to be there."""

    block: int
    indices: list[int]
    slices: list[int]
    epoch: int = 0
    numbers: list[int] = field(default_factory=list)


def spread(bag: Bag, waiting: Sequence[int]) -> list[Draft]:
    """A small group goes to one block, which takes one write; a larger one to several, so that what is put together is
    not all behind few locks."""
    drawn = ids.spread(bag.identities.fresh(), len(waiting) + 1)
    first = drawn.pop()
    count = min(limits.BAG_BLOCKS, -(-len(waiting) // limits.BAG_PUT_MESSAGES))
    drafts: list[Draft] = []
    for number in range(count):
        block = (first + number * limits.BAG_BLOCKS // count) % limits.BAG_BLOCKS
        low = block * ids.BLOCK_SLICES
        slices = [low + random % ids.BLOCK_SLICES for random in drawn[number::count]]
        drafts.append(Draft(block, list(waiting[number::count]), slices))
    return drafts


def _told(error: StoreError, sent_before: bool) -> StoreError:
    return OutcomeUnknown(str(error)) if sent_before else error


async def confirmed(bag: Bag, places: Sequence[Place]) -> list[bool | StoreError]:
    """By place, whether what was written there will be read; one look for all whose epochs are open still."""
    if not places:
        return []
    try:
        with begun():
            found = await epochs_of.load(bag, [block for block, _ in places], surely=True)
    except StoreError as error:
        return [error] * len(places)
    verdicts: list[bool | StoreError] = []
    for (block, epoch), epochs in zip(places, found, strict=True):
        try:
            with begun():
                verdicts.append(await _confirm(bag, block, epoch, epochs))
        except StoreError as error:
            verdicts.append(error)
    return verdicts


def values_of(message: NewMessage, enqueued_at_ms: int) -> dict[str, Value]:
    values: dict[str, Value] = {"body": message.body, "enqueued_at": enqueued_at_ms}
    if message.attributes is not None:
        values["attributes"] = message.attributes
    if message.origin is not None:
        values["origin"] = message.origin
    return values


async def _confirm(bag: Bag, block: int, epoch: int, epochs: Epochs) -> bool:
    """Makes sure that what was written in this epoch will be read. False when it will not."""
    for _ in range(limits.ADMIT_ROUNDS):
        if epochs.open == epoch:
            return True
        sealed = epochs.sealed_as(epoch)
        if sealed is None:
            return False
        admitted = sealed._replace(admitted=sealed.admitted + 1)
        if await epochs_of.change(bag, block, epochs, epochs.with_sealed(admitted)) is not None:
            return True
        (epochs,) = await epochs_of.load(bag, [block], surely=True)
    raise Unavailable("the block's epochs are being changed by others all the time")


async def take_serials(bag: Bag, count: int) -> list[int]:
    """Numbers that nobody else was given. Raises `QueueGone`."""
    view = bag.view
    taken: list[int] = []
    while len(taken) < count:
        some = view.serials[: count - len(taken)]
        view.serials = view.serials[len(some) :]
        taken += some
        if len(taken) < count:
            # Another group may have taken a stock meanwhile: what is left of that one is void.
            view.serials = await _reserve(bag, max(limits.BAG_SERIALS, count - len(taken)))
    return taken


async def _reserve(bag: Bag, count: int) -> range:
    attempt = bag.identities.fresh()
    (found,) = await bag.store.read([Span(bag.sequence)])
    row = found.rows[0].values if found.rows else {}
    for _ in range(limits.RESERVE_ROUNDS):
        first = row.get("next")
        if not isinstance(first, int) or row.get("deleted") is not None:
            raise QueueGone("the databag has been deleted")
        change = RowChange(
            places.SEQUENCE_ROW, {"next": first, "deleted": None}, {"next": first + count, "attempt": attempt}
        )
        outcome = expect_decided(await change_one(bag.store, Change(bag.sequence, [change])))
        if isinstance(outcome, Applied):
            return range(first, first + count)
        # An attempt whose answer was lost has left a gap, which does no harm.
        row = outcome.rows.get(places.SEQUENCE_ROW, {})  # type: ignore[union-attr]
    raise Unavailable("others take serials all the time")
