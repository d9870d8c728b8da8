"""Envelopes take room: what is confirmed must fit into those of everybody who was subscribed."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from angelhair import limits
from tests.aws.queues import AwsQueue
from tests.aws.topics import AwsTopic, received
from tests.wire.server import RunningServer

Make = Callable[..., AwsTopic]
MakeQueue = Callable[..., AwsQueue]

LONG = {
    "binary": b"\xff" * 3_000_000,
    "control": b"\x01" * 1_500_000,
    "quotes": b'"' * limits.PUBLICATION_BYTES,
}
"""What grows when it becomes a text in JSON, beyond what a message may have."""


@pytest.mark.parametrize("body", LONG.values(), ids=LONG)
def test_what_does_not_fit_into_an_envelope_is_refused_not_confirmed_and_lost(
    server: RunningServer, make_topic: Make, make_queue: MakeQueue, body: bytes
) -> None:
    topic, raw, enveloped = make_topic(), make_queue(), make_queue()
    topic.subscribe(raw, RawMessageDelivery="true")
    subscription = topic.subscribe(enveloped)
    url = f"{server.url}/topics/{topic.name}/message"
    answer = httpx.put(url, content=body, timeout=60)
    if answer.status_code == 201:
        assert received(enveloped), "it was confirmed"
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    topic.sns.unsubscribe(SubscriptionArn=subscription)
    assert httpx.put(url, content=body, timeout=60).status_code == 201
