"""boto3 whole, from its call to its answer, with this wire in place of the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from angelhair.server.aws.errors import AwsError
from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sqs import errors, outputs
from angelhair.server.sqs.answering import answer, refuse
from tests.wire.sqs.amazon import HOST, URL, asked, decode
from tests.wire.sqs.amazon import request as received

Respond = Callable[[str, Any], Any]
"""Takes an action and its checked input; gives a result, or raises."""


class _Raw:
    """What botocore reads a body from."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Any:
        yield self._body


def client_of(respond: Respond) -> Any:
    """A boto3 client whose requests come to this wire and are answered by `respond`."""
    made = boto3.client(
        "sqs", endpoint_url=f"http://{HOST}", region_name="eu-west-1", aws_access_key_id="AK",
        aws_secret_access_key="secret", config=Config(retries={"max_attempts": 0}),
    )

    def send(request: Any, **_: Any) -> AWSResponse:
        headers = {
            name.lower(): value.decode() if isinstance(value, bytes) else value
            for name, value in request.headers.items()
        }
        url = urlsplit(request.url)
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        given = received(request.method, url.path or "/", url.query, headers, body)
        question = asked(given)
        try:
            response = answer(question, given, respond(question.action, decode(question, given)))
        except AwsError as error:
            response = refuse(question.protocol, given, error)
        return AWSResponse(request.url, response.status, dict(response.headers), _Raw(response.body))

    made.meta.events.register("before-send.sqs", send)
    return made


def test_send_and_receive() -> None:
    kept: list[Any] = []

    def respond(action: str, value: Any) -> Any:
        if action == "SendMessage":
            kept.append(value.message)
            return outputs.SendMessageResult("id-1", value.message.md5_of_body, value.message.md5_of_attributes)
        message = kept[0]
        return outputs.ReceiveMessageResult([outputs.Message(
            "id-1", "receipt", message.md5_of_body, message.body.decode(), {"SenderId": "me"},
            message.md5_of_attributes, message.attributes,
        )])

    client = client_of(respond)
    attributes = {"n": {"DataType": "Number", "StringValue": "5"}, "b": {"DataType": "Binary", "BinaryValue": b"\x00"}}
    sent = client.send_message(QueueUrl=URL, MessageBody="h\u00e9llo\r\n\U0001f389", MessageAttributes=attributes)
    (received,) = client.receive_message(QueueUrl=URL, WaitTimeSeconds=1, MessageAttributeNames=["All"])["Messages"]
    assert received["Body"] == "héllo\r\n🎉"
    assert received["MessageAttributes"] == attributes
    assert received["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert received["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert kept[0].attributes["b"] == MessageAttributeValue("Binary", binary_value=b"\x00")


def test_a_batch_of_which_one_fails() -> None:
    def respond(_: str, batch: Any) -> Any:
        sent = [outputs.SendMessageBatchResultEntry(each.id, "m", each.message.md5_of_body) for each in batch.entries]
        return outputs.SendMessageBatchResult(sent, batch.failed)

    entries = [{"Id": "a", "MessageBody": "b"}, {"Id": "b", "MessageBody": "b", "DelaySeconds": 901}]
    answered = client_of(respond).send_message_batch(QueueUrl=URL, Entries=entries)
    assert [entry["Id"] for entry in answered["Successful"]] == ["a"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answered["Failed"]] == [
        ("b", "InvalidParameterValue", True),
    ]


@pytest.mark.parametrize("error", [
    errors.QueueDoesNotExist(), errors.QueueNameExists("DelaySeconds"), errors.PurgeQueueInProgress("q"),
    errors.ReceiptHandleIsInvalid("r"), errors.OverLimit("too much"), errors.InvalidAttributeName("Unknown"),
    errors.BatchRequestTooLong(1), errors.ResourceNotFoundException("no"), errors.MessageNotInflight(),
])
def test_errors_have_the_classes_that_programs_catch(error: AwsError) -> None:
    def respond(_: str, __: Any) -> Any:
        raise error

    client = client_of(respond)
    with pytest.raises(getattr(client.exceptions, error.shape)) as caught:
        client.purge_queue(QueueUrl=URL)
    assert caught.value.response["Error"]["Code"] == error.code
    assert caught.value.response["ResponseMetadata"]["RequestId"] == "request-1"


def test_errors_without_a_class() -> None:
    with pytest.raises(ClientError) as caught:
        client_of(lambda _, __: None).receive_message(QueueUrl=URL, MaxNumberOfMessages=11)
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"
    assert caught.value.response["Error"]["QueryErrorCode"] == "InvalidParameterValueException"
