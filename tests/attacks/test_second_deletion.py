"""Attacks on queues that are deleted while their lanes are being changed, and on lanes with large numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine import places
from angelhair.engine.engine import Engine
from angelhair.engine.schema import QUEUES, SEQUENCES
from angelhair.engine.store import Change, RowChange
from angelhair.errors import AngelhairError, QueueExists, QueueNotFound
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import HookedStore, bodies, consume, new_world, on, played, server


def begins_a_deletion(changes: Sequence[Any]) -> bool:
    return on(QUEUES)(changes) and (changes[0].rows[0].values or {}).get("status") == "deleting"


@pytest.mark.parametrize("times", [1, 3, 6, 20])
@played
async def test_a_queue_whose_lanes_change_while_it_is_deleted_is_deleted_whole_or_not_at_all(times: int) -> None:
    """Whenever a server is about to mark a queue or its lanes as deleted, another one gives it a lane more.
    The naive engine gave up after some rounds, and deleted the lanes that it knew of all the same: into the newest one
    messages went on being put and confirmed, and when the name was used again nobody read them."""
    clock, store = new_world()
    hooked = HookedStore(store)
    deleting, changing, other = server(hooked, clock), server(store, clock), server(store, clock)
    await changing.create_queue("shop", "jobs", QueueSettings())
    changes = 0
    unaware: list[Engine] = []

    async def change_first(items: Sequence[Any]) -> None:
        nonlocal changes
        if changes < times and (begins_a_deletion(items) or on(SEQUENCES)(items)):
            try:
                await changing.change_queue("shop", "jobs", {"lanes": changes + 2})
            except QueueNotFound:
                return  # too late: it is marked, and its lanes stay as they are
            changes += 1
            # Servers that know the queue as it is now; each will put its next message into another lane.
            unaware[:] = [server(store, clock) for _ in range(changes + 1)]
            for turn, one in enumerate(unaware):
                for _ in range(turn + 1):
                    await one.receive("shop", "jobs", [Ask(1)])

    hooked.hooks["change"] = change_first
    try:
        await deleting.delete_queue("shop", "jobs")
    except AngelhairError:
        pass
    try:
        await other.create_queue("shop", "jobs", QueueSettings())
    except QueueExists:
        pass
    confirmed = 0
    for one in unaware:
        (outcome,) = await one.put("shop", "jobs", [NewMessage(b"message")])
        confirmed += isinstance(outcome, MessageId)
    assert confirmed
    assert len(await consume(other, clock, steps=100)) == confirmed


@pytest.mark.parametrize("made", [65_535, 65_536, 70_000])
@played
async def test_a_lane_with_a_large_number_delivers(made: int) -> None:
    """A queue's lanes have been changed so often that the next one's number no longer fits into two bytes.
    The naive engine confirmed puts into that lane, and could not write a receipt for what it had claimed there."""
    clock, store = new_world()
    engine, other = server(store, clock), server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    await store.change([Change(places.account_queues("shop"), [RowChange("jobs", {}, {"lanes_made": made})])])
    try:
        await other.change_queue("shop", "jobs", {"lanes": 2})
    except AngelhairError:
        pass  # no lane is better than one from which nothing comes
    for _ in range(4):
        (outcome,) = await other.put("shop", "jobs", [NewMessage(b"message")])
        assert isinstance(outcome, MessageId)
    assert bodies(await consume(other, clock, steps=50)) == [b"message"] * 4
    ((),) = await other.receive("shop", "jobs", [Ask(1)])
