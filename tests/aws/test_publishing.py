"""What is published, as boto3 sees it: in envelopes that are signed, raw, by protocol, in batches, in order."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from angelhair.server.sns.envelope import Envelopes
from angelhair.server.sns.signing import Signer
from tests.aws.queues import AwsQueue
from tests.aws.topics import AwsTopic, bodies, notification, received, text
from tests.wire.server import RunningServer

Make = Callable[..., AwsTopic]
MakeQueue = Callable[..., AwsQueue]


def verify(message: dict[str, Any]) -> None:
    """As a receiver does it who has never seen our code: raises `InvalidSignature`."""
    names = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    if message["Type"] == "Notification":
        names = [name for name in names if name not in ("SubscribeURL", "Token")]
    signed = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
    with urllib.request.urlopen(message["SigningCertURL"]) as answer:
        key = x509.load_pem_x509_certificate(answer.read()).public_key()
    assert isinstance(key, RSAPublicKey)
    digest = {"1": hashes.SHA1, "2": hashes.SHA256}[message["SignatureVersion"]]()
    key.verify(base64.b64decode(message["Signature"]), signed.encode(), padding.PKCS1v15(), digest)


def test_what_is_published_arrives_in_an_envelope(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(), make_queue()
    subscription = topic.subscribe(queue)
    binary = {"DataType": "Binary", "BinaryValue": b"\x00\xff"}
    answer = topic.publish('say "hé\nllo"', Subject="Greeting", MessageAttributes={"a": text("b"), "raw": binary})
    found = notification(queue)
    assert list(found)[:3] == ["Type", "MessageId", "TopicArn"]
    assert (found["Type"], found["MessageId"], found["TopicArn"]) == ("Notification", answer["MessageId"], topic.arn)
    assert (found["Message"], found["Subject"]) == ('say "hé\nllo"', "Greeting")
    assert found["MessageAttributes"] == {
        "a": {"Type": "String", "Value": "b"}, "raw": {"Type": "Binary", "Value": "AP8="},
    }
    published = datetime.strptime(found["Timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - published).total_seconds()) < 60
    assert f"Action=Unsubscribe&Version=2010-03-31&SubscriptionArn={urllib.request.quote(subscription, '')}" in (
        found["UnsubscribeURL"]
    )
    assert "SequenceNumber" not in found


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_signature_holds_and_for_nothing_else(make_topic: Make, make_queue: MakeQueue, version: str) -> None:
    topic, queue = make_topic(SignatureVersion=version), make_queue()
    topic.subscribe(queue)
    topic.publish("with a subject", Subject="s")
    topic.publish("without")
    for _ in range(2):
        found = notification(queue)
        assert found["SignatureVersion"] == version
        verify(found)
        for name in ("Message", "MessageId", "Timestamp", "TopicArn"):
            with pytest.raises(InvalidSignature):
                verify({**found, name: f"{found[name]}x"})


def test_raw_it_is_as_it_was_published(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(), make_queue()
    topic.subscribe(queue, RawMessageDelivery="true")
    attributes = {"a": text("b"), "n": text("1.5", "Number.x"), "raw": {"DataType": "Binary", "BinaryValue": b"\x00"}}
    topic.publish("plain", Subject="lost", MessageAttributes=attributes)
    (message,) = received(queue)
    assert message["Body"] == "plain"
    assert message["MessageAttributes"] == attributes


def test_a_body_for_each_protocol(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, raw, enveloped = make_topic(), make_queue(), make_queue()
    topic.subscribe(raw, RawMessageDelivery="true")
    topic.subscribe(enveloped)
    topic.publish(json.dumps({"default": "d", "sqs": "for queues", "http": "h"}), MessageStructure="json")
    topic.publish(json.dumps({"default": "for all", "email": "e"}), MessageStructure="json")
    assert sorted(bodies(raw, 2)) == ["for all", "for queues"]
    assert sorted([notification(enveloped)["Message"], notification(enveloped)["Message"]]) == ["for all", "for queues"]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [({"Message": ""}, "Empty message"), ({"Message": "x", "Subject": ""}, "Subject"),
     ({"Message": "x", "Subject": "x" * 101}, "Subject"), ({"Message": "x", "Subject": "two\nlines"}, "Subject"),
     ({"Message": "x", "MessageStructure": "xml"}, "MessageStructure"),
     ({"Message": "x", "MessageStructure": "json"}, "JSON message body failed to parse"),
     ({"Message": "{}", "MessageStructure": "json"}, "No default entry in JSON message body"),
     ({"Message": "x", "MessageDeduplicationId": "d"}, "not valid for this topic type"),
     ({"Message": "x", "MessageGroupId": "two words"}, "MessageGroupId"),
     ({"Message": "x" * 262_145}, "Message too long"), ({"Message": "bell \x07"}, "Invalid characters")],
)
def test_a_message_that_cannot_be_published(
    sns: Any, make_topic: Make, make_queue: MakeQueue, wanted: dict[str, Any], reason: str
) -> None:
    topic, queue = make_topic(), make_queue()
    topic.subscribe(queue)
    with pytest.raises(sns.exceptions.InvalidParameterException, match=reason):
        sns.publish(TopicArn=topic.arn, **wanted)
    assert queue.receive() == []


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [("a", {"DataType": "Text", "StringValue": "x"}, "supported type prefixes"),
     ("a", {"DataType": "Number", "StringValue": "x"}, "value to number"),
     ("a", {"DataType": "String", "BinaryValue": b"x"}, "must use field 'StringValue'"),
     ("a", {"DataType": "String", "StringValue": ""}, "must contain non-empty message attribute value"),
     ("a b", text("x"), "Invalid non-alphanumeric character '#x20'"), ("x" * 257, text("x"), "less than 256 bytes"),
     (".a", text("x"), "Invalid message attribute name")],
)
def test_an_attribute_that_cannot_be_published(
    sns: Any, make_topic: Make, name: str, value: dict[str, Any], reason: str
) -> None:
    with pytest.raises(sns.exceptions.InvalidParameterValueException, match=reason):
        make_topic().publish(MessageAttributes={name: value})


def test_the_size_that_a_topic_allows(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(MaximumMessageSize="1024"), make_queue()
    topic.subscribe(queue, RawMessageDelivery="true")
    topic.publish("x" * 1024)
    with pytest.raises(sns.exceptions.InvalidParameterException, match="Message too long"):
        topic.publish("x" * 1020, MessageAttributes={"a": text("b")})
    topic.set("MaximumMessageSize", "1048576")
    topic.publish("y" * 1_000_000)
    assert sorted(len(body) for body in bodies(queue, 2)) == [1024, 1_000_000]


def test_batches_of_ten_with_one_bad_entry(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(), make_queue()
    topic.subscribe(queue, RawMessageDelivery="true")
    entries: list[dict[str, Any]] = [{"Id": f"e{n}", "Message": f"m{n}"} for n in range(10)]
    entries[3]["Subject"] = ""
    answer = sns.publish_batch(TopicArn=topic.arn, PublishBatchRequestEntries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == [f"e{n}" for n in range(10) if n != 3]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["Code"], failed["SenderFault"]) == ("e3", "InvalidParameter", True)
    assert len({entry["MessageId"] for entry in answer["Successful"]}) == 9
    assert sorted(bodies(queue, 9)) == [f"m{n}" for n in range(10) if n != 3]
    assert queue.receive() == []


def test_batches_that_are_refused_as_a_whole(sns: Any, make_topic: Make) -> None:
    topic = make_topic()
    errors = sns.exceptions
    for entries, error in [
        ([], errors.EmptyBatchRequestException),
        ([{"Id": str(n), "Message": "x"} for n in range(11)], errors.TooManyEntriesInBatchRequestException),
        ([{"Id": "a", "Message": "x"}] * 2, errors.BatchEntryIdsNotDistinctException),
        ([{"Id": "a b", "Message": "x"}], errors.InvalidBatchEntryIdException),
        ([{"Id": str(n), "Message": "x" * 200_000} for n in range(2)], errors.BatchRequestTooLongException),
    ]:
        with pytest.raises(error):
            sns.publish_batch(TopicArn=topic.arn, PublishBatchRequestEntries=entries)


def test_a_group_is_passed_on_to_standard_queues(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, raw, enveloped = make_topic(), make_queue(), make_queue()
    topic.subscribe(raw, RawMessageDelivery="true")
    topic.subscribe(enveloped)
    topic.publish("x", MessageGroupId="tenant-7")
    for queue in (raw, enveloped):
        (message,) = received(queue)
        assert message["Attributes"]["MessageGroupId"] == "tenant-7"


def test_published_to_nobody_it_is_published(make_topic: Make) -> None:
    assert make_topic().publish()["MessageId"]


# --- fifo -------------------------------------------------------------------------------------------------------------


def test_a_fifo_topic_keeps_the_order_of_each_group(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(FifoTopic="true"), make_queue(fifo=True)
    topic.subscribe(queue, RawMessageDelivery="true")
    numbers = [
        topic.publish(f"{n}", MessageGroupId=f"g{n % 2}", MessageDeduplicationId=f"d{n}")["SequenceNumber"]
        for n in range(8)
    ]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == 8
    found = received(queue, 8)
    for group in ("g0", "g1"):
        of_group = [one for one in found if one["Attributes"]["MessageGroupId"] == group]
        assert [int(one["Body"]) % 2 for one in of_group] == [int(group[1])] * 4
        assert [one["Body"] for one in of_group] == sorted(one["Body"] for one in of_group)
        assert [one["Attributes"]["MessageDeduplicationId"] for one in of_group] == [f"d{o['Body']}" for o in of_group]


def test_a_fifo_topic_takes_what_it_has_had_for_the_same(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(FifoTopic="true"), make_queue(fifo=True)
    topic.subscribe(queue)
    first = topic.publish("one", MessageGroupId="g", MessageDeduplicationId="d")
    again = topic.publish("another", MessageGroupId="g", MessageDeduplicationId="d")
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    topic.publish("two", MessageGroupId="g", MessageDeduplicationId="e")
    found = [json.loads(body) for body in bodies(queue, 2)]
    assert [one["Message"] for one in found] == ["one", "two"]
    assert found[0]["SequenceNumber"] == first["SequenceNumber"]
    assert queue.receive() == []
    verify(found[0])


def test_a_fifo_topic_by_content_and_in_its_group(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic = make_topic(FifoTopic="true", ContentBasedDeduplication="true", FifoThroughputScope="MessageGroup")
    said = topic.attributes()
    assert (said["FifoTopic"], said["ContentBasedDeduplication"], said["FifoThroughputScope"]) == (
        "true", "true", "MessageGroup"
    )
    queue = make_queue(fifo=True, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    topic.subscribe(queue, RawMessageDelivery="true")
    for group in ("g", "g", "h"):
        topic.publish("same", MessageGroupId=group)
    assert [one["Attributes"]["MessageGroupId"] for one in received(queue, 2)] == ["g", "h"]
    assert queue.receive() == []
    plain = make_topic(FifoTopic="true")
    with pytest.raises(sns.exceptions.InvalidParameterException, match="ContentBasedDeduplication enabled or"):
        plain.publish(MessageGroupId="g")
    with pytest.raises(sns.exceptions.InvalidParameterException, match="MessageGroupId parameter is required"):
        plain.publish(MessageDeduplicationId="d")


def test_a_fifo_topic_also_feeds_standard_queues(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(FifoTopic="true"), make_queue()
    topic.subscribe(queue, RawMessageDelivery="true")
    topic.publish("x", MessageGroupId="g", MessageDeduplicationId="d")
    assert bodies(queue) == ["x"]


def test_many_publishers_at_once_lose_nothing(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queues = make_topic(), [make_queue() for _ in range(3)]
    for queue in queues:
        topic.subscribe(queue, RawMessageDelivery="true")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: topic.publish(str(n)), range(80)))
    for queue in queues:
        assert sorted(map(int, bodies(queue, 80))) == list(range(80))


def test_a_server_that_has_not_read_the_key_yet_delivers_all_the_same(
    server: RunningServer, make_topic: Make, make_queue: MakeQueue
) -> None:
    topic, queue = make_topic(), make_queue()
    topic.subscribe(queue)
    topics = server.service.topics
    known = topics.render, topics.prepare

    async def as_if_started_now() -> None:
        envelopes = Envelopes(Signer(server.service.engine), server.url)
        topics.render, topics.prepare = envelopes.render, envelopes.prepare

    server.run(as_if_started_now())
    try:
        topic.publish("patience")
        found = notification(queue)
    finally:
        topics.render, topics.prepare = known
    assert found["Message"] == "patience"
    verify(found)
