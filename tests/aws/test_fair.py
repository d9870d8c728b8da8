"""Fair queues through boto3: with `MessageGroupId` on a standard queue, a tenant that floods it is served after others.

Waiting is counted in messages of the flood that were delivered meanwhile, not in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from angelhair import limits
from angelhair.settings import ACCOUNT
from tests.aws.queues import AwsQueue
from tests.aws.topics import AwsTopic
from tests.wire.server import RunningServer

Make = Callable[..., AwsQueue]

FLOOD = 5_000
QUIET_TENANTS = 8
AHEAD = limits.NOISY_MESSAGES + limits.NOISY_MESSAGES // (limits.RANK_SHARE - 1) + 1
"""Of the flood: what came before it was one, and with that an eighth of the turns."""
SENDERS = 8
"""Batches that may be on their way when the flood is noticed: each counts as soon as it is asked for."""
PATIENCE = 500
"""Messages of the flood after which a quiet one of an unfair queue is waited for no longer."""


@pytest.fixture
def fair(shared_sqs: Any, server: RunningServer, name: str) -> AwsQueue:
    return AwsQueue(shared_sqs, shared_sqs.create_queue(QueueName=name)["QueueUrl"])


@pytest.fixture
def unfair(shared_sqs: Any, server: RunningServer, name: str) -> AwsQueue:
    attributes = {"Angelhair.Fair": "false"}
    return AwsQueue(shared_sqs, shared_sqs.create_queue(QueueName=f"{name}-not", Attributes=attributes)["QueueUrl"])


def flood(queue: AwsQueue, messages: int = FLOOD) -> None:
    entries = [{"Id": str(number), "MessageBody": "flood", "MessageGroupId": "flood"} for number in range(10)]
    # The first alone: who has sent nothing yet cannot be told from the quiet.
    queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    with ThreadPoolExecutor(SENDERS) as pool:
        sent = pool.map(
            lambda _: queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries), range(messages // 10 - 1)
        )
        assert sum(len(answer["Successful"]) for answer in sent) == messages - 10


def waits(queue: AwsQueue, messages: int) -> list[int]:
    """For each message of a quiet tenant, how many of the flood were delivered between its sending and its delivery,
    to a consumer that is far too slow for the flood."""
    found = []
    for number in range(messages):
        queue.send(f"quiet {number}", MessageGroupId=f"tenant-{number % QUIET_TENANTS}")
        passed = 0
        while passed < PATIENCE:
            bodies = queue.bodies(most=1)
            if bodies == [f"quiet {number}"]:
                break
            assert bodies == ["flood"]
            passed += 1
        found.append(passed)
    return found


def test_quiet_tenants_do_not_wait_for_a_flood(fair: AwsQueue, unfair: AwsQueue) -> None:
    flood(fair)
    waited = waits(fair, 24)
    print(f"quiet messages waited for {waited} of {FLOOD} messages of the flood")
    assert waited[0] <= AHEAD + SENDERS * 10
    assert max(waited[1:]) <= 2
    flood(unfair, PATIENCE + 10)
    assert waits(unfair, 1) == [PATIENCE]
    for queue in (fair, unfair):
        queue.delete()


def test_the_group_comes_back_and_messages_of_it_are_given_side_by_side(make: Make) -> None:
    queue = make()
    for number in range(3):
        queue.send(str(number), MessageGroupId="tenant-1")
    # Unlike a FIFO queue, nobody waits for one that is in flight.
    found = [queue.receive(1, MessageSystemAttributeNames=["All"])[0] for _ in range(3)]
    assert [message["Body"] for message in found] == ["0", "1", "2"]
    assert {message["Attributes"]["MessageGroupId"] for message in found} == {"tenant-1"}
    assert all("SequenceNumber" not in message["Attributes"] for message in found)


def test_all_of_a_flood_arrives_and_its_tenant_is_quiet_again(make: Make, server: RunningServer) -> None:
    queue = make()
    for _ in range(8):
        queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=[
            {"Id": str(number), "MessageBody": "flood", "MessageGroupId": "flood"} for number in range(10)
        ])
    queue.send("quiet", MessageGroupId="tenant")
    assert int(queue.attributes()["ApproximateNumberOfMessages"]) == 81
    taken = []
    while found := queue.receive():
        taken += [message["Body"] for message in found]
        for message in found:
            queue.ack(message)
    assert sorted(taken) == ["flood"] * 80 + ["quiet"]
    assert taken.index("quiet") <= AHEAD + 10
    with httpx.Client(base_url=server.url) as rest:
        lanes = {lane["lane"]: lane["next_id"] for lane in rest.get(f"/queues/{queue.name}/pointers").json()["lanes"]}
        assert lanes == {0: 31, 1: 50}
        queue.send("again", MessageGroupId="flood")
        lanes = {lane["lane"]: lane["next_id"] for lane in rest.get(f"/queues/{queue.name}/pointers").json()["lanes"]}
        assert lanes == {0: 32, 1: 50}


def test_a_flood_that_comes_through_a_topic_is_one_too(
    make: Make, make_topic: Callable[..., AwsTopic], server: RunningServer
) -> None:
    queue, topic = make(), make_topic()
    topic.subscribe(queue)
    for batch in range(6):
        topic.sns.publish_batch(TopicArn=topic.arn, PublishBatchRequestEntries=[
            {"Id": str(number), "Message": f"{batch}", "MessageGroupId": "flood"} for number in range(10)
        ])
    server.run(_until_there(server, queue.name, 60))
    queue.send("quiet", MessageGroupId="tenant")
    with httpx.Client(base_url=server.url) as rest:
        lanes = [lane["next_id"] for lane in rest.get(f"/queues/{queue.name}/pointers").json()["lanes"]]
    # As many as are being spread at once may be among the quiet before the first of them counts.
    assert len(lanes) == 2 and lanes[0] >= limits.NOISY_MESSAGES and sum(lanes) >= 61
    (seen, *_) = queue.receive(MessageSystemAttributeNames=["MessageGroupId"])
    assert seen["Attributes"]["MessageGroupId"] == "flood"


async def _until_there(server: RunningServer, name: str, messages: int) -> None:
    while (await server.service.engine.stats(ACCOUNT, name)).visible < messages:
        await asyncio.sleep(0.01)
