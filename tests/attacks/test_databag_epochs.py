"""Attacks on the epochs of databags: many of them, finished fast or slowly, and a message older than an id can say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from angelhair import limits
from angelhair.engine.catalog import load
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids, worker
from angelhair.engine.databag.epochs import Epochs, Over
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.engine.store import Row, Write
from angelhair.model import DATABAG, Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import DAY_MS, HookedStore, SteppedClock, new_world, played, server

SECOND_MS = 1_000
READS_PER_MESSAGE = 0.3


def _end_one_by_one(count: int, every_ms: int, kept_ms: int) -> Epochs:
    """So many epochs are sealed and finished, one after the other at a steady pace."""
    epochs = Epochs(1, 0, 0, ())
    for number in range(count):
        epochs = epochs.sealed_now(number * every_ms).finished([number], number * every_ms, kept_ms)
    return epochs


def test_d5_a_day_of_many_epochs_is_some_sixty_ranges() -> None:
    """`docs/decisions/0026`: some sixty ranges, however many epochs a history holds. At 2,000 messages a second a block
    ends an epoch every four seconds. A range ends after 64 epochs, so a day is hundreds of them, which every put
    reads once, and every look once a second for all blocks."""
    assert len(_end_one_by_one(20_000, DAY_MS // 20_000, DAY_MS).over) <= 2 * limits.BAG_OVER_PARTS


def test_r14_no_epoch_is_kept_for_long_after_its_history_because_of_others() -> None:
    """`BAG_OVER_PARTS`: each is there a sixty-fourth longer at most. A range takes in who follows within that time of
    its latest, not of its first: where one epoch ends every ten minutes, the first waits for the sixty-third."""
    every_ms = limits.BAG_EPOCH_AGE_MS
    epochs = _end_one_by_one(140, every_ms, DAY_MS)

    def longest_ms(over: Over) -> int:
        return over.at_ms - over.first * every_ms

    assert max(map(longest_ms, epochs.over)) <= DAY_MS // limits.BAG_OVER_PARTS


class _Counted(HookedStore):
    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.reads = 0
        self.calls = 0
        self.hooks["read"] = self._count

    async def _count(self, spans: Sequence[Any]) -> None:
        some = [span for span in spans if span.partition.table is BAG_MESSAGES]
        self.reads += len(some)
        self.calls += bool(some)


async def _fill(engine: Engine, clock: SteppedClock, messages: int, epochs: int) -> None:
    for number in range(messages):
        (outcome,) = await engine.put("shop", "bag", [NewMessage(b"%d" % number)])
        assert isinstance(outcome, MessageId)
        if number % (messages // epochs) == 0:
            clock.ms += limits.BAG_EPOCH_AGE_MS + SECOND_MS
            await engine.step("shop", "bag")


async def _reads_per_message(epochs: int) -> float:
    """Of a databag with forty messages in each partition, that were put within so many epochs."""
    clock, store = new_world()
    counted = _Counted(store)
    engine = server(counted, clock)
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG, min_partitions=64, max_partitions=64))
    await _fill(engine, clock, 64 * 40, epochs)
    counted.reads = found = 0
    for _ in range(64):
        (some,) = await engine.receive("shop", "bag", [Ask(10)])
        assert isinstance(some, list)
        await engine.ack("shop", "bag", [delivery.receipt for delivery in some])
        found += len(some)
        clock.ms += SECOND_MS
    return counted.reads / found


@played
async def test_d5_a_databag_that_was_filled_slowly_is_as_cheap_to_read_as_one_that_was_filled_fast() -> None:
    """An epoch is sealed when it is ten minutes old, however few messages are in it: a day without consumers is 144
    epochs of a block, and a look reads them one after the other, until one partition has what is wanted."""
    fast, slow = await _reads_per_message(1), await _reads_per_message(144)
    assert slow <= READS_PER_MESSAGE, f"{slow:.2f} reads for a message, and {fast:.2f} where it was filled fast"


@played
async def test_d5_a_message_that_is_older_than_an_id_can_say_can_be_deleted() -> None:
    """A message that nobody deletes, without retention, and something that passes every ten minutes: after 455 days the
    65,536th epoch after its own would be open, and the sixteen bits of its id would mean that one."""
    clock, store = new_world()
    engine = server(store, clock)
    settings = QueueSettings(
        kind=DATABAG, retention_ms=None, history_ms=0, visibility_timeout_ms=SECOND_MS, min_partitions=16,
        max_partitions=16,
    )
    await engine.create_queue("shop", "bag", settings)
    (old,) = await engine.put("shop", "bag", [NewMessage(b"old")])
    assert isinstance(old, MessageId)
    await _let_epochs_pass(engine, clock, ids.block_of(ids.slice_of(old.number)))
    assert await engine.ack("shop", "bag", [str(old)]) == [None]
    fresh = server(store, clock)
    clock.ms += 10 * SECOND_MS
    (found,) = await fresh.receive("shop", "bag", [Ask(100)])
    assert isinstance(found, list)
    assert old not in [delivery.id for delivery in found], "its delete was confirmed"


async def _let_epochs_pass(engine: Engine, clock: SteppedClock, block: int) -> None:
    """In one block a message is put and deleted every ten minutes, and the block is tended. All but the last two of so
    many epochs are taken as passed: to play them takes ten minutes too."""
    verbs: Any = engine._kinds[DATABAG]
    queue = await load(engine.memory.store, "shop", "bag")
    assert queue is not None
    bag = await verbs.bag(queue)
    (epochs,) = await epochs_of.load(bag, [block])
    passed = replace(epochs.sealed_now(clock.ms), open=ids.EPOCHS - 2)
    assert await epochs_of.change(bag, block, epochs, passed) is not None
    for _ in range(2):
        (epochs,) = await epochs_of.load(bag, [block])
        number = ids.make(block * ids.BLOCK_SLICES, epochs.open, epochs.open, bag.secret)
        row = Row(number, {"body": b"passes", "enqueued_at": clock.ms, "deleted": clock.ms})
        await bag.store.write([Write(bag.messages(block, epochs.open), [row])])
        clock.ms += limits.BAG_EPOCH_AGE_MS
        await worker.tend(bag, block, epochs)
    assert (await epochs_of.load(bag, [block]))[0].open < ids.EPOCHS, "one more, and the bits would mean another"
