"""Attacks on what is said of a databag's verb that has happened: a first try was made and its answer lost, somebody
changed the row after that, and then the store says no (`tests/promises/test_done_and_undone.py` has other verbs)."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.databag import ids
from angelhair.engine.schema import BAG_EPOCHS
from angelhair.engine.store import Change
from angelhair.errors import OutcomeUnknown
from tests.attacks.bags import SECOND_MS, create, delete, put, receive
from tests.attacks.worlds import new_world, played, server
from tests.faults import LOSE_ANSWER, UNAVAILABLE, FaultyStore


@pytest.mark.parametrize("verb", ["read", "change"])
@played
async def test_a_purge_whose_first_change_was_made_and_changed_again_does_not_deny_it(verb: str) -> None:
    """The first block is purged, and the answer lost. A worker seals its new epoch, so the same change is refused, and
    what is in the row is not ours any more. The next round meets a store that says no; by that nothing has happened,
    though what was confirmed in that block is gone."""
    clock, store = new_world()
    faulty = FaultyStore(store)
    engine, other = server(faulty, clock), server(store, clock)
    await create(engine)
    messages = await put(other, 320, at_once=320)
    purged = {message for message in messages if ids.block_of(ids.slice_of(message.number)) == 0}

    def of_first_block(change: Change) -> bool:
        return change.rows[0].key == 0

    async def sealed() -> None:
        clock.ms += 2 * limits.BAG_STATE_AGE_MS
        await delete(other, *(await put(other, 320, at_once=320)))
        clock.ms += limits.BAG_EPOCH_AGE_MS + SECOND_MS
        await other.step("shop", "bag")
        faulty.next(verb, BAG_EPOCHS, UNAVAILABLE, when=(lambda _: True) if verb == "read" else of_first_block)

    lost = faulty.next("change", BAG_EPOCHS, LOSE_ANSWER, when=of_first_block)
    again = faulty.next("change", BAG_EPOCHS, sealed, when=of_first_block)
    with pytest.raises(OutcomeUnknown):
        await engine.purge("shop", "bag")
    assert (lost.happened, again.happened) == (1, 1)
    found = {delivery.id for delivery in await receive(server(store, clock), 1_000)}
    assert found == set(messages) - purged, "some of it has happened"
