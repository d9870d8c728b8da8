"""How long a holder believes in its lock when it was told nothing."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.schema import SHARDS
from angelhair.errors import StaleReceipt
from tests.faults import LOSE_ANSWER
from tests.promises.timelines import DELAY, ack, create, put, receive, touch
from tests.queues import SECOND, World

LOCK = 10 * SECOND


async def test_w9_a_change_that_had_landed_long_ago_is_no_touch_of_now(world: World) -> None:
    """Naive: refused by a row that shows what we want to write, so it is written. It was, seconds ago: so long others
    have watched it already."""
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, *(b"%d" % number for number in range(limits.TIMELINE_CHECKPOINT + 2)), in_ms=DELAY)
    world.wait(DELAY)
    found = await receive(server, consumer="a")
    assert len(found) == limits.TIMELINE_CHECKPOINT + 2
    server.store.next("change", SHARDS, LOSE_ANSWER, times=limits.SETTLE_ATTEMPTS + 1)
    assert set(await ack(server, *found[:-2])) == {None}
    await touch(other, "b")
    world.wait(7 * SECOND)
    assert await ack(server, found[-1]) == [None]
    world.wait(3 * SECOND)
    assert len((await touch(other, "b")).lanes) == 1
    (outcome,) = await ack(server, found[-2])
    assert isinstance(outcome, StaleReceipt)
