"""`/metrics` of a real server: what was counted, in the format that was asked for, for one process and for several."""

from __future__ import annotations

import asyncio
import socket
import struct
import tempfile
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from angelhair import limits
from angelhair.model import QueueSettings
from angelhair.settings import Settings
from tests.wire.observing.world import PATIENCE_SECONDS, Served, key, samples, serving


def test_requests_are_counted_by_route_method_and_status() -> None:
    async def main() -> None:
        async with serving(queues={"jobs": QueueSettings()}) as served:
            for _ in range(3):
                assert (await served.client.put("/queues/jobs/message", content=b"x")).status_code == 201
            assert (await served.client.get("/nowhere/at/all")).status_code == 404
            assert (await served.client.put("/broken")).status_code == 500
            found = await served.metrics()
        route = "/queues/{queue}/message"
        assert found[key("angelhair_http_requests_total", route=route, method="PUT", status="201")] == 3
        assert found[key("angelhair_http_requests_total", route="(other)", method="GET", status="404")] == 1
        assert found[key("angelhair_http_requests_total", route="/broken", method="PUT", status="500")] == 1
        assert found[key("angelhair_http_request_seconds_count", route=route, method="PUT")] == 3
        assert found[key("angelhair_http_request_seconds_bucket", route=route, method="PUT", le="+Inf")] == 3
        assert 0 < found[key("angelhair_http_request_seconds_sum", route=route, method="PUT")] < PATIENCE_SECONDS

    asyncio.run(main())


def test_what_is_refused_before_any_door_saw_it_is_counted() -> None:
    async def main() -> None:
        async with serving() as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(b"this is not HTTP\r\n\r\n")
            assert b" 400 " in await asyncio.wait_for(reader.readline(), PATIENCE_SECONDS)
            writer.close()
            await writer.wait_closed()
            assert (await served.metrics())[key("angelhair_http_refused_total", status="400")] == 1

    asyncio.run(main())


def test_a_client_that_left_is_counted_as_such() -> None:
    async def main() -> None:
        async with serving(queues={"jobs": QueueSettings()}) as served:
            _, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(b"GET /queues/jobs/messages/1?wait=50 HTTP/1.1\r\nHost: x\r\n\r\n")
            await until(served, key("angelhair_receives_waiting"), 1)
            # Reset, not closed: who closes only its own side may still be reading.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.close()
            await writer.wait_closed()
            gone = key(
                "angelhair_http_requests_total", route="/queues/{queue}/messages/{batch}", method="GET", status="499")
            await until(served, gone, 1)
            assert (await served.metrics())[key("angelhair_receives_waiting")] == 0

    asyncio.run(main())


async def until(served: Served, wanted: tuple[str, tuple[tuple[str, str], ...]], value: float) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await served.metrics()).get(wanted) != value:
            pass


def test_messages_are_counted_by_queue_and_redeliveries_apart() -> None:
    async def main() -> None:
        async with serving(queues={"jobs": QueueSettings(visibility_timeout_ms=0)}) as served:
            for body in (b"a", b"b"):
                await served.client.put("/queues/jobs/message", content=body)
            first = (await served.client.get("/queues/jobs/messages/10")).json()
            second = (await served.client.get("/queues/jobs/messages/10")).json()
            assert len(first) == len(second) == 2
            for delivery in second:
                assert (await served.client.delete(f"/queues/jobs/message/{delivery['receipt']}")).status_code == 204
            stale = first[0]["receipt"]
            assert (await served.client.delete(f"/queues/jobs/message/{stale}")).status_code == 409
            found = await served.metrics()
        assert found[key("angelhair_messages_put_total", queue="jobs")] == 2
        assert found[key("angelhair_messages_received_total", queue="jobs")] == 4
        assert found[key("angelhair_messages_redelivered_total", queue="jobs")] == 2
        assert found[key("angelhair_messages_acked_total", queue="jobs")] == 2
        assert found[key("angelhair_acks_refused_total", queue="jobs")] == 1
        assert found[key("angelhair_message_wait_seconds_count")] == 2
        assert found[key("angelhair_group_messages_count", verb="put")] == 2
        assert found[key("angelhair_group_messages_sum", verb="receive")] == 4
        # Store operations per message can be told: both sides are there.
        assert found[key("angelhair_store_operations_total", operation="write", table="bodies")] == 2
        assert found[key("angelhair_store_operations_total", operation="change", table="sequences")] >= 2

    asyncio.run(main())


def test_puts_that_come_together_share_a_group() -> None:
    async def main() -> None:
        async with serving(queues={"jobs": QueueSettings()}) as served:
            await asyncio.gather(*(served.client.put("/queues/jobs/message", content=b"x") for _ in range(40)))
            found = await served.metrics()
        assert found[key("angelhair_group_messages_sum", verb="put")] == 40
        assert found[key("angelhair_messages_put_total", queue="jobs")] == 40

    asyncio.run(main())


