"""Messages: sent, received, hidden, extended, deleted, one by one and in batches."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from hashlib import md5
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from angelhair.engine.schema import BODIES, SEQUENCES, STATES
from angelhair.settings import ACCOUNT
from tests.aws.queues import AwsQueue
from tests.aws.test_queues import code_of, policy, text_of
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.wire.server import RunningServer

Make = Callable[..., AwsQueue]

ATTRIBUTES = {
    "kind": {"DataType": "String", "StringValue": "grüße"},
    "count": {"DataType": "Number.int", "StringValue": "12"},
    "shop.raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    "shop.note": {"DataType": "String", "StringValue": "n"},
}


# --- sent and received ------------------------------------------------------------------------------------------------


def test_what_is_sent_arrives_with_its_id_and_its_checksums(make: Make) -> None:
    """boto3 itself compares the checksums, and raises when one differs."""
    queue = make()
    body = "ein Wort: 試験 \t\r\n🎉"
    sent = queue.send(body, MessageAttributes=ATTRIBUTES)
    assert sent["MD5OfMessageBody"] == md5(body.encode()).hexdigest()
    (message,) = queue.receive(MessageAttributeNames=["All"])
    assert message["Body"] == body
    assert message["MessageId"] == sent["MessageId"] == str(uuid.UUID(sent["MessageId"]))
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ([], set()),
        (["kind"], {"kind"}),
        (["unknown"], set()),
        (["shop.*"], {"shop.raw", "shop.note"}),
        (["shop.*", "count"], {"shop.raw", "shop.note", "count"}),
        ([".*"], set(ATTRIBUTES)),
        (["All"], set(ATTRIBUTES)),
    ],
)
def test_only_the_attributes_that_were_asked_for(make: Make, asked: list[str], given: set[str]) -> None:
    queue = make()
    queue.send(MessageAttributes=ATTRIBUTES)
    (message,) = queue.receive(MessageAttributeNames=asked)
    assert set(message.get("MessageAttributes", {})) == given
    assert ("MD5OfMessageAttributes" in message) is bool(given)


@pytest.mark.parametrize("member", ["MessageSystemAttributeNames", "AttributeNames"])
def test_what_the_system_knows_of_a_message(make: Make, member: str) -> None:
    queue = make(VisibilityTimeout=0)
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}}
    before = int(time.time() * 1000)
    queue.send(MessageSystemAttributes=trace, MessageGroupId="tenant")
    (first,) = queue.receive(**{member: ["All"]})
    (second,) = queue.receive(**{member: ["ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"]})
    said = first["Attributes"]
    assert before <= int(said["SentTimestamp"]) <= int(said["ApproximateFirstReceiveTimestamp"]) <= time.time() * 1000
    assert (said["SenderId"], said["MessageGroupId"]) == ("000000000000", "tenant")
    assert (said["ApproximateReceiveCount"], said["AWSTraceHeader"]) == ("1", trace["AWSTraceHeader"]["StringValue"])
    assert "DeadLetterQueueSourceArn" not in said
    assert second["Attributes"] == {
        "ApproximateReceiveCount": "2",
        "ApproximateFirstReceiveTimestamp": said["ApproximateFirstReceiveTimestamp"],
    }
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    assert second["MessageId"] == first["MessageId"]


def test_ten_at_most_and_one_by_default(sqs: Any, make: Make) -> None:
    queue = make()
    for number in range(12):
        queue.send(str(number))
    assert len(sqs.receive_message(QueueUrl=queue.url)["Messages"]) == 1
    assert len(queue.receive(most=10)) == 10
    assert len(queue.receive(most=10)) == 1
    assert "Messages" not in sqs.receive_message(QueueUrl=queue.url)


def test_a_message_above_the_queues_limit(sqs: Any, make: Make) -> None:
    queue = make(MaximumMessageSize=1024)
    queue.send("x" * 1024)
    with pytest.raises(ClientError) as caught:
        queue.send("x" * 1020, MessageAttributes={"kind": {"DataType": "String", "StringValue": "y"}})
    assert code_of(caught) == "InvalidParameterValue"
    assert text_of(caught) == (
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
    )
    entries = [{"Id": "short", "MessageBody": "s"}, {"Id": "long", "MessageBody": "l" * 1025}]
    answer = sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    assert [each["Id"] for each in answer["Successful"]] == ["short"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["Code"], failed["SenderFault"]) == ("long", "InvalidParameterValue", True)
    assert sorted(map(len, queue.bodies())) == [1, 1024]


def test_a_megabyte_with_its_attributes_goes_through(make: Make) -> None:
    queue = make()
    binary = {"raw": {"DataType": "Binary", "BinaryValue": b"\x01" * 500_000}}
    queue.send("ü" * 260_000, MessageAttributes=binary)
    (message,) = queue.receive(MessageAttributeNames=["raw"])
    assert len(message["Body"]) == 260_000
    assert message["MessageAttributes"] == binary


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_delay_of_the_message_and_of_the_queue(make: Make) -> None:
    queue = make(DelaySeconds=2)
    queue.send("by the queue")
    queue.send("at once", DelaySeconds=0)
    queue.send("later", DelaySeconds=900)
    assert queue.bodies() == ["at once"]
    assert queue.bodies(WaitTimeSeconds=20) == ["by the queue"]
    assert queue.attributes()["ApproximateNumberOfMessagesDelayed"] == "1"


def test_hidden_for_as_long_as_the_receive_says(make: Make) -> None:
    queue = make(VisibilityTimeout=600)
    queue.send()
    assert len(queue.receive(VisibilityTimeout=1)) == 1
    assert queue.receive() == []
    # A waiting receive is woken by what becomes visible again.
    assert len(queue.receive(WaitTimeSeconds=20)) == 1
    assert queue.receive(WaitTimeSeconds=1) == []


def test_extended_and_released(make: Make) -> None:
    queue = make(VisibilityTimeout=1)
    queue.send()
    (message,) = queue.receive()
    queue.hide(message, 600)
    assert queue.receive(WaitTimeSeconds=2) == []
    queue.hide(message, 0)
    assert len(queue.receive(WaitTimeSeconds=20)) == 1


def test_a_change_of_what_is_not_in_flight(sqs: Any, make: Make) -> None:
    queue = make()
    queue.send()
    (first,) = queue.receive(VisibilityTimeout=0)
    with pytest.raises(sqs.exceptions.MessageNotInflight):
        queue.hide(first, 10)
    (second,) = queue.receive()
    with pytest.raises(ClientError) as caught:
        queue.hide(first, 10)
    assert code_of(caught) == "InvalidParameterValue"
    assert text_of(caught).endswith(
        "Reason: Message does not exist or is not available for visibility timeout change."
    )
    queue.ack(second)
    with pytest.raises(ClientError) as caught:
        queue.hide(second, 10)
    assert code_of(caught) == "InvalidParameterValue"


def test_twelve_hours_in_all(sqs: Any, make: Make) -> None:
    queue = make()
    queue.send()
    (message,) = queue.receive(VisibilityTimeout=43_200)
    queue.hide(message, 43_199)
    receipt, received = message["ReceiptHandle"][:48], int(message["ReceiptHandle"][48:], 16)
    an_hour_older = f"{receipt}{received - 3600:x}"
    with pytest.raises(ClientError) as caught:
        sqs.change_message_visibility(QueueUrl=queue.url, ReceiptHandle=an_hour_older, VisibilityTimeout=43_000)
    assert text_of(caught) == (
        "Value 43000 for parameter VisibilityTimeout is invalid. "
        "Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
    )
    sqs.change_message_visibility(QueueUrl=queue.url, ReceiptHandle=an_hour_older, VisibilityTimeout=30_000)


def test_a_long_poll_is_answered_when_something_comes(make: Make, server: RunningServer) -> None:
    queue = make(ReceiveMessageWaitTimeSeconds=20)
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.extend(queue.bodies()))
    waiting.start()
    server.until(lambda: server.service.polling.waiting == 1)
    # The client is busy waiting.
    httpx.put(f"{server.url}/queues/{queue.name}/message", content=b"at last").raise_for_status()
    waiting.join(10)
    assert found == ["at last"]


def test_a_wait_of_nothing_overrides_the_queues(make: Make) -> None:
    queue = make(ReceiveMessageWaitTimeSeconds=20)
    before = time.monotonic()
    assert queue.receive(WaitTimeSeconds=0) == []
    assert time.monotonic() - before < 15


def test_messages_expire_after_the_retention_period(make: Make, server: RunningServer) -> None:
    """SQS's least is a minute, which no test waits for: it is a setting of the engine, where a second will do."""
    queue = make(MessageRetentionPeriod=60, VisibilityTimeout=0)
    queue.send("old")
    assert queue.bodies() == ["old"]
    found = server.run(server.service.engine.find_queue(ACCOUNT, queue.name))
    assert found.settings.retention_ms == 60_000
    server.run(server.service.change_queue(ACCOUNT, queue.name, {"retention_ms": 1_000}))
    deadline = time.monotonic() + 30
    while queue.receive():
        assert time.monotonic() < deadline, "it does not expire"
        time.sleep(0.1)
    assert queue.attributes("MessageRetentionPeriod") == {"MessageRetentionPeriod": "1"}


