"""How the door says no: botocore writes what is wrong, and reads code, message and status as a client would."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.server.auth import Refused, refusals
from angelhair.server.aws import errors as shared
from angelhair.server.aws.errors import AwsError, InvalidAction, Protocol
from angelhair.server.http.messages import Request
from angelhair.server.sns.faults import as_sns_error
from angelhair.server.sqs import errors
from angelhair.server.sqs.answering import refuse
from angelhair.server.sqs.checks.attributes import two_encryptions
from angelhair.server.sqs.checks.common import invalid_next_token
from angelhair.server.sqs.checks.moves import no_such_resource
from angelhair.server.sqs.checks.policies import missing_dead_letter_queue
from angelhair.server.sqs.faults import as_sqs_error
from tests.wire.sqs.amazon import PROTOCOLS, URL, asked, asked_for, decode, form, json, parsed, request
from tests.wire.sqs.refusals import CASES

STATUSES = {"InvalidAddress": 404, "ResourceNotFoundException": 404, "OverLimit": 403}
VERSION = "2012-11-05"


def refused(given: Request) -> AwsError:
    with pytest.raises(AwsError) as caught:
        decode(asked(given), given)
    return caught.value


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("action", "members", "code", "message"), CASES)
def test_refusals(action: str, members: dict[str, Any], code: str, message: str, protocol: Protocol) -> None:
    given = asked_for(action, members, protocol)
    answer = parsed(refuse(protocol, given, refused(given)), action, protocol)
    assert (answer["Error"]["Code"], answer["Error"]["Message"]) == (code, message)
    assert answer["Error"]["Type"] == "Sender"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == STATUSES.get(code, 400)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_long_value_is_not_repeated_to_its_end(protocol: Protocol) -> None:
    given = asked_for("SendMessage", {"QueueUrl": URL, "MessageBody": "b", "MessageGroupId": "g" * 9999}, protocol)
    said = refused(given).message
    assert said.startswith(f"Value {'g' * 1024}... for parameter MessageGroupId is invalid.")


# --- entries of batches: each fails alone -----------------------------------------------------------------------------

VALUE, MISSING = "InvalidParameterValue", "MissingParameter"
GOOD = {"Id": "good", "MessageBody": "b"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("entry", "code", "message"), [
    ({}, MISSING, "The request must contain the parameter SendMessageBatchRequestEntry.2.MessageBody."),
    ({"MessageBody": "\x00"}, "InvalidMessageContents", errors.InvalidMessageContents.text),
    ({"MessageBody": "b", "DelaySeconds": 901}, VALUE,
     "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."),
    ({"MessageBody": "b", "MessageDeduplicationId": "d"}, VALUE,
     "The request include parameter that is not valid for this queue type"),
    ({"MessageBody": "b", "MessageGroupId": " "}, VALUE,
     "Value   for parameter MessageGroupId is invalid. Reason: "
     "MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."),
    ({"MessageBody": "b", "MessageAttributes": {"n": {"DataType": "String", "StringListValues": ["v"]}}},
     "AWS.SimpleQueueService.UnsupportedOperation",
     "Message attribute list values in SendMessageBatch operation are not supported."),
])
def test_an_entry_that_cannot_be_sent(entry: dict[str, Any], code: str, message: str, protocol: Protocol) -> None:
    members = {"QueueUrl": URL, "Entries": [GOOD, {"Id": "bad", **entry}]}
    given = asked_for("SendMessageBatch", members, protocol)
    batch = decode(asked(given), given)
    assert [sent.id for sent in batch.entries] == ["good"]
    (failed,) = batch.failed
    assert (failed.id, failed.code, failed.message, failed.sender_fault) == ("bad", code, message, True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_entries_that_cannot_be_deleted(protocol: Protocol) -> None:
    members = {"QueueUrl": URL, "Entries": [{"Id": "bad"}, {"Id": "good", "ReceiptHandle": "r"}]}
    given = asked_for("DeleteMessageBatch", members, protocol)
    batch = decode(asked(given), given)
    assert [(entry.id, entry.receipt_handle) for entry in batch.entries] == [("good", "r")]
    assert [(failed.id, failed.code, failed.message) for failed in batch.failed] == [
        ("bad", MISSING, "The request must contain the parameter DeleteMessageBatchRequestEntry.1.ReceiptHandle."),
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_entries_whose_visibility_cannot_change(protocol: Protocol) -> None:
    members = {"QueueUrl": URL, "Entries": [
        {"Id": "a", "VisibilityTimeout": 1}, {"Id": "b", "ReceiptHandle": "r"},
        {"Id": "c", "ReceiptHandle": "r", "VisibilityTimeout": 43_201},
        {"Id": "d", "ReceiptHandle": "r", "VisibilityTimeout": 43_200},
    ]}
    given = asked_for("ChangeMessageVisibilityBatch", members, protocol)
    batch = decode(asked(given), given)
    kind = "ChangeMessageVisibilityBatchRequestEntry"
    assert [(entry.id, entry.visibility_timeout) for entry in batch.entries] == [("d", 43_200)]
    assert [(failed.id, failed.code, failed.message) for failed in batch.failed] == [
        ("a", MISSING, f"The request must contain the parameter {kind}.1.ReceiptHandle."),
        ("b", MISSING, f"The request must contain the parameter {kind}.2.VisibilityTimeout."),
        ("c", VALUE, "Value 43201 for parameter VisibilityTimeout is invalid. "
                     "Reason: VisibilityTimeout must be an integer between 0 and 43200."),
    ]


# --- what is not of its type ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "body", "message"), [
    ("SendMessage", b"{", ""),
    ("SendMessage", b"not json", ""),
    ("SendMessage", b"\xff", ""),
    ("SendMessage", b'{"MessageBody":"\\ud800"}', ""),
    ("SendMessage", b"[" * 100_000, ""),
    ("SendMessage", b'{"DelaySeconds":' + b"[" * 900 + b"]" * 900 + b"}", ""),
    ("SendMessage", b"[]", "Start of list found where not expected"),
    ("SendMessage", b'"text"', "Expected a structure or map."),
    ("SendMessage", b'{"MessageBody":{}}', "Start of structure or map found where not expected."),
    ("SendMessage", b'{"MessageBody":[]}', "Start of list found where not expected"),
    ("SendMessage", b'{"MessageBody":5}', "NUMBER_VALUE can not be converted to a String"),
    ("SendMessage", b'{"MessageBody":true}', "BOOLEAN_VALUE can not be converted to a String"),
    ("SendMessage", b'{"DelaySeconds":"invalid"}', "STRING_VALUE can not be converted to an Integer"),
    ("SendMessage", b'{"DelaySeconds":5.5}', "NUMBER_VALUE can not be converted to an Integer"),
    ("SendMessageBatch", b'{"Entries":5}', "Expected a list."),
    ("SendMessageBatch", b'{"Entries":[[]]}', "Start of list found where not expected"),
    ("CreateQueue", b'{"Attributes":"x"}', "Expected a structure or map."),
    ("CreateQueue", b'{"Attributes":{"a":[]}}', "Start of list found where not expected"),
    ("SendMessage", b'{"MessageAttributes":{"a":{"BinaryValue":"***"}}}',
     "A value cannot be converted to the type of its member."),
])
def test_json_of_other_types(action: str, body: bytes, message: str) -> None:
    given = json(action, body)
    response = refuse(Protocol.JSON, given, refused(given))
    answer = parsed(response, action, Protocol.JSON)
    assert (answer["Error"]["Code"], answer["Error"]["Message"]) == ("SerializationException", message)
    assert response.status == 400
    assert "x-amzn-query-error" not in dict(response.headers)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"MaxNumberOfMessages": "x"}, "Value x for parameter MaxNumberOfMessages is invalid. Reason: Must be an integer."),
    ({"WaitTimeSeconds": ""}, "Value  for parameter WaitTimeSeconds is invalid. Reason: Must be an integer."),
    ({"WaitTimeSeconds": "9" * 19},
     f"Value {'9' * 19} for parameter WaitTimeSeconds is invalid. Reason: Must be an integer."),
])
def test_numbers_that_are_none(parameters: dict[str, str], message: str) -> None:
    error = refused(form(Action="ReceiveMessage", Version=VERSION, QueueUrl=URL, **parameters))
    assert (error.code, error.message) == (VALUE, message)


def test_base64_that_is_none() -> None:
    error = refused(form(**{
        "Action": "SendMessage", "Version": VERSION, "QueueUrl": URL, "MessageBody": "b",
        "MessageAttribute.1.Name": "n", "MessageAttribute.1.Value.BinaryValue": "***",
    }))
    assert (error.code, error.message) == (VALUE, "A binary value is not valid base64.")


# --- every error, in both protocols -----------------------------------------------------------------------------------

WITH_A_NAME = (
    "QueueNameExists", "PurgeQueueInProgress", "InvalidAddress", "ReceiptHandleIsInvalid", "EmptyBatchRequest",
    "BatchEntryIdsNotDistinct", "MissingParameter", "InvalidAction",
)
WITH_A_NUMBER = ("TooManyEntriesInBatchRequest", "BatchRequestTooLong")
ARGUMENTS: dict[str, tuple[Any, ...]] = {**dict.fromkeys(WITH_A_NAME, ("x",)), **dict.fromkeys(WITH_A_NUMBER, (11,))}
ROOTS = (
    AwsError, errors.SqsError, errors.UnknownOperation, shared.CommonError, shared.AtTheGate, shared.ServerFault,
)
ERRORS = [
    found(*ARGUMENTS.get(name, ()))
    for name, found in {name: found for room in (errors, shared) for name, found in inspect.getmembers(room)}.items()
    if inspect.isclass(found) and issubclass(found, AwsError) and found not in ROOTS
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_in_json(error: AwsError) -> None:
    response = refuse(Protocol.JSON, request(), error)
    fault = "Sender" if error.sender_fault else "Receiver"
    headers = dict(response.headers)
    assert headers["x-amzn-RequestId"] == "request-1"
    assert headers.get("x-amzn-query-error") == (f"{error.code};{fault}" if error.in_header else None)
    assert "x-amzn-errortype" not in headers
    assert response.content_type == "application/x-amz-json-1.0"
    answer = parsed(response, "SendMessage", Protocol.JSON)
    assert (answer["Error"]["Code"], answer["Error"]["Message"]) == (error.code, error.message)
    assert answer["Error"].get("QueryErrorCode", error.shape) == error.shape
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == error.status


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_in_xml(error: AwsError) -> None:
    response = refuse(Protocol.QUERY, request(), error)
    answer = parsed(response, "SendMessage", Protocol.QUERY)
    fault = "Sender" if error.sender_fault else "Receiver"
    assert (answer["Error"]["Code"], answer["Error"]["Type"]) == (error.code, fault)
    assert (answer["Error"]["Message"] or "") == error.message_in(Protocol.QUERY)
    assert answer["ResponseMetadata"]["RequestId"] == "request-1"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == error.status


@pytest.mark.parametrize("refused", [
    refusals.missing(), refusals.incomplete("w"), refusals.ambiguous("w"), refusals.unknown_key(),
    refusals.wrong_signature(), refusals.unsigned_headers(["x-amz-a"]), refusals.not_allowed("shop", "AK", "Publish"),
], ids=str)
def test_what_the_gate_refuses_both_doors_say_alike(refused: Refused) -> None:
    said, told = as_sqs_error(refused), as_sns_error(refused)
    assert (said.code, said.status, said.message) == (refused.code, refused.status, refused.message)
    code = "AuthorizationError" if refused.code == "AccessDenied" else refused.code
    assert (told.code, told.status, told.message) == (code, refused.status, refused.message)


def test_what_may_have_happened_is_called_otherwise_than_what_did_not() -> None:
    assert [(error.code, error.status, error.sender_fault) for error in (
        as_sqs_error(OutcomeUnknown("?")), as_sns_error(OutcomeUnknown("?")), as_sqs_error(Unavailable("no")),
        as_sns_error(Unavailable("no")),
    )] == [("InternalFailure", 500, False), ("InternalError", 500, False),
           ("ServiceUnavailable", 503, False), ("ServiceUnavailable", 503, False)]


def test_an_error_to_the_letter() -> None:
    error = errors.QueueDoesNotExist()
    said = refuse(Protocol.JSON, request(), error)
    assert said.body == (
        b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}'
    )
    assert said.headers == (
        ("x-amzn-RequestId", "request-1"),
        ("x-amzn-query-error", "AWS.SimpleQueueService.NonExistentQueue;Sender"),
    )
    assert refuse(Protocol.QUERY, request(), error).body.decode() == (
        '<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error>'
        "<Type>Sender</Type><Code>AWS.SimpleQueueService.NonExistentQueue</Code>"
        "<Message>The specified queue does not exist for this wsdl version.</Message><Detail/></Error>"
        "<RequestId>request-1</RequestId></ErrorResponse>"
    )


def test_a_request_without_an_action() -> None:
    said = refuse(Protocol.QUERY, request(), errors.UnknownOperation())
    assert (said.status, said.body) == (404, b"<UnknownOperationException/>\n")
    said = refuse(Protocol.JSON, request(), errors.UnknownOperation())
    assert (said.status, said.body) == (400, b'{"__type":"com.amazon.coral.service#UnknownOperationException"}')


@pytest.mark.parametrize(("error", "message"), [
    (errors.message_too_long(1024),
     "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."),
    (errors.message_too_long(1024, in_batch=True),
     "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."),
    (errors.expired_receipt("r"),
     "Value r for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."),
    (errors.ReceiptHandleIsInvalid("r"), 'The input receipt handle "r" is not valid.'),
    (errors.PurgeQueueInProgress("q"), "Only one PurgeQueue operation on q is allowed every 60 seconds."),
    (errors.QueueNameExists("DelaySeconds"),
     "A queue already exists with the same name and a different value for attribute DelaySeconds"),
    (missing_dead_letter_queue("{}"),
     "Value {} for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist."),
    (two_encryptions(),
     "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."),
    (no_such_resource("SourceArn"), "The resource that you specified for the SourceArn parameter doesn't exist."),
    (invalid_next_token(), "Invalid or expired next token."),
    (InvalidAction("Foo"), "The action Foo is not valid for this endpoint."),
])
def test_words_for_actions(error: AwsError, message: str) -> None:
    assert error.message == message
