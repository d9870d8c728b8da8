"""Ten thousand hostile requests of each protocol to a whole server: every answer is one that a client can read and none
is a fault, nothing of the insides is shown or logged, memory stays flat, and good requests are served as before."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.wire.attacked import GROWTH_KILOBYTES, Attacked, attacked
from tests.wire.hostile.good import QUEUE
from tests.wire.hostile.good_topics import QUEUE as QUEUE_ARN
from tests.wire.hostile.protocols import PROTOCOLS, hostile
from tests.wire.hostile.talking import send_all
from tests.wire.hostile.values import NUMBERS, TEXTS

WARM_UP, REQUESTS = 2_500, 10_000

LEAST_UNDERSTOOD = 300
"""So many were good enough to be done: all that is refused at the first look would find nothing behind it."""


class Served:
    """The good requests, before and after."""

    def __init__(self, server: Attacked) -> None:
        self._sqs = self._client(server, "sqs")
        self._sqs.create_queue(QueueName="letters")
        self._sqs.create_queue(QueueName="orders", Attributes=QUEUE)
        self._sqs.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})
        with closing(self._client(server, "sns")) as sns:
            topic = sns.create_topic(Name="news")["TopicArn"]
            sns.create_topic(Name="news.fifo", Attributes={"FifoTopic": "true"})
            sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=QUEUE_ARN)

    @staticmethod
    def _client(server: Attacked, service: str) -> Any:
        return boto3.client(
            service, endpoint_url=f"http://127.0.0.1:{server.port}", region_name="eu-west-1", aws_access_key_id="any",
            aws_secret_access_key="any", config=Config(retries={"max_attempts": 0}),
        )

    def check(self) -> None:
        url = self._sqs.create_queue(QueueName="afterwards")["QueueUrl"]
        self._sqs.send_message(QueueUrl=url, MessageBody="as ever")
        (message,) = self._sqs.receive_message(QueueUrl=url)["Messages"]
        assert message["Body"] == "as ever"
        self._sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        self._sqs.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ten_thousand_hostile_requests(protocol: str, tmp_path: Path) -> None:
    with attacked(tmp_path) as server:
        served = Served(server)
        warm = asyncio.run(send_all(server.port, hostile(protocol, WARM_UP, seed=1)))
        before = server.memory_kilobytes
        found = asyncio.run(send_all(server.port, hostile(protocol, REQUESTS, seed=2)))
        growth = server.memory_kilobytes - before
        served.check()
    print(f"{protocol}: {json.dumps(dict(sorted(found.statuses.items())))}, {growth} KiB more")
    complaints = warm.complaints + found.complaints
    assert complaints[:5] == [], f"{len(complaints)} in all"
    assert found.statuses[200] + found.statuses[201] + found.statuses[204] >= LEAST_UNDERSTOOD
    assert growth < GROWTH_KILOBYTES


def test_nothing_asks_to_wait() -> None:
    """A receive that waits for seconds would be no finding, and take all the time."""
    seconds = range(1, 61)
    assert not {*TEXTS} & {str(each) for each in seconds}
    assert not {*NUMBERS} & {*seconds}
