"""What the checks let pass, at its edges, and what they make of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from angelhair.server.aws.errors import Protocol
from angelhair.server.sqs.checked import RedriveAllowPolicy, RedrivePolicy
from angelhair.server.sqs.inputs import ReceiveMessageRequest
from tests.wire.sqs.amazon import ACCOUNT, FIFO_URL, PROTOCOLS, URL, asked_for, decoded

ARN = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:dead"


def accepted(action: str, members: dict[str, Any], protocol: Protocol) -> Any:
    return decoded(asked_for(action, members, protocol))


def text(value: str, data_type: str = "String") -> dict[str, str]:
    return {"DataType": data_type, "StringValue": value}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_message_with_everything(protocol: Protocol) -> None:
    sent = accepted("SendMessage", {
        "QueueUrl": FIFO_URL, "MessageBody": "h\u00e9llo", "MessageGroupId": "g!~", "MessageDeduplicationId": "d" * 128,
        "DelaySeconds": 0,
        "MessageAttributes": {
            "b": {"DataType": "Binary.gif", "BinaryValue": b"\x00\xff"}, "a": text("1e-3", "Number.float"),
        },
        "MessageSystemAttributes": {"AWSTraceHeader": text("Root=1")},
    }, protocol)
    message = sent.message
    assert sent.queue_url == FIFO_URL
    assert message.body == "héllo".encode()
    assert message.size_bytes == 6 + len("bBinary.gif") + 2 + len("aNumber.float1e-3")
    assert (message.group_id, message.deduplication_id, message.delay_seconds) == ("g!~", "d" * 128, 0)
    assert message.trace_header == "Root=1"
    assert list(message.attributes) == ["b", "a"]
    assert message.attributes["b"].binary_value == b"\x00\xff"
    assert len({message.md5_of_body, message.md5_of_attributes, message.md5_of_system_attributes}) == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_message_with_nothing_but_a_body(protocol: Protocol) -> None:
    message = accepted("SendMessage", {"QueueUrl": URL, "MessageBody": "test"}, protocol).message
    assert (message.body, message.size_bytes, message.md5_of_body) == (b"test", 4, "098f6bcd4621d373cade4e832627b4f6")
    assert (message.delay_seconds, message.group_id, message.deduplication_id) == (None, None, None)
    assert (message.attributes, message.md5_of_attributes, message.md5_of_system_attributes) == ({}, None, None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [
    "\t\n\r", " ", "\x7f\x80\x9f", "\ud7ff\ue000\ufffd", "\U00010000\U0010ffff", "b" * 1_048_576, "\u200b",
])
def test_bodies_at_the_edge(body: str, protocol: Protocol) -> None:
    assert accepted("SendMessage", {"QueueUrl": URL, "MessageBody": body}, protocol).message.body == body.encode()


@pytest.mark.parametrize("number", ["0", "-1", "+5", "1.", ".5", "1e10", "1E-128", "1234567890123456789012", "007"])
def test_numbers(number: str) -> None:
    members = {"QueueUrl": URL, "MessageBody": "b", "MessageAttributes": {"n": text(number, "Number")}}
    message = accepted("SendMessage", members, Protocol.JSON).message
    assert message.attributes["n"].string_value == number


@pytest.mark.parametrize("name", ["n" * 255, "a.b-c_D9", "AWSome", "Amazonas", "-"])
def test_names_of_attributes(name: str) -> None:
    members = {"QueueUrl": URL, "MessageBody": "b", "MessageAttributes": {name: text("v")}}
    assert list(accepted("SendMessage", members, Protocol.JSON).message.attributes) == [name]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_full_batch(protocol: Protocol) -> None:
    ids = ["i" * 80, *map(str, range(9))]
    members = {"QueueUrl": URL, "Entries": [{"Id": each, "MessageBody": each, "DelaySeconds": 900} for each in ids]}
    batch = accepted("SendMessageBatch", members, protocol)
    assert [(entry.id, entry.message.body.decode()) for entry in batch.entries] == [(each, each) for each in ids]
    assert (batch.queue_url, batch.failed) == (URL, [])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_batch_for_a_fifo_queue(protocol: Protocol) -> None:
    entry = {"Id": "a", "MessageBody": "b", "MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 0}
    batch = accepted("SendMessageBatch", {"QueueUrl": FIFO_URL, "Entries": [entry]}, protocol)
    (sent,) = batch.entries
    assert (sent.message.group_id, sent.message.deduplication_id, batch.failed) == ("g", "d", [])


def test_a_batch_of_as_many_bytes_as_are_allowed() -> None:
    halves = [{"Id": "a", "MessageBody": "b" * 524_288}, {"Id": "b", "MessageBody": "b" * 524_288}]
    assert len(accepted("SendMessageBatch", {"QueueUrl": URL, "Entries": halves}, Protocol.JSON).entries) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_receive_at_its_edges(protocol: Protocol) -> None:
    wanted = accepted("ReceiveMessage", {
        "QueueUrl": FIFO_URL, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20, "VisibilityTimeout": 43_200,
        "AttributeNames": ["SentTimestamp", "Policy"], "MessageSystemAttributeNames": ["All"],
        "MessageAttributeNames": [".*", "bar.*", "il legal"], "ReceiveRequestAttemptId": "attempt",
    }, protocol)
    assert isinstance(wanted, ReceiveMessageRequest)
    assert wanted.wanted_system_attributes == ["All", "SentTimestamp", "Policy"]
    assert wanted.message_attribute_names == [".*", "bar.*", "il legal"]
    assert (wanted.max_number_of_messages, wanted.wait_time_seconds, wanted.visibility_timeout) == (10, 20, 43_200)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_queue_with_everything(protocol: Protocol) -> None:
    texts = {
        "DelaySeconds": "900", "MaximumMessageSize": "1024", "MessageRetentionPeriod": "60",
        "ReceiveMessageWaitTimeSeconds": "20", "VisibilityTimeout": "0", "FifoQueue": "true",
        "ContentBasedDeduplication": "True", "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId", "KmsMasterKeyId": "alias/aws/sqs",
        "KmsDataKeyReusePeriodSeconds": "86400", "SqsManagedSseEnabled": "false",
        "Policy": '{"Version":"2012-10-17","Id":"x","Statement":{"Effect":"Deny","NotAction":["sqs:*"]}}',
        "RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}.fifo","maxReceiveCount":"1000"}}',
        "RedriveAllowPolicy": f'{{"redrivePermission":"byQueue","sourceQueueArns":["{ARN}"]}}',
        "Angelhair.Kind": "fifo", "Angelhair.Limits": "wide", "Angelhair.InFlightLimit": "120000",
    }
    members = {"QueueName": "q" * 75 + ".fifo", "Attributes": texts, "tags": {"k" * 128: "v" * 256, "e": ""}}
    made = accepted("CreateQueue", members, protocol)
    assert (made.queue_name, made.tags) == (members["QueueName"], members["tags"])
    assert msgspec.structs.asdict(made.attributes) == {
        "texts": texts, "delay_seconds": 900, "maximum_message_size": 1024, "message_retention_period": 60,
        "receive_message_wait_time_seconds": 20, "visibility_timeout": 0, "policy": texts["Policy"],
        "redrive_policy": RedrivePolicy(f"{ARN}.fifo", "dead.fifo", 1000),
        "redrive_allow_policy": RedriveAllowPolicy("byQueue", [ARN]), "fifo_queue": True,
        "content_based_deduplication": True, "deduplication_scope": "messageGroup",
        "fifo_throughput_limit": "perMessageGroupId", "kms_master_key_id": "alias/aws/sqs",
        "kms_data_key_reuse_period_seconds": 86_400, "sqs_managed_sse_enabled": False,
        "kind": "fifo", "limits": "wide", "lanes": UNSET, "priorities": UNSET, "fair": UNSET, "name_rests": UNSET,
        "in_flight_limit": 120_000, "min_partitions": UNSET, "max_partitions": UNSET,
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_set_to_nothing_is_removed(protocol: Protocol) -> None:
    texts = dict.fromkeys(("Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId"), "")
    attributes = accepted("SetQueueAttributes", {"QueueUrl": URL, "Attributes": texts}, protocol).attributes
    assert attributes.policy is attributes.redrive_policy is attributes.redrive_allow_policy is None
    assert attributes.kms_master_key_id is None
    assert attributes.delay_seconds is attributes.fifo_queue is UNSET


def test_a_redrive_policy_that_does_not_count_counts_to_ten() -> None:
    texts = {"RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}"}}'}
    attributes = accepted("SetQueueAttributes", {"QueueUrl": URL, "Attributes": texts}, Protocol.JSON).attributes
    assert attributes.redrive_policy == RedrivePolicy(ARN, "dead", 10)


@pytest.mark.parametrize("permission", ["allowAll", "denyAll"])
def test_redrive_permissions(permission: str) -> None:
    texts = {"RedriveAllowPolicy": f'{{"redrivePermission":"{permission}"}}'}
    attributes = accepted("SetQueueAttributes", {"QueueUrl": URL, "Attributes": texts}, Protocol.JSON).attributes
    assert attributes.redrive_allow_policy == RedriveAllowPolicy(permission, [])  # type: ignore[arg-type]


def test_a_fifo_queue_may_be_told_that_it_is_one() -> None:
    members = {"QueueUrl": FIFO_URL, "Attributes": {"FifoQueue": "true"}}
    assert accepted("SetQueueAttributes", members, Protocol.JSON).attributes.fifo_queue is True


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("action", "members"), [
    ("AddPermission", {"QueueUrl": URL, "Label": "l" * 80, "AWSAccountIds": [ACCOUNT], "Actions": ["*"] * 7}),
    ("RemovePermission", {"QueueUrl": URL, "Label": "l"}),
    ("ChangeMessageVisibility", {"QueueUrl": URL, "ReceiptHandle": "r", "VisibilityTimeout": 0}),
    ("DeleteMessage", {"QueueUrl": URL, "ReceiptHandle": "r"}),
    ("GetQueueUrl", {"QueueName": "no such name!", "QueueOwnerAWSAccountId": ACCOUNT}),
    ("ListQueues", {"QueueNamePrefix": "o", "NextToken": "t", "MaxResults": 1000}),
    ("ListDeadLetterSourceQueues", {"QueueUrl": URL, "NextToken": "t", "MaxResults": 1}),
    ("GetQueueAttributes", {"QueueUrl": URL, "AttributeNames": ["All", "QueueArn", "Policy"]}),
    ("TagQueue", {"QueueUrl": URL, "Tags": {"k": ""}}),
    ("UntagQueue", {"QueueUrl": URL, "TagKeys": ["k"]}),
    ("ListQueueTags", {"QueueUrl": URL}), ("PurgeQueue", {"QueueUrl": URL}), ("DeleteQueue", {"QueueUrl": URL}),
    ("StartMessageMoveTask", {"SourceArn": ARN, "DestinationArn": f"{ARN}2", "MaxNumberOfMessagesPerSecond": 500}),
    ("CancelMessageMoveTask", {"TaskHandle": "t"}),
    ("ListMessageMoveTasks", {"SourceArn": ARN, "MaxResults": 10}),
])
def test_inputs_that_pass_as_they_are(action: str, members: dict[str, Any], protocol: Protocol) -> None:
    assert msgspec.to_builtins(accepted(action, members, protocol)) == members
