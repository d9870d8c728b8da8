"""Attacks on databags in a store that repairs nothing that it reads: what one read has met the next one does not find
(contract 1: "and not again what it saw once"). `docs/write-your-own-store.md` says that the engine loses no message
without it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_EPOCHS, BAG_MESSAGES
from angelhair.engine.store import Change, Partition, Row, Slice, Span, Store, Write
from angelhair.errors import OutcomeUnknown
from angelhair.model import DATABAG, Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import HookedStore, SteppedClock, new_world, played, server

SECOND_MS = 1_000


async def create(engine: Engine) -> None:
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG, visibility_timeout_ms=SECOND_MS))


async def drain(engine: Engine, clock: SteppedClock) -> list[bytes]:
    """All that is served within ten minutes, each deleted; the background work goes on meanwhile."""
    found: list[bytes] = []
    for _ in range(60):
        (some,) = await engine.receive("shop", "bag", [Ask(100)])
        assert isinstance(some, list), some
        await engine.ack("shop", "bag", [delivery.receipt for delivery in some])
        found += [delivery.body for delivery in some]
        await engine.step("shop", "bag")
        clock.ms += 10 * SECOND_MS
    return found


class OnOneReplica:
    """Bodies of one server's messages reach one replica of three, and no other, ever. While `met` is set reads ask
    that replica, and give the others nothing."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.met = False
        self._there: dict[Partition, dict[int, dict[str, Any]]] = {}

    def writer(self) -> HookedStore:
        theirs = HookedStore(self.store)

        async def write(items: Sequence[Write]) -> list[Any]:
            answers: list[Any] = []
            for item in items:
                if item.partition.table is BAG_MESSAGES and any("body" in row.values for row in item.rows):
                    for row in item.rows:
                        self._there.setdefault(item.partition, {})[int(row.key)] = dict(row.values)
                    answers.append(OutcomeUnknown("timed out"))
                else:
                    answers += await self.store.write([item])
            return answers

        theirs.hooks["write"] = write
        return theirs

    def seen(self) -> HookedStore:
        others = HookedStore(self.store)

        async def read(spans: Sequence[Span]) -> list[Slice]:
            found = await self.store.read(spans)
            return [self._seen(span, part) for span, part in zip(spans, found, strict=True)] if self.met else found

        others.hooks["read"] = read
        return others

    def _seen(self, span: Span, found: Slice) -> Slice:
        rows = {int(row.key): dict(row.values) for row in found.rows} if span.partition.table is BAG_MESSAGES else {}
        for key, values in self._there.get(span.partition, {}).items():
            if (span.first is None or key >= int(span.first)) and (span.last is None or key <= int(span.last)):
                shown = {name: value for name, value in values.items() if not span.columns or name in span.columns}
                rows[key] = {**rows.get(key, {}), **shown}
        return found._replace(rows=[Row(key, rows[key]) for key in sorted(rows)]) if rows else found


@played
async def test_a1_a_put_with_a_key_that_has_seen_anothers_body_has_put_it() -> None:
    """The first try with a key dies; its body has reached one replica. The second try goes on with it, meets that
    replica when it looks whether a body is there, finds one, and writes none. It commits the key and confirms; the
    replica is lost, and with it the message. Who asks again with the key is told the same id."""
    clock, store = new_world()
    one = OnOneReplica(store)
    first, second, other = server(one.writer(), clock), server(one.seen(), clock), server(store, clock)
    await create(other)
    (lost,) = await first.put("shop", "bag", [NewMessage(b"keyed", key="k")])
    assert isinstance(lost, OutcomeUnknown)
    one.met = True
    (confirmed,) = await second.put("shop", "bag", [NewMessage(b"keyed", key="k")])
    one.met = False
    assert isinstance(confirmed, MessageId)
    assert await drain(other, clock) == [b"keyed"], "confirmed, and nowhere"


