"""Health: alive as long as the loop turns, ready as long as the store answers and the server does not stop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from angelhair.clock import SystemClock
from angelhair.engine.schema import TABLES
from angelhair.server.http import Request
from angelhair.server.observing.health import Readiness
from angelhair.stores.memory import MemoryStore
from angelhair.stores.sqlite import open_store
from tests.faults import UNAVAILABLE, FaultyStore
from tests.wire.observing.world import PATIENCE_SECONDS, serving


def memory() -> MemoryStore:
    return MemoryStore(lambda: SystemClock().now().wall_ms)


REQUEST = Request("GET", "/health/ready", "", {}, b"", "request-1", "127.0.0.1", False, True)


def test_a_server_that_works_is_live_and_ready() -> None:
    async def main() -> None:
        async with serving() as served:
            live, ready = await served.client.get("/health/live"), await served.client.get("/health/ready")
        assert (live.status_code, live.json()) == (200, {"status": "live"})
        assert (ready.status_code, ready.json()) == (200, {"status": "ready"})

    asyncio.run(main())


def test_without_its_store_it_is_live_and_not_ready() -> None:
    async def main() -> None:
        store = FaultyStore(memory())
        store.next("read", None, UNAVAILABLE, times=1_000_000)
        async with serving(store=store) as served:
            assert (await served.client.get("/health/live")).status_code == 200
            ready = await served.client.get("/health/ready")
        assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")
        said = ready.json()
        assert said["code"] == "unavailable"
        assert said["message"].startswith("not ready: the store does not answer")
        assert said["request_id"] == ready.headers["x-request-id"]

    asyncio.run(main())


def test_a_store_that_says_nothing_is_not_waited_for() -> None:
    async def main() -> None:
        store = FaultyStore(memory())
        never = asyncio.Event()

        async def silence() -> None:
            await never.wait()

        store.next("read", None, silence)
        readiness = Readiness(store, lambda: False, patience_seconds=0.01)
        answer = await asyncio.wait_for(readiness.respond(REQUEST), PATIENCE_SECONDS)
        assert answer.status == 503
        assert b"has not answered within 0.01 s" in answer.body
        await readiness.stop()

    asyncio.run(main())


def test_a_table_that_is_missing_is_noticed(tmp_path: Path) -> None:
    async def main() -> None:
        store = await open_store(tmp_path / "queues.db", tables=TABLES[:-1])
        readiness = Readiness(store, lambda: False)
        answer = await readiness.respond(REQUEST)
        assert answer.status == 503
        await readiness.stop()
        await store.close()

    asyncio.run(main())


def test_any_number_of_askers_cost_one_look() -> None:
    async def main() -> None:
        store = FaultyStore(memory())
        answering = asyncio.Event()
        looks = store.next("read", TABLES[0], answering.wait, times=1_000_000)  # type: ignore[arg-type]
        readiness = Readiness(store, lambda: False)
        askers = [asyncio.create_task(readiness.respond(REQUEST)) for _ in range(50)]
        await asyncio.sleep(0)
        askers[0].cancel()
        answering.set()
        answers = await asyncio.gather(*askers, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError)
        assert {getattr(answer, "status", None) for answer in answers[1:]} == {200}
        assert looks.happened == 1
        await readiness.stop()

    asyncio.run(main())


def test_a_server_that_stops_is_not_ready() -> None:
    async def main() -> None:
        async with serving() as served:
            served.observing.stopping()
            ready = await served.client.get("/health/ready")
            assert ready.status_code == 503
            assert "it is stopping" in ready.json()["message"]
            assert (await served.client.get("/health/live")).status_code == httpx.codes.OK

    asyncio.run(main())
