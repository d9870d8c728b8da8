"""What is said of a databag when a purge fails half way, and of a put with a key that comes just after one."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BAG_EPOCHS
from angelhair.engine.store import Change
from angelhair.errors import OutcomeUnknown
from angelhair.model import DATABAG, Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import new_world, played, server
from tests.faults import UNAVAILABLE, FaultyStore


@played
async def test_a_purge_of_a_databag_that_fails_half_way_does_not_say_that_it_did_not_happen() -> None:
    """Blocks are purged one by one, and the store fails at the sixth. Naive: to pass the store's error on, by which
    nothing has happened, though what lay in the first five is gone."""
    clock, store = new_world()
    faulty = FaultyStore(store)
    engine = server(faulty, clock)
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG))
    await engine.put("shop", "bag", [NewMessage(b"m") for _ in range(limits.BAG_BLOCKS * limits.BAG_PUT_MESSAGES)])

    def of_sixth_block(change: Change) -> bool:
        return change.rows[0].key == 5

    faulty.next("change", BAG_EPOCHS, UNAVAILABLE, when=of_sixth_block)
    with pytest.raises(OutcomeUnknown):
        await engine.purge("shop", "bag")
    (found,) = await engine.receive("shop", "bag", [Ask(1_000)])
    assert isinstance(found, list) and 0 < len(found) < limits.BAG_BLOCKS * limits.BAG_PUT_MESSAGES


@played
async def test_r10_a_put_with_a_key_just_after_a_purge_elsewhere_is_confirmed() -> None:
    """A server remembers the epochs of all blocks for a second, and in that second another purges. Naive: to draw
    another block and believe what is remembered of that one too, until no round is left: nobody knows then what became
    of one in three, in a store in which nothing fails."""
    clock, store = new_world()
    operator = server(store, clock)
    await operator.create_queue("shop", "bag", QueueSettings(kind=DATABAG))
    outcomes = []
    for number in range(30):
        putter = server(store, clock)
        await putter.put("shop", "bag", [NewMessage(b"first")])
        await operator.purge("shop", "bag")
        outcomes += await putter.put("shop", "bag", [NewMessage(b"m", key=f"k{number}")])
    assert [outcome for outcome in outcomes if not isinstance(outcome, MessageId)] == []
