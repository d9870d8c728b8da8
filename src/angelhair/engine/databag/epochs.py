"""The epochs of a block: one takes puts, older ones are sealed, then finished, then dropped (R1, R14, R15).

    open ──▶ sealed ──▶ finished ──▶ dropping ──▶ gone
     full or    all of it deleted    history     its partition
     old        or expired           over        is dropped

All of a block's epochs are one row, which every change of it replaces whole under a version. So nothing is decided on
what somebody else has changed meanwhile; and there is no row that ever has to be deleted. The rows of all blocks lie
in one partition: they change once for thousands of messages, and one read brings them all.

A put that finds its epoch sealed *admits* its message: it raises the epoch's `admitted`, which is a change of the row.
Who finishes an epoch has read it after the seal, and its change is refused if anything was admitted since (R1).

What one server reads of the row others may not see yet (row 19 of docs/cassandra.md), and then a putter takes an epoch
for open that is sealed. So a seal counts for who reads the epoch only once it is *settled*: after a conditional write
of that partition which began after the seal was seen, everybody sees it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import ids
from angelhair.engine.databag.lane import Bag
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import change_one, expect_decided, have_land, read_surely
from angelhair.engine.store import Applied, Change, RowChange, Span, Value, Values
from angelhair.errors import StoreError

Place = tuple[int, int]
"""A block and an epoch of it."""


class Sealed(NamedTuple):
    number: int
    admitted: int = 0
    """How often a put that came late was let in."""


class Over(NamedTuple):
    """Finished epochs that follow each other, both ends included: however many there are for their history's sake, a
    few such are all that anybody reads of them."""

    first: int
    last: int
    at_ms: int
    """When the latest of them was finished."""
    since_ms: int
    """And the earliest."""
    dropping: int = 0
    """Nobody reads them any more, and they are being dropped."""

    def with_next(self, following: Over, span_ms: int) -> Over | None:
        """Both as one, if they may be kept as long as each other."""
        if self.dropping or following.dropping or self.last + 1 != following.first:
            return None
        at_ms, since_ms = max(self.at_ms, following.at_ms), min(self.since_ms, following.since_ms)
        return None if at_ms - since_ms > span_ms else Over(self.first, following.last, at_ms, since_ms)


@dataclass(frozen=True, slots=True)
class Epochs:
    version: int
    open: int
    opened_at_ms: int
    sealed: tuple[Sealed, ...]
    over: tuple[Over, ...] = ()

    def sealed_as(self, number: int) -> Sealed | None:
        return next((epoch for epoch in self.sealed if epoch.number == number), None)

    @property
    def read(self) -> list[int]:
        """Those in which there may be messages, the oldest in front."""
        return [*(epoch.number for epoch in self.sealed), self.open]

    @property
    def there(self) -> list[int]:
        """Those that are not being dropped."""
        kept = (number for each in self.over if not each.dropping for number in range(each.first, each.last + 1))
        return sorted([*kept, *self.read])

    def over_as(self, number: int) -> Over | None:
        return next((each for each in self.over if each.first <= number <= each.last), None)

    def is_there(self, number: int) -> bool:
        over = self.over_as(number)
        return number in self.read if over is None else not over.dropping

    @property
    def size(self) -> int:
        """How many messages the open one takes: more where many wait to be finished; and where the oldest that is there
        lies so far back that an id's bits of it would mean another."""
        far = max(0, 2 * (self.open - self.oldest) - ids.EPOCHS) * limits.BAG_EPOCH_BITS // ids.EPOCHS
        doublings = max(len(self.sealed) // limits.BAG_EPOCHS_MANY, far)
        return limits.BAG_EPOCH_MESSAGES << min(doublings, limits.BAG_EPOCH_BITS)

    def with_sealed(self, *changed: Sealed) -> Epochs:
        by_number = {epoch.number: epoch for epoch in self.sealed} | {epoch.number: epoch for epoch in changed}
        return replace(self, sealed=tuple(by_number[number] for number in sorted(by_number)))

    def sealed_now(self, now_ms: int) -> Epochs:
        """The open one sealed, and the next one open."""
        return replace(self.with_sealed(Sealed(self.open)), open=self.open + 1, opened_at_ms=now_ms)

    def finished(self, numbers: Iterable[int], now_ms: int, kept_ms: int) -> Epochs:
        gone, span_ms = set(numbers), kept_ms // limits.BAG_OVER_PARTS
        over: list[Over] = []
        for each in sorted([*self.over, *(Over(number, number, now_ms, now_ms) for number in gone)]):
            both = over[-1].with_next(each, span_ms) if over else None
            over[-1:] = [both] if both is not None else [*over[-1:], each]
        sealed = tuple(epoch for epoch in self.sealed if epoch.number not in gone)
        return replace(self, sealed=sealed, over=tuple(over))

    def dropping(self, gone: Over) -> Epochs:
        over = tuple(each._replace(dropping=1) if each.first == gone.first else each for each in self.over)
        return replace(self, over=over)

    def without(self, gone: Over, last: int) -> Epochs:
        """Up to this one, those of a range are forgotten."""
        rest = (gone._replace(first=last + 1, dropping=1),) if last < gone.last else ()
        return replace(self, over=tuple(sorted([*(each for each in self.over if each.first != gone.first), *rest])))

    @property
    def may_be_sealed(self) -> bool:
        """The oldest that is there is told from the next one by the bits of an id."""
        return self.open + 1 - self.oldest < ids.EPOCHS

    @property
    def oldest(self) -> int:
        return min([self.read[0], *(each.first for each in self.over)])


def block_of(number: int) -> int:
    return ids.block_of(ids.slice_of(number))


def place_of(number: int, epochs: Epochs) -> Place | None:
    """Where an id of a block with these epochs lies. None when that is nowhere any more. In a finished epoch, until it
    is dropped, somebody may still read who has not heard of it: what was purged, or written there late."""
    epoch = ids.epoch_of(number, epochs.open)
    return (block_of(number), epoch) if epochs.is_there(epoch) else None


def first_values(now_ms: int) -> Values:
    return _values(Epochs(1, 0, now_ms, ()))


def _values(epochs: Epochs) -> dict[str, Value]:
    return {
        "version": epochs.version, "open": epochs.open, "opened_at": epochs.opened_at_ms,
        "sealed": _text(epochs.sealed), "over": _text(epochs.over),
    }


def _text(rows: Sequence[tuple[int, ...]]) -> str:
    return json.dumps(rows, separators=(",", ":"))


def parse(row: Values) -> Epochs:
    """Raises `QueueGone` for a block that was deleted, or is no more: it was there before anybody could put."""
    version, opened, at_ms = row.get("version"), row.get("open"), row.get("opened_at")
    if row.get("deleted") is not None or not isinstance(version, int):
        raise QueueGone("the databag has been deleted")
    assert isinstance(opened, int) and isinstance(at_ms, int)
    sealed, over = (json.loads(str(row[name])) for name in ("sealed", "over"))
    return Epochs(version, opened, at_ms, tuple(Sealed(*each) for each in sealed), tuple(Over(*each) for each in over))


async def load(bag: Bag, blocks: Sequence[int], surely: bool = False) -> list[Epochs]:
    """The blocks' epochs as they are now. Raises `QueueGone`."""
    spans = [Span(places.bag_epochs(bag.incarnation), min(blocks), max(blocks))]
    asked_ms = bag.clock.now().monotonic_ms
    (found,) = await (read_surely(bag.store, spans) if surely else bag.store.read(spans))
    rows = {row.key: row.values for row in found.rows}
    return [remember(bag, block, parse(rows.get(block, {})), asked_ms) for block in blocks]


async def load_for(bag: Bag, numbers: Sequence[int], surely: bool = False) -> dict[int, Epochs]:
    """By block, the epochs of these ids' blocks: none of the ids is of an epoch that these do not know yet. Who made it
    has seen a seal that we do not see; as each lands before the next one is made, it is one. Raises `QueueGone`."""
    blocks = sorted({block_of(number) for number in numbers})
    found = dict(zip(blocks, await load(bag, blocks, surely), strict=True))
    if any(_is_next(number, found[block_of(number)]) for number in numbers):
        await settle(bag)
        found = dict(zip(blocks, await load(bag, blocks, surely), strict=True))
    return found


def _is_next(number: int, epochs: Epochs) -> bool:
    return ids.epoch_of(number, epochs.open + 1) > epochs.open


async def settle(bag: Bag) -> None:
    """Has all land that we know of the epochs, of any block: it is one partition."""
    known = _known_open(bag)
    test = RowChange(0, {"deleted": None}, {})
    await have_land(bag.store, [Change(places.bag_epochs(bag.incarnation), [test])])
    _note_settled(bag, known)


def _known_open(bag: Bag) -> list[int]:
    return [0 if view.epochs is None else view.epochs.open for view in bag.view.blocks]


def _note_settled(bag: Bag, known: Sequence[int]) -> None:
    for view, opened in zip(bag.view.blocks, known, strict=True):
        view.settled = max(view.settled, opened)


def remember(bag: Bag, block: int, epochs: Epochs, asked_ms: int) -> Epochs:
    """The epochs as they are known then: what was seen once is decided, though this look may not have seen it."""
    view = bag.view.blocks[block]
    if view.epochs is None or view.epochs.version <= epochs.version:
        if view.epochs is not None:
            for number in set(view.epochs.read) - set(epochs.read):
                view.ended[number] = view.epochs_ms
                view.uncounted.add(number)
        view.epochs, view.epochs_ms = epochs, asked_ms
        view.forget_gone(epochs)
    return view.epochs


def fresh(bag: Bag, block: int) -> Epochs | None:
    """As they were a short while ago, if this server knows (R4)."""
    view = bag.view.blocks[block]
    age_ms = bag.clock.now().monotonic_ms - view.epochs_ms
    return view.epochs if view.epochs is not None and age_ms < limits.BAG_STATE_AGE_MS else None


async def known(bag: Bag, blocks: Sequence[int]) -> list[Epochs]:
    """As they were a short while ago, or are now. One read brings all, so whatever the block it is seldom needed."""
    found = [fresh(bag, block) for block in blocks]
    if all(found):
        return [epochs for epochs in found if epochs is not None]
    read = await load(bag, range(limits.BAG_BLOCKS))
    return [read[block] for block in blocks]


async def change(bag: Bag, block: int, before: Epochs, after: Epochs) -> Epochs | None:
    """The epochs as they are wanted; None when somebody changed them first, or perhaps after us: each change may be
    made twice without harm."""
    attempt, asked_ms, known_open = bag.identities.fresh(), bag.clock.now().monotonic_ms, _known_open(bag)
    after = replace(after, version=before.version + 1)
    expect: Values = {"version": before.version, "deleted": None}
    row = RowChange(block, expect, {**_values(after), "attempt": attempt})
    outcome = expect_decided(await change_one(bag.store, Change(places.bag_epochs(bag.incarnation), [row])))
    _note_settled(bag, known_open)
    if isinstance(outcome, Applied):
        bag.view.blocks[block].settled = max(bag.view.blocks[block].settled, after.open)
        return remember(bag, block, after, asked_ms)
    found = outcome.rows.get(block, {})  # type: ignore[union-attr]
    now = remember(bag, block, parse(found), asked_ms)
    return now if found.get("attempt") == attempt else None


async def seal(bag: Bag, block: int, epochs: Epochs) -> bool:
    """Opens the next epoch; whether it was us. Two that seal at once seal one."""
    if not epochs.may_be_sealed:
        return False
    return await change(bag, block, epochs, epochs.sealed_now(await bag.time_ms())) is not None


def weight(bodies: Iterable[bytes]) -> int:
    """As how many messages these count: a large one as several, for it is read as long as its epoch is."""
    return sum(1 + len(body) // limits.BAG_MESSAGE_BYTES for body in bodies)


async def count(bag: Bag, block: int, epoch: int, rows: int) -> None:
    """After rows were written there: seals the epoch when about as many are in it as it takes. Others are taken to
    write there as this server does. What was written counts, whatever comes of this."""
    view = bag.view.blocks[block]
    view.written[epoch] += rows
    epochs = view.epochs
    if epochs is None or epochs.open != epoch or view.written[epoch] * bag.servers < epochs.size:
        return
    with suppress(StoreError, QueueGone):
        await seal(bag, block, epochs)
