"""OpenTelemetry: spans arrive at a collector that speaks OTLP, and only if one is configured."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_service

from angelhair.errors import InvalidRequest
from angelhair.model import QueueSettings
from angelhair.server.http import HttpServer, Request, Response
from angelhair.server.observing.sending import Sending
from angelhair.server.observing.traces import traces_url
from angelhair.settings import Settings
from tests.wire.http.echo import serving as serving_http
from tests.wire.observing.world import serving

ROOT = Path(__file__).resolve().parents[3]


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[str, list[Any]]]:
    """What an OTLP collector does with traces: takes them, and says so."""
    spans: list[Any] = []

    async def take(request: Request) -> Response:
        assert (request.method, request.path) == ("POST", "/v1/traces")
        assert request.headers["content-type"] == "application/x-protobuf"
        batch = trace_service.ExportTraceServiceRequest.FromString(request.body)
        for resource in batch.resource_spans:
            names = {one.key: one.value.string_value for one in resource.resource.attributes}
            spans.extend((names["service.name"], span) for scope in resource.scope_spans for span in scope.spans)
        return Response(200, trace_service.ExportTraceServiceResponse().SerializeToString(), "application/x-protobuf")

    async with serving_http(take) as (server, port):
        assert isinstance(server, HttpServer)
        yield f"http://127.0.0.1:{port}", spans


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_one_span_per_request_within_the_callers_trace() -> None:
    async def main() -> None:
        async with collector() as (endpoint, spans):
            settings = Settings(otlp_endpoint=endpoint, application_name="kitchen")
            async with serving(settings, queues={"jobs": QueueSettings()}) as served:
                parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                headers = {"traceparent": parent, "x-request-id": "abc-1"}
                await served.client.put("/queues/jobs/message", content=b"x", headers=headers)
                receipt = (await served.client.get("/queues/jobs/messages/1")).json()[0]["receipt"]
                await served.client.delete(f"/queues/jobs/message/{receipt}")
                await served.client.put("/broken")
            assert {name for name, _ in spans} == {"kitchen"}
            put, get, delete, broken = [span for _, span in spans]
        assert put.name == "PUT /queues/{queue}/message"
        assert put.kind == 2, "a server's span"
        assert put.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
        assert put.parent_span_id.hex() == "b7ad6b7169203331"
        said = attributes(put)
        assert said["http.route"] == "/queues/{queue}/message"
        assert said["http.response.status_code"] == 201
        assert said["messaging.destination.name"] == "jobs"
        assert said["angelhair.request_id"] == "abc-1"
        assert get.trace_id != put.trace_id
        assert not get.parent_span_id
        assert delete.name == "DELETE /queues/{queue}/message/{receipt}"
        assert receipt not in str(delete)
        assert put.status.code == 0
        assert (broken.status.code, attributes(broken)["http.response.status_code"]) == (2, 500)

    asyncio.run(main())


def test_a_collector_that_is_away_disturbs_nobody() -> None:
    async def main() -> None:
        async with collector() as (endpoint, _):
            pass
        async with serving(Settings(otlp_endpoint=endpoint), queues={"jobs": QueueSettings()}) as served:
            for _ in range(20):
                assert (await served.client.put("/queues/jobs/message", content=b"x")).status_code == 201

    asyncio.run(main())


def test_what_sending_says_is_said_once_and_again_after_spans_went_through(caplog: pytest.LogCaptureFixture) -> None:
    exporters = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    answers = iter((400, 400, 400, 200, 400, 400))

    async def take(_request: Request) -> Response:
        return Response(next(answers), b"", "application/x-protobuf")

    async def main() -> list[int]:
        async with serving_http(take) as (_, port):
            sending = Sending(f"http://127.0.0.1:{port}/v1/traces", 5.0)
            said = []
            for _ in range(6):
                await asyncio.to_thread(sending.export, [])
                said.append(len(caplog.records))
            exporters.warning("of another exporter")
            exporters.warning("of another exporter")
            sending.shutdown()
        return said

    assert asyncio.run(main()) == [1, 1, 1, 1, 2, 2]
    assert [record.getMessage() for record in caplog.records[2:]] == ["of another exporter"] * 2
    assert exporters.filters == []


def test_a_traceparent_that_is_none_is_passed_over() -> None:
    async def main() -> None:
        async with collector() as (endpoint, spans):
            async with serving(Settings(otlp_endpoint=endpoint)) as served:
                for value in ("", "garbage", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "ff-1-2-3"):
                    answer = await served.client.get("/health/live", headers={"traceparent": value})
                    assert answer.status_code == 200
            assert [span.parent_span_id for _, span in spans] == [b""] * 4

    asyncio.run(main())


def test_without_the_packages_the_setting_is_an_error_that_says_what_to_install() -> None:
    program = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from angelhair.server.observing.traces import TelemetryMissing, Traces\n"
        "try:\n"
        "    Traces('http://127.0.0.1:4318', 'kitchen')\n"
        "except TelemetryMissing as error:\n"
        "    print(error)\n"
    )
    ran = run(program)
    assert "http://127.0.0.1:4318" in ran.stdout
    # The tests run in a clone.
    assert "; run `make setup`" in ran.stdout


def test_without_an_endpoint_no_package_is_touched() -> None:
    program = (
        "import sys\n"
        "import angelhair.server.observing.operations\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    ran = run(program)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("https://collector.example/", "https://collector.example/v1/traces"),
        ("http://127.0.0.1:4318/otlp/v1/traces", "http://127.0.0.1:4318/otlp/v1/traces"),
    ],
)
def test_endpoints(endpoint: str, url: str) -> None:
    assert traces_url(endpoint) == url


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "grpc://collector:4317", "http://"])
def test_endpoints_that_are_none(endpoint: str) -> None:
    with pytest.raises(InvalidRequest, match="otlp_endpoint"):
        traces_url(endpoint)
