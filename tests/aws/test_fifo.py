"""FIFO queues through boto3: order, blocked groups, de-duplication, sequence numbers, late deletes, dead letters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.aws.queues import AwsQueue
from tests.aws.test_queues import code_of, policy, text_of
from tests.wire.server import RunningServer

Make = Callable[..., AwsQueue]


@pytest.fixture
def make_fifo(sqs: Any, name: str) -> Iterator[Make]:
    made: list[AwsQueue] = []

    def making(**attributes: object) -> AwsQueue:
        wanted = {"FifoQueue": "true", **{key: str(value) for key, value in attributes.items()}}
        url = sqs.create_queue(QueueName=f"{name}-{len(made)}.fifo", Attributes=wanted)["QueueUrl"]
        made.append(AwsQueue(sqs, url))
        return made[-1]

    yield making
    for queue in made:
        queue.delete()


def send(queue: AwsQueue, body: str, group: str = "g", key: str | None = None) -> dict[str, Any]:
    return queue.send(body, MessageGroupId=group, MessageDeduplicationId=key or body)


def test_what_a_fifo_queue_says_of_itself(make_fifo: Make) -> None:
    plain = make_fifo().attributes()
    assert {name: plain[name] for name in ("FifoQueue", "ContentBasedDeduplication")} == {
        "FifoQueue": "true", "ContentBasedDeduplication": "false",
    }
    assert (plain["DeduplicationScope"], plain["FifoThroughputLimit"]) == ("queue", "perQueue")
    fast = make_fifo(DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId").attributes()
    assert (fast["DeduplicationScope"], fast["FifoThroughputLimit"]) == ("messageGroup", "perMessageGroupId")


def test_throughput_and_scope_go_together(make_fifo: Make) -> None:
    queue = make_fifo()
    with pytest.raises(ClientError) as caught:
        queue.set(FifoThroughputLimit="perMessageGroupId")
    assert code_of(caught) == "InvalidAttributeValue"
    queue.set(DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    with pytest.raises(ClientError):
        queue.set(DeduplicationScope="queue")


def test_messages_of_a_group_come_in_order_and_one_group_first(make_fifo: Make) -> None:
    queue = make_fifo()
    for number in range(4):
        send(queue, f"a{number}", "a")
        send(queue, f"b{number}", "b")
    assert queue.bodies(most=3) == ["a0", "a1", "a2"]
    # The rest of the group waits for those in flight; another group does not.
    assert queue.bodies(most=10) == ["b0", "b1", "b2", "b3"]
    assert queue.receive() == []


def test_a_group_goes_on_when_what_is_in_flight_is_deleted(make_fifo: Make) -> None:
    queue = make_fifo()
    for body in ("first", "second"):
        send(queue, body)
    (first,) = queue.receive(most=1)
    assert queue.receive() == []
    queue.ack(first)
    assert queue.bodies(WaitTimeSeconds=20) == ["second"]


def test_after_its_time_out_it_comes_again_before_the_next(make_fifo: Make) -> None:
    queue = make_fifo(VisibilityTimeout=1)
    for body in ("first", "second"):
        send(queue, body)
    assert queue.bodies(most=1) == ["first"]
    assert queue.bodies(most=10, WaitTimeSeconds=20) == ["first", "second"]


def test_released_it_comes_again_before_the_next(make_fifo: Make) -> None:
    queue = make_fifo()
    for body in ("first", "second", "third"):
        send(queue, body)
    first, second = queue.receive(most=2)
    queue.hide(first, 0)
    assert queue.bodies(most=10, WaitTimeSeconds=5) == ["first"], "the second is still in flight"
    queue.hide(second, 0)
    assert queue.receive() == []


def test_the_same_key_is_one_message_also_after_it_was_deleted(make_fifo: Make) -> None:
    queue = make_fifo()
    first = send(queue, "body", key="k")
    again = send(queue, "another body", group="other", key="k")
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    (message,) = queue.receive()
    assert (message["Body"], message["MessageId"]) == ("body", first["MessageId"])
    queue.ack(message)
    assert send(queue, "body", key="k")["MessageId"] == first["MessageId"]
    assert queue.receive() == []
    assert send(queue, "body", key="other")["MessageId"] != first["MessageId"]


def test_a_key_in_its_group(make_fifo: Make) -> None:
    queue = make_fifo(DeduplicationScope="messageGroup")
    send(queue, "a", "a", "k")
    send(queue, "b", "b", "k")
    send(queue, "a once more", "a", "k")
    assert sorted(queue.bodies()) == ["a", "b"]


def test_de_duplication_by_content(sqs: Any, make_fifo: Make) -> None:
    plain, queue = make_fifo(), make_fifo(ContentBasedDeduplication="true")
    with pytest.raises(ClientError) as caught:
        plain.send("body", MessageGroupId="g")
    assert "ContentBasedDeduplication" in text_of(caught)
    answer = sqs.send_message_batch(
        QueueUrl=plain.url, Entries=[{"Id": "e", "MessageBody": "body", "MessageGroupId": "g"}]
    )
    assert [each["Code"] for each in answer["Failed"]] == ["InvalidParameterValue"]
    first = queue.send("body", MessageGroupId="g")
    assert queue.send("body", MessageGroupId="h")["MessageId"] == first["MessageId"]
    queue.send("body", MessageGroupId="g", MessageDeduplicationId="its-own")
    messages = queue.receive(MessageSystemAttributeNames=["MessageDeduplicationId"])
    assert [message["Attributes"]["MessageDeduplicationId"] for message in messages] == [
        sha256(b"body").hexdigest(), "its-own",
    ]


def test_sequence_numbers_only_grow(sqs: Any, make_fifo: Make) -> None:
    queue = make_fifo()
    entries = [
        {"Id": str(number), "MessageBody": str(number), "MessageGroupId": "g", "MessageDeduplicationId": str(number)}
        for number in range(5)
    ]
    answer = sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    sent = [each["SequenceNumber"] for each in answer["Successful"]]
    sent.append(send(queue, "last")["SequenceNumber"])
    assert sent == sorted(sent)
    assert len(set(sent)) == 6
    assert {len(number) for number in sent} == {20}
    received = queue.receive(MessageSystemAttributeNames=["SequenceNumber", "MessageGroupId"])
    assert [message["Attributes"]["SequenceNumber"] for message in received] == sent
    assert {message["Attributes"]["MessageGroupId"] for message in received} == {"g"}


def test_a_delete_that_comes_late_is_told_so(make_fifo: Make) -> None:
    queue = make_fifo()
    send(queue, "body")
    (late,) = queue.receive(VisibilityTimeout=0)
    with pytest.raises(ClientError) as caught:
        queue.ack(late)
    assert code_of(caught) == "InvalidParameterValue"
    assert text_of(caught).endswith("Reason: The receipt handle has expired.")
    (again,) = queue.receive()
    with pytest.raises(ClientError):
        queue.ack(late)
    queue.ack(again)
    queue.ack(again)


def test_an_attempt_that_is_repeated_gets_the_same_messages(make_fifo: Make) -> None:
    queue = make_fifo()
    for body in ("first", "second"):
        send(queue, body)
    first = queue.receive(ReceiveRequestAttemptId="try")
    again = queue.receive(ReceiveRequestAttemptId="try")
    assert [message["Body"] for message in first] == ["first", "second"]
    assert [(each["Body"], each["ReceiptHandle"][:48]) for each in again] == [
        (each["Body"], each["ReceiptHandle"][:48]) for each in first
    ]
    assert queue.receive(ReceiveRequestAttemptId="another") == []
    for message in again:
        queue.ack(message)


def test_a_delay_of_the_queue_keeps_the_order(make_fifo: Make) -> None:
    queue = make_fifo(DelaySeconds=1)
    for body in ("first", "second"):
        send(queue, body)
    assert queue.receive() == []
    assert queue.bodies(WaitTimeSeconds=20)[:1] == ["first"]
    with pytest.raises(ClientError):
        queue.send("third", MessageGroupId="g", MessageDeduplicationId="3", DelaySeconds=5)


def test_made_again_under_its_name_it_gives_other_ids(sqs: Any, name: str) -> None:
    """Consumers go by ids: what was seen in the queue's last life must not look like what is new in this one."""
    ids = []
    for _ in range(2):
        url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
        queue = AwsQueue(sqs, url)
        told = [send(queue, "x")["MessageId"], send(queue, "x")["MessageId"]]
        (message,) = queue.receive()
        assert told == [message["MessageId"]] * 2
        ids.append(message["MessageId"])
        queue.delete()
    assert ids[0] != ids[1]


