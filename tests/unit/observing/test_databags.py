"""What a server tells of databags: how they are cut, what of them rests, what was served twice."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.databag.inspect import BagSeen
from angelhair.engine.members import Holdings, Presence
from angelhair.model import DATABAG, Ask, NewMessage, QueueSettings
from tests.unit.observing.test_measuring import World, _depths, run

SETTINGS = QueueSettings(kind=DATABAG, min_partitions=20, max_partitions=50)
PARTITIONS, LOCKED = "angelhair_databag_partitions", "angelhair_databag_partitions_locked"
MOST, EPOCHS, DUPLICATES = (
    "angelhair_databag_partitions_most", "angelhair_databag_epochs", "angelhair_databag_duplicates"
)
DEPTH = "angelhair_queue_depth"


def test_partitions_and_what_of_them_is_locked() -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "events", SETTINGS)
        depths = _depths(server, "events")
        await depths.step()
        found = [server.value(name, "events") for name in (PARTITIONS, MOST, LOCKED, EPOCHS, DUPLICATES)]
        assert found == [20, 50, 0, limits.BAG_BLOCKS, 0]
        await server.engine.put("me", "events", [NewMessage(b"x")])
        await server.engine.receive("me", "events", [Ask(1)])
        await depths.step()
        assert (server.value(LOCKED, "events"), server.value(DEPTH, "events", "in_flight")) == (1, 1)
        world.dial.wall_ms += SETTINGS.visibility_timeout_ms
        await depths.step()
        assert (server.value(LOCKED, "events"), server.value(DEPTH, "events", "visible")) == (0, 1)

    run(main)


def test_what_is_served_although_it_was_deleted_is_told() -> None:
    async def main(world: World) -> None:
        server = world.server()
        seen = BagSeen(20, 10, 50, 30_000, 30_000, locked=7, epochs=33, duplicates=3)
        server.observer.databag("events", seen)
        found = [server.value(name, "events") for name in (PARTITIONS, MOST, LOCKED, EPOCHS, DUPLICATES)]
        assert found == [20, 50, 7, 33, 3]

    run(main)


def test_one_of_the_servers_says_it_for_all_and_a_deleted_one_is_forgotten() -> None:
    async def main(world: World) -> None:
        first, second = world.server(), world.server()
        await first.engine.create_queue("me", "events", SETTINGS)
        for _ in range(2):
            for number, server in enumerate((first, second)):
                await server.engine.membership.step(Presence(f"place-{number}", "host", number, "1", 0), Holdings())
        for server in (first, second):
            await _depths(server, "events").step()
        said = [server.value(PARTITIONS, "events") for server in (first, second)]
        assert sorted(said, key=str) == [20, None]
        speaking = first if said[0] else second
        speaking.observer.depth_unknown("events")
        left = [speaking.value(name, "events") for name in (PARTITIONS, MOST, LOCKED, EPOCHS, DUPLICATES)]
        assert left == [None] * 5

    run(main)


def test_other_queues_have_no_figures_of_databags() -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "jobs", QueueSettings())
        await server.engine.step("me", "jobs")
        await _depths(server, "jobs").step()
        assert server.value(PARTITIONS, "jobs") is None
        assert server.value(DEPTH, "jobs", "visible") == 0

    run(main)
