"""What goes beyond SQS, by attributes that clients pass on as they are: priorities, limits, kinds, looking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from angelhair import limits
from angelhair.settings import ACCOUNT
from tests.aws.queues import AwsQueue
from tests.aws.test_queues import code_of, text_of
from tests.wire.server import RunningServer

Make = Callable[..., AwsQueue]
CENTURY_SECONDS = limits.DURATION_MAXIMUM_MS // 1000


def urgent(priority: object) -> dict[str, Any]:
    return {"MessageAttributes": {"Angelhair.Priority": {"DataType": "Number", "StringValue": str(priority)}}}


# --- priorities -------------------------------------------------------------------------------------------------------


def test_more_urgent_messages_are_received_first(make: Make) -> None:
    queue = make(**{"Angelhair.Priorities": 4})
    for priority in (0, 2, 1, 3):
        queue.send(str(priority), **urgent(priority))
    queue.send("unsaid")
    found = [queue.receive(1, MessageAttributeNames=["All"])[0] for _ in range(5)]
    assert [message["Body"] for message in found] == ["3", "2", "1", "0", "unsaid"]
    assert found[0]["MessageAttributes"]["Angelhair.Priority"]["StringValue"] == "3"


def test_a_batch_of_many_priorities(make: Make) -> None:
    queue = make(**{"Angelhair.Priorities": 10})
    answer = queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=[
        {"Id": str(level), "MessageBody": str(level), **urgent(level)} for level in range(10)
    ])
    assert [sent["Id"] for sent in answer["Successful"]] == [str(level) for level in range(10)]
    assert queue.bodies(most=7) == ["9", "8", "7", "6", "5", "4", "3"]


@pytest.mark.parametrize("wrong", ["10", "-1", "1.0", "one"])
def test_no_such_priority(make: Make, wrong: str) -> None:
    queue = make(**{"Angelhair.Priorities": 4})
    with pytest.raises(ClientError) as caught:
        queue.send("x", **urgent(wrong))
    assert code_of(caught) == "InvalidParameterValue"


def test_a_queue_without_priorities_says_so(make: Make) -> None:
    queue = make()
    with pytest.raises(ClientError) as caught:
        queue.send("x", **urgent(1))
    assert (code_of(caught), text_of(caught)) == (
        "InvalidParameterValue", "The queue has no priorities; 1 is none of them."
    )
    queue.set(**{"Angelhair.Priorities": 2})
    queue.send("low")
    queue.send("high", **urgent(1))
    assert queue.bodies(most=1) == ["high"]


def test_a_dead_letter_that_comes_back_is_as_urgent_as_it_was(make: Make, server: RunningServer) -> None:
    dead = make()
    policy = f'{{"deadLetterTargetArn":"{dead.arn}","maxReceiveCount":"1"}}'
    queue = make(**{"Angelhair.Priorities": 3, "RedrivePolicy": policy, "VisibilityTimeout": 0})
    queue.send("urgent", **urgent(2))
    assert queue.bodies() == ["urgent"]
    assert queue.bodies() == []
    server.step(queue.name)
    queue.set(VisibilityTimeout=30)
    queue.send("new")
    queue.sqs.start_message_move_task(SourceArn=dead.arn)
    server.run(_until_visible(server, queue.name, 2))
    assert queue.bodies(most=1) == ["urgent"]


async def _until_visible(server: RunningServer, name: str, messages: int) -> None:
    while (await server.service.engine.stats(ACCOUNT, name)).visible < messages:
        await asyncio.sleep(0.01)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_delays_of_any_length(make: Make) -> None:
    queue = make(**{"Angelhair.Limits": "wide", "DelaySeconds": CENTURY_SECONDS})
    assert queue.attributes("DelaySeconds") == {"DelaySeconds": str(CENTURY_SECONDS)}
    queue.send("in a century")
    queue.send("in a year", DelaySeconds=365 * 86_400)
    queue.send("now", DelaySeconds=0)
    assert queue.bodies() == ["now"]
    counts = queue.attributes("ApproximateNumberOfMessagesDelayed")
    assert counts == {"ApproximateNumberOfMessagesDelayed": "2"}


def test_retention_of_any_length(make: Make) -> None:
    queue = make(**{"Angelhair.Limits": "wide", "MessageRetentionPeriod": CENTURY_SECONDS})
    assert queue.attributes("MessageRetentionPeriod") == {"MessageRetentionPeriod": str(CENTURY_SECONDS)}


def test_messages_above_a_mebibyte(make: Make) -> None:
    queue = make(**{"Angelhair.Limits": "wide", "MaximumMessageSize": limits.BODY_BYTES})
    body = "x" * (3 * 1024 * 1024)
    queue.send(body)
    answer = queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=[
        {"Id": "large", "MessageBody": body}, {"Id": "small", "MessageBody": "small"},
    ])
    assert [sent["Id"] for sent in answer["Successful"]] == ["large", "small"]
    found = [message for _ in range(3) for message in queue.receive(1)]
    assert sorted(len(message["Body"]) for message in found) == [5, len(body), len(body)]
    with pytest.raises(ClientError) as caught:
        queue.send("x" * (limits.BODY_BYTES + 1))
    assert "Message must be shorter than 8388608 bytes" in text_of(caught)


def test_a_queue_with_the_limits_of_sqs_keeps_to_them(make: Make) -> None:
    queue = make()
    for wrong in ({"MessageBody": "x", "DelaySeconds": 901}, {"MessageBody": "x" * 1_048_577}):
        with pytest.raises(ClientError) as caught:
            queue.sqs.send_message(QueueUrl=queue.url, **wrong)
        assert code_of(caught) == "InvalidParameterValue"
    answer = queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=[
        {"Id": "late", "MessageBody": "x", "DelaySeconds": 901}, {"Id": "good", "MessageBody": "good"},
    ])
    assert [failed["Id"] for failed in answer["Failed"]] == ["late"]
    with pytest.raises(ClientError) as caught:
        queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=[
            {"Id": str(number), "MessageBody": "x" * 600_000} for number in range(2)
        ])
    assert code_of(caught) == "AWS.SimpleQueueService.BatchRequestTooLong"
    for attributes in ({"DelaySeconds": 901}, {"Angelhair.Limits": "sqs", "DelaySeconds": 901},
                       {"MessageRetentionPeriod": 59}, {"MaximumMessageSize": 1_048_577}):
        with pytest.raises(ClientError) as caught:
            queue.set(**attributes)
        assert code_of(caught) == "InvalidAttributeValue"
    assert queue.bodies() == ["good"]


# --- kinds, lanes, and what a queue says of itself --------------------------------------------------------------------


def test_what_sqs_does_not_know_is_said_when_it_was_asked_for(make: Make) -> None:
    plain = make()
    assert not [name for name in plain.attributes() if name.startswith("Angelhair.")]
    asked = ["Angelhair.Kind", "Angelhair.Lanes", "Angelhair.Priorities", "Angelhair.Fair", "Angelhair.Limits"]
    assert plain.attributes(*asked) == dict(zip(asked, ("bucketed", "1", "1", "true", "sqs"), strict=True))
    mine = make(**{"Angelhair.Kind": "bucketed", "Angelhair.Lanes": 2, "Angelhair.Priorities": 3,
                   "Angelhair.Fair": "false", "Angelhair.Limits": "wide"})
    said = {name: value for name, value in mine.attributes().items() if name.startswith("Angelhair.")}
    assert said == {"Angelhair.Lanes": "2", "Angelhair.Priorities": "3", "Angelhair.Fair": "false",
                    "Angelhair.Limits": "wide"}
    same = {"Angelhair.Lanes": "2", "Angelhair.Fair": "False"}
    assert mine.sqs.create_queue(QueueName=mine.name, Attributes=same)["QueueUrl"] == mine.url
    with pytest.raises(ClientError) as caught:
        mine.sqs.create_queue(QueueName=mine.name, Attributes={"Angelhair.Lanes": "1"})
    assert code_of(caught) == "QueueAlreadyExists"


@pytest.mark.parametrize(("attributes", "code", "words"), [
    ({"Angelhair.Kind": "fifo"}, "InvalidAttributeValue", "name ends with .fifo"),
    ({"Angelhair.Kind": "timetable"}, "InvalidAttributeValue", "Must be bucketed or fifo or timeline or databag."),
    ({"Angelhair.Priorities": "11"}, "InvalidAttributeValue", "Must be between 1 and 10."),
    ({"Angelhair.Lanes": "65"}, "InvalidAttributeValue", "Must be between 1 and 64."),
    ({"Angelhair.Fair": "perhaps"}, "InvalidAttributeValue", "Must be true or false."),
    ({"Angelhair.Limits": "none"}, "InvalidAttributeValue", "Must be sqs or wide."),
    ({"Angelhair.InFlightLimit": "-1"}, "InvalidAttributeValue", "Must be between 0 and 1000000000."),
    ({"Angelhair.Colour": "blue"}, "InvalidAttributeName", "Unknown Attribute Angelhair.Colour."),
    ({"DelaySeconds": "901"}, "InvalidAttributeValue", "Invalid value for the parameter DelaySeconds."),
])
def test_what_cannot_be_is_refused(make: Make, attributes: dict[str, str], code: str, words: str) -> None:
    """With what would do; of attributes that Amazon has, in its words."""
    with pytest.raises(ClientError) as caught:
        make(**attributes)
    assert code_of(caught) == code
    assert words in caught.value.response["Error"]["Message"]


def test_a_fifo_queue_has_no_priorities(sqs: Any, name: str) -> None:
    for wrong in ("Angelhair.Priorities", "Angelhair.Lanes"):
        with pytest.raises(ClientError) as caught:
            sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true", wrong: "2"})
        assert code_of(caught) == "InvalidAttributeName"
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true", "Angelhair.Kind": "fifo"})
    queue = AwsQueue(sqs, url["QueueUrl"])
    with pytest.raises(ClientError) as caught:
        queue.send("x", MessageGroupId="g", MessageDeduplicationId="d", **urgent(1))
    assert code_of(caught) == "InvalidParameterValue"
    queue.delete()


def test_the_name_of_a_deleted_queue_rests_if_it_asked_for_that(
    sqs: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        sqs.delete_queue(QueueUrl=sqs.create_queue(QueueName=name)["QueueUrl"])
    url = sqs.create_queue(QueueName=name, Attributes={"Angelhair.NameRests": "true"})["QueueUrl"]
    sqs.delete_queue(QueueUrl=url)
    with pytest.raises(ClientError) as caught:
        sqs.create_queue(QueueName=name)
    assert code_of(caught) == "AWS.SimpleQueueService.QueueDeletedRecently"
    assert "60 seconds" in text_of(caught)
    other = sqs.create_queue(QueueName=f"{name}-other", Attributes={"Angelhair.NameRests": "true"})["QueueUrl"]
    monkeypatch.setattr(limits, "AWS_NAME_REST_SECONDS", 0)
    sqs.delete_queue(QueueUrl=other)
    sqs.delete_queue(QueueUrl=sqs.create_queue(QueueName=f"{name}-other")["QueueUrl"])


# --- looking without receiving ----------------------------------------------------------------------------------------


def test_messages_are_seen_and_stay_where_they_are(make: Make) -> None:
    queue = make()
    sent = queue.send("look", MessageGroupId="g", MessageAttributes={"n": {"DataType": "Number", "StringValue": "5"}})
    queue.send("more")
    for _ in range(2):
        first, second = queue.receive(
            MessageSystemAttributeNames=["All", "Angelhair.Peek"], MessageAttributeNames=["All"]
        )
        assert (first["Body"], second["Body"]) == ("look", "more")
        assert (first["MessageId"], first["MD5OfBody"]) == (sent["MessageId"], sent["MD5OfMessageBody"])
        assert first["Attributes"]["ApproximateReceiveCount"] == "0"
        assert first["Attributes"]["MessageGroupId"] == "g"
        assert first["MessageAttributes"]["n"]["StringValue"] == "5"
        assert not first.get("ReceiptHandle")
    (taken,) = queue.receive(1)
    assert taken["Body"] == "look"
    assert [seen["Body"] for seen in queue.receive(AttributeNames=["Angelhair.Peek"])] == ["more"]


def test_messages_of_a_fifo_queue_are_seen_too(sqs: Any, name: str) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    queue = AwsQueue(sqs, sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"])
    queue.send("first", MessageGroupId="g")
    (seen,) = queue.receive(MessageSystemAttributeNames=["All", "Angelhair.Peek"])
    assert (seen["Body"], seen["Attributes"]["MessageGroupId"]) == ("first", "g")
    assert queue.bodies() == ["first"]
    queue.delete()


# --- in flight --------------------------------------------------------------------------------------------------------


def test_at_the_limit_of_what_is_in_flight_nothing_more_is_received(make: Make) -> None:
    queue = make(**{"Angelhair.InFlightLimit": 5})
    for number in range(8):
        queue.send(str(number))
    found = queue.receive(3) + queue.receive(10)
    assert len(found) == 5
    with pytest.raises(ClientError) as caught:
        queue.receive()
    assert code_of(caught) == "OverLimit"
    assert text_of(caught).startswith("Too many messages have been received without being deleted.")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert len(queue.receive(MessageSystemAttributeNames=["Angelhair.Peek"])) == 3
    for message in found[:2]:
        queue.ack(message)
    assert len(queue.receive(WaitTimeSeconds=20)) == 2


def test_who_waits_is_not_told_of_the_limit_and_finds_nothing(make: Make) -> None:
    queue = make(**{"Angelhair.InFlightLimit": 1})
    queue.send("first")
    queue.send("second")
    assert len(queue.receive()) == 1
    assert queue.receive(WaitTimeSeconds=1) == []


def test_a_limit_of_nought_is_none_and_can_be_set_at_any_time(make: Make) -> None:
    queue = make(**{"Angelhair.InFlightLimit": 1})
    for number in range(4):
        queue.send(str(number))
    assert len(queue.receive()) == 1
    queue.set(**{"Angelhair.InFlightLimit": 2})
    assert len(queue.receive()) == 1
    queue.set(**{"Angelhair.InFlightLimit": 0})
    assert len(queue.receive()) == 2


def test_other_doors_have_no_limit_of_what_is_in_flight(make: Make, server: RunningServer) -> None:
    queue = make(**{"Angelhair.InFlightLimit": 1})
    for number in range(3):
        queue.send(str(number))
    assert len(queue.receive()) == 1
    got = httpx.get(f"{server.url}/queues/{queue.name}/messages/2").json()
    assert len(got["messages"]) == 2


# --- timelines --------------------------------------------------------------------------------------------------------


def test_a_timeline_through_sqs(make: Make, server: RunningServer) -> None:
    queue = make(**{"Angelhair.Kind": "timeline", "VisibilityTimeout": 1})
    attributes = queue.sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=["Angelhair.Kind"])["Attributes"]
    assert attributes == {"Angelhair.Kind": "timeline"}
    server.run(server.service.change_queue(ACCOUNT, queue.name, {"producer_delay_ms": 0}))
    sent = queue.send("now", MessageAttributes={"a": {"DataType": "String", "StringValue": "b"}})
    queue.send("later", DelaySeconds=limits.AWS_DELAY_MAXIMUM_SECONDS)
    (found,) = queue.receive(10, WaitTimeSeconds=20, MessageAttributeNames=["All"], AttributeNames=["All"])
    assert (found["MessageId"], found["Body"]) == (sent["MessageId"], "now")
    assert found["MessageAttributes"]["a"]["StringValue"] == "b"
    handle = found["ReceiptHandle"]
    queue.sqs.change_message_visibility(QueueUrl=queue.url, ReceiptHandle=handle, VisibilityTimeout=0)
    (again,) = queue.receive(10, WaitTimeSeconds=20, AttributeNames=["ApproximateReceiveCount"])
    assert again["Attributes"] == {"ApproximateReceiveCount": "2"}
    queue.sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=again["ReceiptHandle"])
    queue.sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=again["ReceiptHandle"])
    assert queue.receive(10) == []


def test_what_a_timeline_cannot_do_through_sqs_is_said(make: Make) -> None:
    queue = make(**{"Angelhair.Kind": "timeline"})
    with pytest.raises(ClientError) as caught:
        queue.send("x", DelaySeconds=limits.AWS_DELAY_MAXIMUM_SECONDS + 1)
    assert code_of(caught) == "InvalidParameterValue", "its limit stays, unless Angelhair.Limits is wide"
    with pytest.raises(ClientError) as caught:
        queue.send("x", MessageGroupId="g")
    assert "timeline" in text_of(caught)
    for _ in range(2):
        # The second time too: a purge that was refused is none that is in progress.
        with pytest.raises(ClientError) as caught:
            queue.sqs.purge_queue(QueueUrl=queue.url)
        assert (code_of(caught), "timeline" in text_of(caught)) == ("InvalidParameterValue", True)
    wide = make(**{"Angelhair.Kind": "timeline", "Angelhair.Limits": "wide"})
    wide.send("x", DelaySeconds=365 * 86_400)
    with pytest.raises(ClientError) as caught:
        make(**{"Angelhair.Kind": "weekly"})
    assert code_of(caught) == "InvalidAttributeValue"
