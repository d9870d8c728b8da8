"""Both protocols, with botocore as the other side: what it writes we read, what we write it reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from angelhair.server.aws import query_protocol
from angelhair.server.aws.errors import Protocol
from angelhair.server.sqs import json_protocol
from angelhair.server.sqs.answering import answer
from angelhair.server.sqs.operations import OPERATIONS
from angelhair.server.sqs.outputs import Nothing
from angelhair.server.sqs.recognising import Asked
from tests.wire.sqs.amazon import (
    ACTIONS,
    PROTOCOLS,
    asked,
    asked_for,
    form,
    json,
    operation_model,
    parsed,
    request,
)
from tests.wire.sqs.values import values

EXAMPLES = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
SAYING = [action for action in ACTIONS if OPERATIONS[action].output is not Nothing]


def read(given_request: Any) -> dict[str, Any]:
    """What was understood of a request, by the names of JSON, without what was not said."""
    found = asked(given_request)
    operation = OPERATIONS[found.action]
    shape = (
        json_protocol.read(operation, given_request.body) if found.form is None
        else query_protocol.read(operation, found.form)
    )
    plain: dict[str, Any] = msgspec.to_builtins(shape, builtin_types=(bytes,))
    return plain


def question(action: str, protocol: Protocol) -> Asked:
    return asked(json(action, b"{}") if protocol is Protocol.JSON else form(Action=action, Version="2012-11-05"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", ACTIONS)
@EXAMPLES
@given(data=st.data())
def test_what_botocore_writes_is_read(action: str, protocol: Protocol, data: st.DataObject) -> None:
    members = data.draw(values(operation_model(protocol, action).input_shape, always=data.draw(st.booleans())))
    written = asked_for(action, members, protocol)
    assert asked(written).protocol is protocol
    assert read(written) == members


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", SAYING)
@EXAMPLES
@given(data=st.data())
def test_what_is_answered_botocore_reads(action: str, protocol: Protocol, data: st.DataObject) -> None:
    shape = operation_model(protocol, action).output_shape
    members = data.draw(values(shape, always=data.draw(st.booleans())))
    output = OPERATIONS[action].output
    try:
        result = msgspec.convert(members, output, builtin_types=(bytes,))
    except msgspec.ValidationError:
        # The model requires almost nothing of an answer; we always say what AWS always says.
        members = data.draw(values(shape, always=True))
        result = msgspec.convert(members, output, builtin_types=(bytes,))
    understood = parsed(answer(question(action, protocol), request(), result), action, protocol)
    metadata = understood.pop("ResponseMetadata")
    assert understood == members
    assert (metadata["RequestId"], metadata["HTTPStatusCode"]) == ("request-1", 200)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", [action for action in ACTIONS if action not in SAYING])
def test_an_answer_that_says_nothing(action: str, protocol: Protocol) -> None:
    response = answer(question(action, protocol), request(), Nothing())
    assert set(parsed(response, action, protocol)) == {"ResponseMetadata"}
    if protocol is Protocol.JSON:
        assert (response.body, response.content_type) == (b"{}", "application/x-amz-json-1.0")
    else:
        assert response.body.decode() == (
            f'<?xml version="1.0"?><{action}Response xmlns="http://queue.amazonaws.com/doc/2012-11-05/">'
            f"<ResponseMetadata><RequestId>request-1</RequestId></ResponseMetadata></{action}Response>"
        )
        assert response.content_type == "text/xml"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", ["ReceiveMessage", "ListQueues", "GetQueueAttributes", "ListQueueTags"])
def test_what_is_empty_is_not_said(action: str, protocol: Protocol) -> None:
    """Clients ask whether "Messages" is there: an empty list would be."""
    response = answer(question(action, protocol), request(), OPERATIONS[action].output())
    assert set(parsed(response, action, protocol)) == {"ResponseMetadata"}


# --- how clients write lists and maps in the Query protocol -----------------------------------------------------------

SENT = {"Id": "a", "MessageBody": "b", "MessageAttributes": {"n": {"DataType": "String", "StringValue": "v"}}}


@pytest.mark.parametrize(("action", "parameters", "members"), [
    ("GetQueueAttributes", {"AttributeName.1": "All"}, {"AttributeNames": ["All"]}),
    ("GetQueueAttributes", {"AttributeNames.1": "All"}, {"AttributeNames": ["All"]}),
    ("GetQueueAttributes", {"AttributeNames.member.1": "All"}, {"AttributeNames": ["All"]}),
    ("GetQueueAttributes", {"AttributeName.10": "B", "AttributeName.9": "A"}, {"AttributeNames": ["A", "B"]}),
    ("CreateQueue", {"Attribute.1.Name": "a", "Attribute.1.Value": "1"}, {"Attributes": {"a": "1"}}),
    ("CreateQueue", {"Attributes.1.key": "a", "Attributes.1.value": "1"}, {"Attributes": {"a": "1"}}),
    ("CreateQueue", {"Attributes.entry.1.key": "a", "Attributes.entry.1.value": "1"}, {"Attributes": {"a": "1"}}),
    ("CreateQueue", {"Tag.1.Key": "a", "Tag.1.Value": "1"}, {"tags": {"a": "1"}}),
    ("CreateQueue", {"tags.entry.1.key": "a", "tags.entry.1.value": "1"}, {"tags": {"a": "1"}}),
    ("TagQueue", {"Tags.1.Key": "a", "Tags.1.Value": ""}, {"Tags": {"a": ""}}),
    ("TagQueue", {"Tag.1.Key": "a"}, {"Tags": {"a": ""}}),
    ("UntagQueue", {"TagKey.1": "a", "TagKey.2": "b"}, {"TagKeys": ["a", "b"]}),
    ("SendMessageBatch", {
        "SendMessageBatchRequestEntry.1.Id": "a", "SendMessageBatchRequestEntry.1.MessageBody": "b",
        "SendMessageBatchRequestEntry.1.MessageAttribute.1.Name": "n",
        "SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType": "String",
        "SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringValue": "v",
    }, {"Entries": [SENT]}),
    ("SendMessageBatch", {
        "Entries.member.1.Id": "a", "Entries.member.1.MessageBody": "b",
        "Entries.member.1.MessageAttributes.entry.1.key": "n",
        "Entries.member.1.MessageAttributes.entry.1.value.DataType": "String",
        "Entries.member.1.MessageAttributes.entry.1.value.StringValue": "v",
    }, {"Entries": [SENT]}),
    ("ReceiveMessage", {"MessageSystemAttributeName.1": "All"}, {"MessageSystemAttributeNames": ["All"]}),
    ("DeleteQueue", {"QueueUrl.1": "x", "Signature": "y", "AttributeName": "z", "": "w", ".": "v"}, {}),
    ("GetQueueAttributes", {"AttributeName.x": "1", "AttributeName.9999999": "2", "AttributeName.1.x": "3"}, {}),
])
def test_spellings_of_lists_and_maps(action: str, parameters: dict[str, str], members: dict[str, Any]) -> None:
    understood = read(form(Action=action, Version="2012-11-05", **parameters))
    assert {name: value for name, value in understood.items() if value} == members


def test_a_queue_url_of_the_path_stands_in_for_the_parameter() -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    there = request(path="/123456789012/orders", headers=headers, body=b"Action=PurgeQueue")
    assert read(there) == {"QueueUrl": "/123456789012/orders"}
    both = request(path="/123456789012/orders", headers=headers, body=b"Action=PurgeQueue&QueueUrl=other")
    assert read(both) == {"QueueUrl": "other"}


def test_get_with_a_query_string() -> None:
    query = "Action=SendMessage&MessageBody=h%C3%A9llo+there&Version=2012-11-05"
    understood = read(request("GET", "/123456789012/orders", query))
    assert understood == {"QueueUrl": "/123456789012/orders", "MessageBody": "héllo there"}


# --- what JSON clients send that is not quite the model ---------------------------------------------------------------


@pytest.mark.parametrize(("body", "members"), [
    (b"", {}),
    (b"{}", {}),
    (b'{"QueueUrl":"u","AttributeNames":null,"VisibilityTimeout":null}', {"QueueUrl": "u"}),
    (b'{"QueueUrl":"u","WaitTimeSeconds":5.0}', {"QueueUrl": "u", "WaitTimeSeconds": 5}),
    (b'{"QueueUrl":"u","SomethingNew":{"a":[1]}}', {"QueueUrl": "u"}),
])
def test_json_that_is_taken_too(body: bytes, members: dict[str, Any]) -> None:
    assert read(json("ReceiveMessage", body)) == members


# --- text in XML ------------------------------------------------------------------------------------------------------


def test_text_survives_xml() -> None:
    text = '<a href="x">&amp;</a>\r\n\t]]> é 🎉 \u2028'
    output = OPERATIONS["GetQueueUrl"].output
    response = answer(question("GetQueueUrl", Protocol.QUERY), request(), output(text))
    assert parsed(response, "GetQueueUrl", Protocol.QUERY)["QueueUrl"] == text


def test_what_xml_cannot_hold_does_not_spoil_the_answer() -> None:
    output = OPERATIONS["GetQueueUrl"].output
    response = answer(question("GetQueueUrl", Protocol.QUERY), request(), output("a\x00b\x1fc\ufffe"))
    assert parsed(response, "GetQueueUrl", Protocol.QUERY)["QueueUrl"] == "a\ufffdb\ufffdc\ufffd"