def test_depth_is_told_by_whoever_holds_the_lease_and_not_asked_for_by_a_scrape() -> None:
    async def main() -> None:
        async with serving(queues={"jobs": QueueSettings()}) as served:
            for _ in range(3):
                await served.client.put("/queues/jobs/message", content=b"x")
            await served.client.get("/queues/jobs/messages/1")
            before = await served.metrics()
            assert not [name for name, _ in before if name.startswith("angelhair_queue_")]
            reads = sum(value for (name, labels), value in before.items() if name == "angelhair_store_operations_total")
            after = await served.metrics()
            assert reads == sum(
                value for (name, labels), value in after.items() if name == "angelhair_store_operations_total")

            served.workers.start(["jobs"])
            await served.engine.step("me", "jobs")
            assert served.observing._depths is not None
            await served.observing._depths.step()
            found = await served.metrics()
            assert found[key("angelhair_queue_depth", queue="jobs", state="visible")] == 2
            assert found[key("angelhair_queue_depth", queue="jobs", state="in_flight")] == 1
            assert found[key("angelhair_queue_depth", queue="jobs", state="delayed")] == 0
            assert found[key("angelhair_queue_depth", queue="jobs", state="dead")] == 0
            assert found[key("angelhair_queue_depth_exact", queue="jobs")] == 1
            assert 0 <= found[key("angelhair_queue_oldest_seconds", queue="jobs")] < PATIENCE_SECONDS
            assert found[key("angelhair_leases_held")] == 1
            assert found[key("angelhair_lease_changes_total", change="taken")] == 1
            assert found[key("angelhair_background_steps_total")] >= 0
            assert abs(found[key("angelhair_clock_skew_seconds")]) < 1

    asyncio.run(main())


def test_the_process_and_its_connections_are_there() -> None:
    async def main() -> None:
        async with serving() as served:
            found = await served.metrics()
        assert found[key("angelhair_http_connections")] == 1
        assert found[key("process_resident_memory_bytes")] > 0
        assert [labels for name, labels in found if name == "angelhair_release_info"]

    asyncio.run(main())


@pytest.mark.parametrize("accept", ["", "text/plain", "text/plain;version=0.0.4", "*/*", "text/html", "garbage;;q=,"])
def test_the_plain_format_is_the_default(accept: str) -> None:
    async def main() -> None:
        async with serving() as served:
            answer = await served.client.get("/metrics", headers={"accept": accept})
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert samples(answer.text)

    asyncio.run(main())


def test_openmetrics_when_it_is_asked_for() -> None:
    async def main() -> None:
        async with serving(queues={"jobs": QueueSettings()}) as served:
            await served.client.put("/queues/jobs/message", content=b"x")
            wanted = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
            answer = await served.client.get("/metrics", headers={"accept": wanted})
        assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
        assert answer.text.endswith("# EOF\n")
        families = {family.name: family for family in parse_openmetrics(answer.text)}
        assert families["angelhair_messages_put"].samples[0].labels == {"queue": "jobs"}

    asyncio.run(main())


def test_another_verb_is_refused_and_head_is_not() -> None:
    async def main() -> None:
        async with serving() as served:
            refused = await served.client.post("/metrics")
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
            assert refused.json()["code"] == "method_not_allowed"
            assert (await served.client.head("/metrics")).status_code == 200

    asyncio.run(main())


def test_any_process_answers_for_all_of_them() -> None:
    async def main() -> None:
        # A socket's path must be short, and pytest's own directories are not.
        with tempfile.TemporaryDirectory() as directory:
            settings = Settings(workers=3)
            queues = {"jobs": QueueSettings()}
            async with (
                serving(settings, queues=queues, worker=0, directory=directory) as first,
                serving(settings, queues=queues, worker=1, directory=directory) as second,
            ):
                await first.client.put("/queues/jobs/message", content=b"x")
                for _ in range(2):
                    await second.client.put("/queues/jobs/message", content=b"x")
                # The third process is not up yet; nobody waits for it.
                for served in (first, second):
                    answer = await served.client.get("/metrics")
                    found = samples(answer.text)
                    assert found[key("angelhair_messages_put_total", queue="jobs", worker="0")] == 1
                    assert found[key("angelhair_messages_put_total", queue="jobs", worker="1")] == 2
                    assert key("process_resident_memory_bytes", worker="0") in found
                    assert key("process_resident_memory_bytes", worker="1") in found
                    assert answer.text.count("# TYPE angelhair_messages_put_total counter") == 1
            assert not list(Path(directory).iterdir())

    asyncio.run(main())


def test_more_queues_than_are_counted_apart_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRICS_QUEUES", 2)

    async def main() -> None:
        names = ["one", "two", "three", "other"]
        async with serving(queues={name: QueueSettings() for name in names}) as served:
            for name in names:
                await served.client.put(f"/queues/{name}/message", content=b"x")
            found = await served.metrics()
            assert found[key("angelhair_messages_put_total", queue="one")] == 1
            assert found[key("angelhair_messages_put_total", queue="(other)")] == 2
            assert key("angelhair_messages_put_total", queue="other") not in found
            served.observing.observer.forget_queue("one")
            await served.client.put("/queues/three/message", content=b"x")
            found = await served.metrics()
            assert key("angelhair_messages_put_total", queue="one") not in found
            assert found[key("angelhair_messages_put_total", queue="three")] == 1

    asyncio.run(main())