def test_dead_letters_keep_their_order_and_their_ids(make_fifo: Make) -> None:
    dead = make_fifo()
    queue = make_fifo(RedrivePolicy=policy(dead, 1), VisibilityTimeout=0)
    sent = [send(queue, body)["MessageId"] for body in ("first", "second")]
    deadline = time.monotonic() + 60
    while dead.attributes()["ApproximateNumberOfMessages"] != "2":
        queue.receive()
        assert time.monotonic() < deadline, "they do not die"
        time.sleep(0.05)
    letters = dead.receive(MessageSystemAttributeNames=["DeadLetterQueueSourceArn"])
    assert [letter["MessageId"] for letter in letters] == sent
    assert {letter["Attributes"]["DeadLetterQueueSourceArn"] for letter in letters} == {queue.arn}


def test_rest_shows_it_and_says_what_it_cannot_do(make_fifo: Make, server: RunningServer) -> None:
    queue = make_fifo(DeduplicationScope="messageGroup")
    send(queue, "body")
    with httpx.Client(base_url=f"{server.url}/queues/", timeout=60) as rest:
        shown = rest.get(queue.name).json()
        assert (shown["kind"], shown["settings"]["dedup_scope"], shown["settings"]["lanes"]) == ("fifo", "group", 4)
        assert "lanes" in shown["fixed"] and "lanes" not in shown["changeable"]
        assert rest.patch(queue.name, json={"lanes": 5}).status_code == 400
        refused = rest.put(f"{queue.name}/message", content=b"no group")
        assert (refused.status_code, refused.json()["field"]) == (400, "group")
        plain = {"dead_letter_queue": queue.name, "max_deliveries": 1}
        (warning,) = rest.put(f"{queue.name}-plain", json=plain).json()["warnings"]
        assert "of the kind fifo: nothing is moved there" in warning
        (message,) = rest.get(f"{queue.name}/messages/10").json()["messages"]
        assert message["body"] == "body"
        assert rest.delete(f"{queue.name}/message/{message['receipt']}").status_code == 204
        assert rest.delete(f"{queue.name}-plain").status_code == 204
    assert queue.receive() == []


def test_at_the_limit_of_what_is_in_flight_nothing_comes_and_nothing_is_said(make_fifo: Make) -> None:
    queue = make_fifo(**{"Angelhair.InFlightLimit": 2})
    for body in ("a", "b", "c"):
        send(queue, body, group=body)
    found = queue.receive()
    assert [message["Body"] for message in found] == ["a", "b"]
    assert queue.receive() == []
    queue.ack(found[0])
    assert queue.bodies(WaitTimeSeconds=20) == ["c"]
