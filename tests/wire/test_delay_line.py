"""A10 over HTTP: what waits in the delay line outlives its server, and comes with the id that was given."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from angelhair import limits
from angelhair.settings import ACCOUNT
from tests.wire.server import PATIENCE_SECONDS, RunningServer, running_server

BOUND_MS = 500
DELAY_SECONDS = 3
WAIT_SECONDS = 20


@pytest.fixture(autouse=True)
def small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of an hour is long for a test."""
    monkeypatch.setattr(limits, "DELAY_LINE_MS", BOUND_MS)


def sqs(client: httpx.Client, server: RunningServer, action: str, **request: Any) -> dict[str, Any]:
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
    body = {"QueueUrl": f"{server.url}/{ACCOUNT}/orders", **request}
    answer = client.post("/", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a10_a_message_outlives_the_server_that_took_it(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.put("/queues/orders").status_code == 201
        put = client.put(f"/queues/orders/message?delay={DELAY_SECONDS}", content="by REST")
        sent = sqs(client, server, "SendMessage", MessageBody="by SQS", DelaySeconds=DELAY_SECONDS)
        assert client.get("/queues/orders/messages/10").json() == {"messages": []}
        counted = client.get("/queues/orders").json()["statistics"]
        assert (counted["delayed"], counted["visible"]) == (2, 0)
        assert client.get("/queues").json()["queues"] == ["orders"]
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        got: list[dict[str, Any]] = []
        for _ in range(2):
            asked = {"MaxNumberOfMessages": 10, "WaitTimeSeconds": WAIT_SECONDS, "VisibilityTimeout": 1}
            got += sqs(client, server, "ReceiveMessage", **asked).get("Messages", [])
            if {message["Body"] for message in got} == {"by REST", "by SQS"}:
                break
        ids = {message["Body"]: message["MessageId"] for message in got}
        assert ids["by SQS"] == sent["MessageId"]
        received: dict[str, Any] = {}
        while "by REST" not in received:
            found = client.get(f"/queues/orders/messages/10?wait={WAIT_SECONDS}&visibility=1").json()["messages"]
            assert found, "it does not come again"
            received.update((message["body"], message["id"]) for message in found)
        assert received["by REST"] == put.json()["id"]


def test_a10_the_background_hands_over_while_nobody_asks(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        client.put("/queues/orders")
        client.put("/queues/orders/message?delay=1", content="-")
        end = time.monotonic() + PATIENCE_SECONDS
        while client.get("/queues/orders").json()["statistics"]["visible"] != 1:
            assert time.monotonic() < end, "the background does not hand it over"
            server.step("orders")