class SealOnOneReplica:
    """A seal is decided, and its commit has reached one replica when its sender dies. It lands before the next
    conditional write of its partition. Who is shown it before that is so; the others are not."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.change: Change | None = None
        self.missed = 0
        """Looks that ask the other replicas, though they are of somebody who was shown it before."""

    def sealer(self) -> HookedStore:
        theirs = HookedStore(self.store)

        async def change(items: Sequence[Change]) -> None:
            if self.change is None and items[0].partition.table is BAG_EPOCHS:
                (self.change,) = items
                raise asyncio.CancelledError

        theirs.hooks["change"] = change
        return theirs

    def others(self, shown: bool) -> HookedStore:
        theirs = HookedStore(self.store)

        async def change(items: Sequence[Change]) -> None:
            if self.change is not None and any(item.partition == self.change.partition for item in items):
                decided, self.change = self.change, None
                await self.store.change([decided])

        async def read(spans: Sequence[Span]) -> list[Slice]:
            return [self._seen(span, part) for span, part in zip(spans, await self.store.read(spans), strict=True)]

        theirs.hooks["change"] = change
        if shown:
            theirs.hooks["read"] = read
        return theirs

    def _seen(self, span: Span, found: Slice) -> Slice:
        if self.change is None or span.partition != self.change.partition:
            return found
        if self.missed:
            self.missed -= 1
            return found
        values = {row.key: row.values for row in self.change.rows}
        rows = [Row(row.key, {**row.values, **(values.get(row.key) or {})}) for row in found.rows]
        return found._replace(rows=rows)


async def sealed_by_one_that_died(other: Engine, dying: Engine, clock: SteppedClock) -> None:
    """So that there is something to seal in every block; all of it is deleted."""
    gone: list[MessageId] = []
    for _ in range(300):
        (outcome,) = await other.put("shop", "bag", [NewMessage(b"gone")])
        assert isinstance(outcome, MessageId)
        gone.append(outcome)
    await other.ack("shop", "bag", [str(message) for message in gone])
    clock.ms += limits.BAG_EPOCH_AGE_MS + SECOND_MS
    with pytest.raises(asyncio.CancelledError):
        await dying.step("shop", "bag")


@played
async def test_a1_who_finishes_an_epoch_has_waited_until_its_seal_is_settled() -> None:
    """R1: repair sets the flag, waits until that is settled, then reads. Here another has sealed: its change is
    decided, and one replica has heard of it. The worker meets that replica, reads the epoch, in which all is deleted,
    and is about to finish it. Meanwhile a message is put there; its putter meets the other replicas, finds the epoch
    open, and confirms. Then the worker's change has the seal land first, and finishes the epoch: nobody admitted
    anything."""
    clock, store = new_world()
    half = SealOnOneReplica(store)
    worker_store = half.others(shown=True)
    worker, putter = server(worker_store, clock), server(half.others(shown=False), clock)
    await create(putter)
    await sealed_by_one_that_died(putter, server(half.sealer(), clock), clock)
    assert half.change is not None
    confirmed: list[bytes] = []

    async def put_there(items: Sequence[Change]) -> None:
        """Just before the first epoch is finished: into all blocks, one message after the other."""
        del worker_store.hooks["change"]
        if items[0].partition.table is BAG_EPOCHS:
            for number in range(300):
                (outcome,) = await putter.put("shop", "bag", [NewMessage(b"%d" % number)])
                assert isinstance(outcome, MessageId)
                confirmed.append(b"%d" % number)
            await settle(items)

    settle = worker_store.hooks["change"]
    worker_store.hooks["change"] = put_there
    await worker.step("shop", "bag")
    assert confirmed
    clock.ms += 2 * limits.BAG_STATE_AGE_MS
    found = await drain(server(store, clock), clock)
    assert sorted(found) == sorted(confirmed), f"{len(set(confirmed) - set(found))} confirmed messages are lost"


@played
async def test_a1_what_is_voided_because_its_epoch_seems_to_be_over_is_not_confirmed() -> None:
    """A put with a key is shown the new epoch, holds its place there, looks, and writes its body. The look after that
    meets replicas that have not heard of the seal: the epoch is neither open nor sealed there, which is taken for
    finished. The next look is shown it again; so the place is voided, by a delete. But a body is there, its own, and
    that is taken for a message which was put before the end: it is confirmed. Then the seal lands."""
    clock, store = new_world()
    half = SealOnOneReplica(store)
    putter_store, other = half.others(shown=True), server(half.others(shown=False), clock)
    putter = server(putter_store, clock)
    await create(other)
    await sealed_by_one_that_died(other, server(half.sealer(), clock), clock)
    assert half.change is not None
    block = int(half.change.rows[0].key)

    async def write(items: Sequence[Write]) -> list[Any]:
        outcomes: list[Any] = await store.write(items)
        for item in items:
            _, of, epoch = item.partition.key.split(".")
            if (int(of), int(epoch)) == (block, 1) and "body" in item.rows[0].values:
                half.missed = 1
        return outcomes

    putter_store.hooks["write"] = write
    confirmed: list[bytes] = []
    for number in range(100):
        (outcome,) = await putter.put("shop", "bag", [NewMessage(b"%d" % number, key=f"k{number}")])
        if isinstance(outcome, MessageId):
            confirmed.append(b"%d" % number)
    await store.change([half.change])
    half.change = None
    found = await drain(server(store, clock), clock)
    assert sorted(found) == sorted(confirmed), f"{len(set(confirmed) - set(found))} confirmed messages are lost"


@played
async def test_d5_a_delete_in_an_epoch_that_somebody_else_was_shown_is_not_forgotten() -> None:
    """A producer is shown the new epoch, puts a message there and confirms. Whoever deletes it meets the replicas that
    have not heard of the seal: an epoch of which nobody has heard is taken for one that is gone, and the delete for
    done. Nothing is written. The seal lands, and the message comes."""
    clock, store = new_world()
    half = SealOnOneReplica(store)
    putter, other = server(half.others(shown=True), clock), server(half.others(shown=False), clock)
    await create(other)
    await sealed_by_one_that_died(other, server(half.sealer(), clock), clock)
    assert half.change is not None
    messages: list[MessageId] = []
    for _ in range(100):
        (outcome,) = await putter.put("shop", "bag", [NewMessage(b"m")])
        assert isinstance(outcome, MessageId)
        messages.append(outcome)
    outcomes = await other.ack("shop", "bag", [str(message) for message in messages])
    if half.change is not None:
        await store.change([half.change])
        half.change = None
    found = await drain(server(store, clock), clock)
    assert len(found) == sum(outcome is not None for outcome in outcomes), f"{len(found)} came after their delete"


@played
async def test_a1_what_is_put_where_a_look_found_nothing_is_served_by_who_looked() -> None:
    """Who receives is shown the seal, finds all of the epoch deleted, and remembers that: of a sealed epoch it stays
    so. A putter meets the replicas that have not heard of the seal, puts there, and confirms. Then the seal lands. Who
    tends the block would find the message, and serve it; but all consumers have their connections to another."""
    clock, store = new_world()
    half = SealOnOneReplica(store)
    receiver, putter = server(half.others(shown=True), clock), server(half.others(shown=False), clock)
    await create(putter)
    await sealed_by_one_that_died(putter, server(half.sealer(), clock), clock)
    assert half.change is not None
    (nothing,) = await receiver.receive("shop", "bag", [Ask(100)])
    assert nothing == []
    for number in range(100):
        (outcome,) = await putter.put("shop", "bag", [NewMessage(b"%d" % number)])
        assert isinstance(outcome, MessageId)
    if half.change is not None:
        await store.change([half.change])
        half.change = None
    found: set[bytes] = set()
    for _ in range(20):
        clock.ms += 2 * limits.BAG_STATE_AGE_MS
        (some,) = await receiver.receive("shop", "bag", [Ask(100)])
        assert isinstance(some, list)
        found |= {delivery.body for delivery in some}
    assert len(found) == 100, f"{100 - len(found)} confirmed messages are never served"
