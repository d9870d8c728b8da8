"""Tries of an endpoint are those that were made: what the store cost of them is not the endpoint's."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from angelhair import limits
from angelhair.engine.schema import SUBSCRIPTIONS
from angelhair.server.sns.deliveries.courier import Courier
from angelhair.settings import ACCOUNT
from tests.aws.listener import listening
from tests.aws.queues import client_of
from tests.aws.test_endpoints import AT_ONCE, subscribe
from tests.aws.topics import AwsTopic
from tests.faults import UNAVAILABLE
from tests.wire.server import running_server


def test_a_store_that_is_away_takes_no_tries_from_an_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OUTBOX_VISIBILITY_MS", 200)
    with listening() as endpoint, running_server(tmp_path) as server:
        sns = client_of(server, "sns")
        topic = AwsTopic(sns, sns.create_topic(Name=f"topic-{uuid4().hex}")["TopicArn"])
        subscribe(topic, endpoint, DeliveryPolicy=AT_ONCE)
        desk = server.sns.desk
        server.run(desk.courier.stop())
        topic.publish("patient")
        server.until(lambda: server.service.topics.spread_total > 0)
        away = server.store.next("read", SUBSCRIPTIONS, UNAVAILABLE, times=4)
        endpoint.answer(500, 500)

        async def another_server() -> None:
            desk.courier = Courier(server.service, desk.envelopes, desk.places)
            desk.courier.start(ACCOUNT)

        server.run(another_server())
        assert [endpoint.next().message["Message"] for _ in range(3)] == ["patient"] * 3
        assert away.happened == 4