# --- deleted ----------------------------------------------------------------------------------------------------------


def test_deleted_it_does_not_come_back(make: Make) -> None:
    queue = make()
    queue.send()
    (message,) = queue.receive(VisibilityTimeout=1)
    queue.ack(message)
    queue.ack(message)
    assert queue.receive(WaitTimeSeconds=2) == []


def test_an_old_receipt_is_answered_with_success_and_deletes_nothing(make: Make) -> None:
    queue = make()
    queue.send()
    (old,) = queue.receive(VisibilityTimeout=0)
    (new,) = queue.receive(VisibilityTimeout=0)
    queue.ack(old)
    assert [message["MessageId"] for message in queue.receive(VisibilityTimeout=0)] == [new["MessageId"]]


@pytest.mark.parametrize("receipt", ["x", "x" * 48, "AAAA" * 12 + "ff", "ü" * 48, "x" * 48 + "g", "x" * 70])
def test_a_receipt_that_we_never_gave(sqs: Any, make: Make, receipt: str) -> None:
    queue = make()
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid) as caught:
        sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=receipt)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.change_message_visibility(QueueUrl=queue.url, ReceiptHandle=receipt, VisibilityTimeout=1)


def test_a_receipt_of_another_queue(sqs: Any, make: Make) -> None:
    one, other = make(), make()
    one.send()
    (message,) = one.receive(VisibilityTimeout=0)
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        other.ack(message)
    assert len(one.receive()) == 1


