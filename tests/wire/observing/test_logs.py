"""Logs of a real server: every line says which request it is about, and none says what was in it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from angelhair.clock import SystemClock
from angelhair.engine.schema import BODIES, STATES
from angelhair.model import QueueSettings
from angelhair.server.http import Request, Response
from angelhair.server.observing.logs import Logs
from angelhair.server.runtime import AsyncioRuntime
from angelhair.settings import Settings
from angelhair.stores.memory import MemoryStore
from tests.cli.command import COMMAND, environment, without_the_mode
from tests.faults import NEVER_SENT, UNAVAILABLE, FaultyStore
from tests.wire.observing.world import PATIENCE_SECONDS, lines_of, logging_to, quiet, serving

MARK = "SALT-AND-PEPPER-7391"
ACCESS_LOG = Settings(access_log=True)


def store_that_fails() -> FaultyStore:
    return FaultyStore(MemoryStore(lambda: SystemClock().now().wall_ms))


@pytest.mark.parametrize("form", ["json", "text"])
def test_bodies_and_receipts_are_never_logged(form: str) -> None:
    """At the most talkative level, through requests that work, that fail and that break."""
    receipts: list[str] = []

    async def main(logs: Logs) -> None:
        store = store_that_fails()
        async with serving(ACCESS_LOG, store, queues={"jobs": QueueSettings()}, logs=logs) as served:
            client = served.client
            assert (await client.put("/queues/jobs/message", content=MARK)).status_code == 201
            (delivery,) = (await client.get("/queues/jobs/messages/1")).json()
            assert delivery["body"] == MARK
            receipts.append(delivery["receipt"])
            store.next("write", BODIES, UNAVAILABLE, times=100)
            assert (await client.put("/queues/jobs/message", content=MARK)).status_code == 503
            store.heal()
            store.next("change", STATES, NEVER_SENT, times=100)
            assert (await client.delete(f"/queues/jobs/message/{receipts[0]}")).status_code == 409
            store.heal()
            in_json = json.dumps([{"body": MARK}, {"receipts": receipts}])
            for body in (MARK, in_json, base64.b64encode(MARK.encode()).decode(), MARK + "\u00e4\n'\""):
                assert (await client.put(f"/broken/{receipts[0]}", content=body.encode())).status_code == 500

    with logging_to(form) as (logs, stream):
        quiet()
        asyncio.run(main(logs))
    text = stream.getvalue()
    assert text.count("RuntimeError: choked on") == 4, "the errors are there, without what they choked on"
    assert MARK not in text
    assert base64.b64encode(MARK.encode()).decode() not in text
    assert receipts[0] not in text


def test_an_error_that_nobody_foresaw_is_one_line_with_its_request_and_its_stack() -> None:
    async def main(logs: Logs) -> None:
        async with serving(logs=logs) as served:
            answer = await served.client.put("/broken", headers={"x-request-id": "abc-1"})
            assert (answer.status_code, answer.json()["request_id"]) == (500, "abc-1")

    with logging_to() as (logs, stream):
        quiet()
        asyncio.run(main(logs))
    (line,) = [line for line in lines_of(stream) if line["level"] == "ERROR"]
    assert line["request_id"] == "abc-1"
    assert line["application"] == "kitchen"
    assert line["@version"] == "1"
    assert "RuntimeError: choked on" in line["stack_trace"]
    assert "Traceback (most recent call last)" in line["stack_trace"]


def test_access_lines_are_off_unless_asked_for_and_name_the_route() -> None:
    async def main(settings: Settings) -> None:
        async with serving(settings, queues={"jobs": QueueSettings()}) as served:
            await served.client.put("/queues/jobs/message", content=b"12345")

    with logging_to(level="info") as (_, stream):
        quiet()
        asyncio.run(main(Settings()))
    assert [line for line in lines_of(stream) if "route" in line] == []
    with logging_to(level="info") as (_, stream):
        quiet()
        asyncio.run(main(ACCESS_LOG))
    (line,) = [line for line in lines_of(stream) if "route" in line]
    assert (line["message"], line["logger"]) == ("PUT /queues/{queue}/message 201", "angelhair.access")
    assert (line["queue"], line["status"], line["body_bytes"], line["peer"]) == ("jobs", 201, 5, "127.0.0.1")
    assert line["request_id"]
    assert line["milliseconds"] >= 0


def test_a_text_line_has_as_much() -> None:
    async def main() -> None:
        async with serving(ACCESS_LOG, queues={"jobs": QueueSettings()}) as served:
            await served.client.put("/queues/jobs/message", content=b"12345")

    with logging_to("text", level="info") as (_, stream):
        quiet()
        asyncio.run(main())
    (line,) = [line for line in stream.getvalue().splitlines() if "/queues/{queue}/message" in line]
    assert re.search(
        r": PUT /queues/\{queue\}/message 201 queue=jobs milliseconds=[\d.]+ peer=127\.0\.0\.1 body_bytes=5 \[", line
    )


def test_the_command_writes_them_when_told(tmp_path: Path) -> None:
    command = [*COMMAND, "serve", "--port", "0", "--data", str(tmp_path), "--access-log"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), text=True, **pipes) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[2]
        assert httpx.put(f"{url}/queues/jobs", json={}).status_code == 201
        assert httpx.put(f"{url}/queues/jobs/message", content=MARK).status_code == 201
        server.terminate()
        _, written = server.communicate(timeout=PATIENCE_SECONDS)
    lines = [json.loads(line) for line in without_the_mode(written).splitlines()]
    assert [(line["message"], line["queue"]) for line in lines if "route" in line] == [
        ("PUT /queues/{queue} 201", "jobs"), ("PUT /queues/{queue}/message 201", "jobs"),
    ]
    assert MARK not in written


def test_a_task_that_outlives_its_request_does_not_speak_for_it() -> None:
    async def main() -> None:
        ended = asyncio.Event()

        async def later() -> None:
            logging.getLogger("angelhair.tests").info("from the task")
            ended.set()

        async with serving() as served:
            runtime = AsyncioRuntime()

            async def handle(request: Request) -> Response:
                logging.getLogger("angelhair.tests").info("from the request")
                runtime.spawn(later())
                return Response(204)

            request = Request("GET", "/", "", {}, b"", "abc-2", "", False, True)
            await served.observing.handler(handle)(request)
            await ended.wait()

    with logging_to() as (_, stream):
        quiet()
        asyncio.run(main())
    about = {line["message"]: line.get("request_id") for line in lines_of(stream)}
    assert about["from the request"] == "abc-2"
    assert about["from the task"] is None
