"""What the measured store, the measured engine and the look at depths tell an observer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

from angelhair import limits
from angelhair.batching.batching import Batching
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES, LEASES, SEQUENCES
from angelhair.engine.store import Store
from angelhair.errors import StoreError, Unavailable
from angelhair.model import Ask, NewMessage, QueueSettings, WantedChange
from angelhair.server.observing.depths import Depths
from angelhair.server.observing.measured_engine import MeasuredEngine
from angelhair.server.observing.measured_store import MeasuredStore
from angelhair.server.observing.observer import Observer
from angelhair.server.runtime import AsyncioRuntime
from angelhair.stores.counting import CountingStore
from angelhair.stores.memory import MemoryStore
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE, FaultyStore
from tests.queues import MINUTE, Dial, Identities, ServerClock


class World:
    """Servers that are watched, on one memory store, in a time that passes when a test says so."""

    def __init__(self) -> None:
        self.dial = Dial()
        self.memory = MemoryStore(self.dial.now_ms)
        self.identities = Identities()

    def server(self, ahead_ms: int = 0, wrap: Callable[[Store], Store] = lambda store: store) -> Watched:
        return Watched(self, ServerClock(self.dial, ahead_ms), wrap)


class Watched:
    def __init__(self, world: World, clock: ServerClock, wrap: Callable[[Store], Store]) -> None:
        self.observer = Observer()
        self.faults = FaultyStore(world.memory)
        self.store = MeasuredStore(wrap(self.faults), self.observer, clock)
        self.engine = MeasuredEngine(self.store, world.identities, clock, self.observer)

    def value(self, name: str, *labels: str) -> float | None:
        for family in self.observer.collect():
            for sample in family.samples:
                if sample.name == name and tuple(sample.labels.values()) == labels:
                    return sample.value
        return None

    def total(self, name: str, *labels: str) -> float:
        return sum(
            sample.value
            for family in self.observer.collect()
            for sample in family.samples
            if sample.name == name and tuple(sample.labels.values())[: len(labels)] == labels
        )


def run(main: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main(World()))


def test_operations_are_those_that_the_counting_store_counts() -> None:
    async def main(world: World) -> None:
        counting: list[CountingStore] = []

        def wrap(store: Store) -> Store:
            counting.append(CountingStore(store))
            return counting[0]

        server = world.server(wrap=wrap)
        await server.engine.create_queue("me", "jobs", QueueSettings(history_ms=0, bucket_size=2))
        await server.engine.put("me", "jobs", [NewMessage(b"x")] * 5)
        (found,) = await server.engine.receive("me", "jobs", [Ask(5)])
        assert isinstance(found, list)
        await server.engine.ack("me", "jobs", [one.receipt for one in found])
        for _ in range(20):
            world.dial.wall_ms += MINUTE
            await server.engine.step("me", "jobs")
        counts = counting[0].counts
        operations, rows = "angelhair_store_operations_total", "angelhair_store_rows_total"
        assert counts.drops > 0
        assert server.total(operations, "change") == counts.changes
        assert server.total(operations, "write") == counts.writes
        assert server.total(operations, "drop") == counts.drops
        # The counting store counts looks at the clock as reads.
        clock_looks = server.value("angelhair_store_call_seconds_count", "time") or 0
        assert server.total(operations, "read") + clock_looks == counts.reads
        assert server.total(rows, "read") == counts.rows_read
        assert server.total(rows, "write") == counts.rows_written
        assert server.total(rows, "change") == counts.rows_changed
        assert server.total("angelhair_store_changes_refused_total") == counts.changes_refused
        assert server.total("angelhair_store_errors_total") == 0

    run(main)


def test_errors_are_counted_by_kind() -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "jobs", QueueSettings())
        server.faults.next("write", BODIES, UNAVAILABLE)
        server.faults.next("change", SEQUENCES, LOSE_ANSWER)
        await server.engine.put("me", "jobs", [NewMessage(b"x")])
        assert server.value("angelhair_store_errors_total", "write", "unavailable") == 1
        assert server.value("angelhair_store_errors_total", "change", "outcome_unknown") == 1
        server.faults.next("read", None, UNAVAILABLE, times=1_000)
        with pytest.raises(Unavailable):
            await server.store.read(_one_span())
        assert server.value("angelhair_store_errors_total", "read", "unavailable") == 1

        async def broken() -> None:
            raise RuntimeError("the driver has a bug")

        server.faults.heal()
        server.faults.next("read", None, broken)
        with pytest.raises(RuntimeError):
            await server.store.read(_one_span())
        assert server.value("angelhair_store_errors_total", "read", "unexpected") == 1
        assert server.total("angelhair_store_errors_total") == 4

    run(main)


def _one_span() -> list[Any]:
    from angelhair.engine.store import Partition, Span

    return [Span(Partition(BODIES, "nowhere"))]


def test_a_call_that_was_abandoned_is_no_error() -> None:
    async def main(world: World) -> None:
        server = world.server()
        never = asyncio.Event()

        async def silence() -> None:
            await never.wait()

        server.faults.next("read", None, silence)
        call = asyncio.create_task(server.store.read(_one_span()))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert server.total("angelhair_store_errors_total") == 0
        assert server.value("angelhair_store_call_seconds_count", "read") == 1

    run(main)


def test_leases_taken_lost_and_given_back() -> None:
    async def main(world: World) -> None:
        first, second = world.server(), world.server()
        await first.engine.create_queue("me", "jobs", QueueSettings())
        await first.engine.step("me", "jobs")
        changes = "angelhair_lease_changes_total"
        assert [first.value(changes, change) for change in ("taken", "lost", "released")] == [1, 0, 0]
        # Beats are no changes.
        for _ in range(5):
            world.dial.wall_ms += limits.LEASE_BEAT_MS
            await first.engine.step("me", "jobs")
        assert first.value(changes, "taken") == 1
        # The first one sleeps; the second watches for a lease's length and takes over.
        await second.engine.step("me", "jobs")
        world.dial.wall_ms += limits.LEASE_MS
        await second.engine.step("me", "jobs")
        assert second.value(changes, "taken") == 1
        await first.engine.step("me", "jobs")
        assert first.value(changes, "lost") == 1
        await second.engine.release_leases()
        assert second.value(changes, "released") == 1
        await first.engine.step("me", "jobs")
        assert [first.value(changes, change) for change in ("taken", "lost", "released")] == [2, 1, 0]

    run(main)


def test_a_lease_whose_answer_was_lost_is_taken_once() -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "jobs", QueueSettings())
        server.faults.next("change", LEASES, LOSE_ANSWER)
        await server.engine.step("me", "jobs")
        assert server.engine.leases_held() == 1
        assert server.value("angelhair_lease_changes_total", "taken") == 1
        assert server.value("angelhair_lease_changes_total", "lost") == 0

    run(main)


@pytest.mark.parametrize("ahead_ms", [0, 7_000, -90_000])
def test_the_clocks_difference_is_the_stores_minus_ours(ahead_ms: int) -> None:
    async def main(world: World) -> None:
        server = world.server(ahead_ms=ahead_ms)
        await server.engine.create_queue("me", "jobs", QueueSettings())
        await server.engine.step("me", "jobs")
        assert server.value("angelhair_clock_skew_seconds") == -ahead_ms / 1000

    run(main)


def test_groups_are_what_batching_joined() -> None:
    async def main(world: World) -> None:
        server = world.server()
        batching = Batching(server.engine, AsyncioRuntime())
        await server.engine.create_queue("me", "jobs", QueueSettings())
        await asyncio.gather(*(batching.put("me", "jobs", [NewMessage(b"x")] * 2) for _ in range(10)))
        assert server.value("angelhair_group_messages_sum", "put") == 20
        assert (server.value("angelhair_group_messages_count", "put") or 0) < 10
        received = await asyncio.gather(*(batching.receive("me", "jobs", Ask(4)) for _ in range(5)))
        assert server.value("angelhair_group_messages_sum", "receive") == 20
        groups = server.value("angelhair_group_messages_count", "receive")
        assert await batching.receive("me", "jobs", Ask(4)) == []
        assert server.value("angelhair_group_messages_count", "receive") == groups, "a look that found nothing is none"
        receipts = [one.receipt for found in received for one in found]
        await batching.change("me", "jobs", [WantedChange(receipt, MINUTE) for receipt in receipts])
        await asyncio.gather(*(batching.ack("me", "jobs", [receipt]) for receipt in receipts))
        assert server.value("angelhair_group_messages_sum", "change") == 20
        assert server.value("angelhair_group_messages_sum", "ack") == 20

    run(main)


def test_depth_is_said_by_one_server_and_goes_with_the_lease() -> None:
    async def main(world: World) -> None:
        first, second = world.server(), world.server()
        await first.engine.create_queue("me", "jobs", QueueSettings(lanes=2))
        await first.engine.put("me", "jobs", [NewMessage(b"x"), NewMessage(b"x", delay_ms=MINUTE)])
        depths = {server: _depths(server, "jobs") for server in (first, second)}
        visible = ("angelhair_queue_depth", "jobs", "visible")
        await first.engine.step("me", "jobs")
        await second.engine.step("me", "jobs")
        for server in (first, second):
            await depths[server].step()
        assert first.value(*visible) == 1
        assert first.value("angelhair_queue_depth", "jobs", "delayed") == 1
        assert first.value("angelhair_leases_held") == 2
        assert second.value(*visible) is None
        world.dial.wall_ms += limits.LEASE_MS
        await second.engine.step("me", "jobs")
        for server in (first, second):
            await depths[server].step()
        assert first.value(*visible) is None
        assert first.value("angelhair_queue_oldest_seconds", "jobs") is None
        assert second.value(*visible) == 1
        assert second.value("angelhair_queue_oldest_seconds", "jobs") == limits.LEASE_MS / 1000

    run(main)


def test_a_queue_that_nobody_archives_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "jobs", QueueSettings(bucket_size=1, archive=True))
        await server.engine.put("me", "jobs", [NewMessage(b"x")] * 3)
        (found,) = await server.engine.receive("me", "jobs", [Ask(3)])
        assert isinstance(found, list)
        await server.engine.ack("me", "jobs", [delivery.receipt for delivery in found])
        for _ in range(20):
            world.dial.wall_ms += limits.STEP_MS
            await server.engine.step("me", "jobs")
        depths = _depths(server, "jobs")
        await depths.step()
        assert server.value("angelhair_queue_unarchived_buckets", "jobs") == 3
        assert not caplog.records
        monkeypatch.setattr(limits, "ARCHIVE_PATIENCE_SECONDS", 0.0)
        await depths.step()
        assert "3 finished buckets are kept until they are archived" in caplog.text
        caplog.clear()
        # It moves: nothing to say. And then nothing is left.
        for archived, left in ((2, 1), (3, 0)):
            await server.engine.archived_up_to("me", "jobs", 0, archived)
            await depths.step()
            assert server.value("angelhair_queue_unarchived_buckets", "jobs") == left
        await depths.step()
        assert not caplog.records

    run(main)


def _depths(server: Watched, *queues: str) -> Depths:
    return _depths_of(server, lambda: queues)


def _depths_of(server: Watched, names: Callable[[], Iterable[str]]) -> Depths:
    return Depths(server.engine, lambda _, name: name, lambda: [("me", name) for name in names()], server.observer)


def test_a_deep_queue_costs_a_bounded_number_of_reads_and_says_that_it_estimates() -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "jobs", QueueSettings(bucket_size=10))
        for _ in range(5):
            await server.engine.put("me", "jobs", [NewMessage(b"x")] * 1_000)
        await server.engine.step("me", "jobs")
        before = server.total("angelhair_store_operations_total", "read")
        await _depths(server, "jobs").step()
        assert server.total("angelhair_store_operations_total", "read") - before < 4 * limits.DEPTH_BUCKETS
        assert server.value("angelhair_queue_depth", "jobs", "visible") == 5_000
        assert server.value("angelhair_queue_depth_exact", "jobs") == 0

    run(main)


def test_rounds_pass_every_queue_rest_and_forget_what_is_deleted() -> None:
    async def main(world: World) -> None:
        server = world.server()
        names = ["a", "b", "c"]
        for name in names:
            await server.engine.create_queue("me", name, QueueSettings())
            await server.engine.step("me", name)
        depths = _depths_of(server, lambda: names)
        rests = [await depths.step() for _ in names]
        assert [server.value("angelhair_queue_depth", name, "visible") for name in names] == [0, 0, 0]
        assert min(rests) >= limits.DEPTH_REST_SECONDS
        assert rests[-1] > limits.DEPTH_ROUND_SECONDS / 2, "a round is not begun again at once"
        names.remove("b")
        await depths.step()
        assert server.value("angelhair_queue_depth", "b", "visible") is None
        await server.engine.delete_queue("me", "c")
        await depths.step()
        assert server.value("angelhair_queue_depth", "c", "visible") is None
        assert server.value("angelhair_queue_depth", "a", "visible") == 0
        names.clear()
        assert await depths.step() == limits.DEPTH_ROUND_SECONDS

    run(main)


def test_what_others_deleted_makes_room() -> None:
    async def main(world: World) -> None:
        server = world.server()
        names = ["a"]
        for name in ("a", "b"):
            await server.engine.create_queue("me", name, QueueSettings())
            server.observer.put(name, 1)
        depths = _depths_of(server, lambda: names)
        await depths.step()
        assert server.observer.queues == {"a", "b"}, "it may be too new to be known"
        await depths.step()
        assert server.observer.queues == {"a"}
        assert server.value("angelhair_messages_put_total", "b") is None
        assert server.value("angelhair_messages_put_total", "a") == 1

    run(main)


def test_a_look_that_fails_says_nothing_and_the_next_one_does(caplog: pytest.LogCaptureFixture) -> None:
    async def main(world: World) -> None:
        server = world.server()
        await server.engine.create_queue("me", "jobs", QueueSettings())
        await server.engine.put("me", "jobs", [NewMessage(b"x")])
        await server.engine.step("me", "jobs")
        depths = _depths(server, "jobs")

        async def bug() -> None:
            raise RuntimeError("a bug")

        for happening in (UNAVAILABLE, bug):
            server.faults.next("read", BODIES, happening)
            await depths.step()
            assert server.value("angelhair_queue_depth", "jobs", "visible") is None
            await depths.step()
            assert server.value("angelhair_queue_depth", "jobs", "visible") == 1

    run(main)
    assert [record.levelname for record in caplog.records if record.name.endswith("depths")] == ["ERROR"]


def test_the_measured_engine_answers_as_the_engine_does() -> None:
    """The observer only listens."""

    async def main(world: World) -> None:
        server = world.server()
        plain = Engine(world.memory, world.identities, ServerClock(world.dial))
        await server.engine.create_queue("me", "jobs", QueueSettings())
        server.faults.next("change", SEQUENCES, NEVER_SENT, times=1_000)
        with pytest.raises(StoreError):
            await server.engine.put("me", "jobs", [NewMessage(b"x")])
        server.faults.heal()
        (first,) = await server.engine.put("me", "jobs", [NewMessage(b"x")])
        (found,) = await plain.receive("me", "jobs", [Ask(1)])
        assert isinstance(found, list) and [one.id for one in found] == [first]
        assert await server.engine.ack("me", "jobs", [found[0].receipt]) == [None]

    run(main)