# --- batches ----------------------------------------------------------------------------------------------------------


def test_batches_of_ten_with_one_bad_entry_each(sqs: Any, make: Make) -> None:
    queue = make()
    entries: list[dict[str, Any]] = [{"Id": f"e{number}", "MessageBody": f"b{number}"} for number in range(10)]
    entries[3]["MessageBody"] = "\x00"
    sent = sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    assert [each["Id"] for each in sent["Successful"]] == [f"e{number}" for number in range(10) if number != 3]
    assert [(each["Id"], each["SenderFault"]) for each in sent["Failed"]] == [("e3", True)]
    taken = {message["MessageId"]: message for message in queue.receive()}
    assert {each["MessageId"] for each in sent["Successful"]} == taken.keys()
    handles = [{"Id": str(index), "ReceiptHandle": each["ReceiptHandle"]} for index, each in enumerate(taken.values())]
    hidden = sqs.change_message_visibility_batch(
        QueueUrl=queue.url,
        Entries=[{**each, "VisibilityTimeout": 0} for each in handles[:4]]
        + [{"Id": "bad", "ReceiptHandle": "bad", "VisibilityTimeout": 0}],
    )
    assert [each["Id"] for each in hidden["Successful"]] == ["0", "1", "2", "3"]
    assert [(each["Id"], each["Code"]) for each in hidden["Failed"]] == [("bad", "ReceiptHandleIsInvalid")]
    gone = sqs.delete_message_batch(
        QueueUrl=queue.url, Entries=[*handles[4:], {"Id": "bad", "ReceiptHandle": "bad"}]
    )
    assert [each["Id"] for each in gone["Successful"]] == ["4", "5", "6", "7", "8"]
    assert [(each["Id"], each["Code"]) for each in gone["Failed"]] == [("bad", "ReceiptHandleIsInvalid")]
    assert len(queue.receive(WaitTimeSeconds=5)) == 4
    assert queue.attributes()["ApproximateNumberOfMessages"] == "0"


