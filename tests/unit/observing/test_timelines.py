"""What a server tells of timelines: the shards that it holds, how late they are, what was set aside."""

from __future__ import annotations

from angelhair.model import TIMELINE, Ask, NewMessage, QueueSettings, WantedChange
from tests.queues import MINUTE
from tests.unit.observing.test_measuring import World, _depths, run

SETTINGS = QueueSettings(
    kind=TIMELINE, lanes=2, producer_delay_ms=0, lock_ms=10_000, max_deliveries=1, dead_letter_queue="dead"
)
HELD, LAG = "angelhair_timeline_shards_held", "angelhair_timeline_lag_seconds"
ASIDE = "angelhair_timeline_set_aside_total"


def test_shards_held_and_lag_are_said_by_those_who_hold_them() -> None:
    async def main(world: World) -> None:
        first, second = world.server(), world.server()
        await first.engine.create_queue("me", "bells", SETTINGS)
        depths = {server: _depths(server, "bells") for server in (first, second)}
        await first.engine.put("me", "bells", [NewMessage(b"x")])
        world.dial.wall_ms += 3_000
        for server in (first, second):
            await depths[server].step()
            assert (server.value(HELD, "bells"), server.value(LAG, "bells")) == (0, 3), "nobody works on it: all say so"
        await first.engine.touch_consumer("me", "bells", "ann")
        world.dial.wall_ms += 1_000
        for server in (first, second):
            await depths[server].step()
        assert (first.value(HELD, "bells"), first.value(LAG, "bells")) == (2, 4)
        assert (second.value(HELD, "bells"), second.value(LAG, "bells")) == (0, 0), "the other says it"
        assert first.value("angelhair_queue_depth", "bells", "visible") == 1
        assert second.value("angelhair_queue_depth", "bells", "visible") is None

    run(main)


def test_what_is_set_aside_is_counted_by_where_it_went() -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "dead", QueueSettings())
        await server.engine.create_queue("me", "bells", SETTINGS)
        depths = _depths(server, "bells")
        await server.engine.put("me", "bells", [NewMessage(b"later"), NewMessage(b"never")])
        world.dial.wall_ms += 1_000
        ((one, two),) = await server.engine.receive("me", "bells", [Ask(2, consumer="ann")])
        changes = [WantedChange(one.receipt, MINUTE), WantedChange(two.receipt, 0)]
        assert await server.engine.change("me", "bells", changes) == [None, None]
        assert await server.engine.receive("me", "bells", [Ask(2, consumer="ann")]) == [[]]
        await server.engine.step("me", "bells")
        for _ in range(2):
            await depths.step()
            assert server.value(ASIDE, "bells", "later") == 1
            assert server.value(ASIDE, "bells", "dead_letters") == 1

    run(main)


def test_the_depth_of_other_queues_is_not_asked_for_shards() -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "jobs", QueueSettings())
        await server.engine.step("me", "jobs")
        await _depths(server, "jobs").step()
        assert server.value(HELD, "jobs") is None
        assert server.value("angelhair_queue_depth", "jobs", "visible") == 0

    run(main)