# --- dead letters -----------------------------------------------------------------------------------------------------


def test_a_poisoned_message_goes_to_the_dead_letters_under_its_id(make: Make) -> None:
    dead = make()
    queue = make(RedrivePolicy=policy(dead, 2), VisibilityTimeout=0)
    sent = queue.send("poison", MessageAttributes=ATTRIBUTES)
    for count in ("1", "2"):
        (message,) = queue.receive(MessageSystemAttributeNames=["ApproximateReceiveCount"])
        assert message["Attributes"]["ApproximateReceiveCount"] == count
    deadline = time.monotonic() + 30
    moved: list[dict[str, Any]] = []
    while not moved and time.monotonic() < deadline:
        assert queue.receive() == []
        moved = dead.receive(
            WaitTimeSeconds=1, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"]
        )
    (letter,) = moved
    assert (letter["Body"], letter["MessageId"]) == ("poison", sent["MessageId"])
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == queue.arn
    assert letter["MessageAttributes"] == ATTRIBUTES


# --- other doors, failing stores --------------------------------------------------------------------------------------


def test_what_came_through_another_door_has_an_id_of_its_own(make: Make, server: RunningServer) -> None:
    queue = make(VisibilityTimeout=0)
    for body in (b"plain", b"\xff\xfe"):
        httpx.put(f"{server.url}/queues/{queue.name}/message", content=body).raise_for_status()
    first = {message["Body"]: message["MessageId"] for message in queue.receive()}
    second = {message["Body"]: message["MessageId"] for message in queue.receive()}
    assert first == second
    assert set(first) == {"plain", "\ufffd\ufffd"}
    assert len({uuid.UUID(identity) for identity in first.values()}) == 2
    queue.send("seen by both", MessageAttributes=ATTRIBUTES)
    (seen,) = [
        message for message in httpx.get(f"{server.url}/queues/{queue.name}/messages/10").json()["messages"]
        if message.get("body") == "seen by both"
    ]
    assert "content_type" not in seen or seen["content_type"] is None


@pytest.mark.parametrize(
    ("verb", "table", "happening", "status"),
    [
        ("change", SEQUENCES, UNAVAILABLE, 503),
        ("write", BODIES, NEVER_SENT, 500),
    ],
)
def test_a_failing_store_is_a_fault_of_the_server(
    make: Make, server: RunningServer, verb: str, table: Any, happening: str, status: int
) -> None:
    queue = make()
    server.store.next(verb, table, happening, times=50)
    with pytest.raises(ClientError) as caught:
        queue.send("perhaps")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    server.store.heal()
    queue.send("surely")
    assert "surely" in queue.bodies()


def test_a_delete_whose_answer_was_lost_is_done_once(make: Make, server: RunningServer) -> None:
    queue = make()
    queue.send()
    (message,) = queue.receive(VisibilityTimeout=1)
    server.store.next("change", STATES, LOSE_ANSWER)
    queue.ack(message)
    assert queue.receive(WaitTimeSeconds=2) == []


def test_the_policy_of_a_queue_that_rest_changed_is_told_anew(make: Make, server: RunningServer) -> None:
    dead, other = make(), make()
    queue = make(RedrivePolicy=policy(dead, 2))
    changes = {"dead_letter_queue": other.name, "max_deliveries": 3}
    httpx.patch(f"{server.url}/queues/{queue.name}", json=changes).raise_for_status()
    said = json.loads(queue.attributes()["RedrivePolicy"])
    assert said == {"deadLetterTargetArn": other.arn, "maxReceiveCount": 3}
