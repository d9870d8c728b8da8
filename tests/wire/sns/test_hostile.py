"""Which requests are for this door; and whatever is sent, only typed errors come out, each of which can be answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_from_bytes, urlencode

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from angelhair.engine.topics.values import shown
from angelhair.server.aws.errors import AwsError, InvalidAction
from angelhair.server.http.messages import Request
from angelhair.server.sns.answering import answer, decode, refuse
from angelhair.server.sns.errors import InvalidParameter, UnsupportedOperation
from angelhair.server.sns.operations import ELSEWHERE, OPERATIONS
from angelhair.server.sns.outputs import GetTopicAttributesResult
from angelhair.server.sns.recognising import Asked, recognise
from tests.wire.server import running_server
from tests.wire.sns.amazon import ACTIONS, FORM, MODEL, TOPIC, asked_for, decoded, parsed
from tests.wire.sqs.amazon import request

HOSTILE = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
ON_A_SERVER = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

NAMES = [
    *sorted({name for action in OPERATIONS for name in MODEL.operation_model(action).input_shape.members}), "Id", "Key",
    "Value", "Name", "DataType", "StringValue", "BinaryValue", "entry", "member", "key", "value", "", "1", "2", "0",
    "-1", "01", "9" * 30, "x",
]
TEXT = st.one_of(
    st.text(max_size=20),
    st.sampled_from([
        TOPIC, f"{TOPIC}.fifo", f"{TOPIC}:00000000-0000-0000-0000-000000000000", "arn:aws:sqs:eu-west-1:123456789012:q",
        "sqs", "http", "http://[::1", "http://x:99999999/", "json", "true", "String", "Number", "Binary", "1e999", "{}",
        "[]", "[" * 3000, '{"default":5}', '{"http":{"defaultHealthyRetryPolicy":[]}}', '{"http":null}', "FilterPolicy",
        "DeliveryPolicy", "RedrivePolicy", "Policy", "FifoTopic", "AA==", "orders", "orders.fifo", "1", "\x00",
        '{"a":[{"numeric":["<",1e999]}]}', '{"deadLetterTargetArn":{}}', "MessageBody", '{"Statement":[{}]}',
    ]),
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=7).map(".".join)


def survives(given_request: Request) -> None:
    """Either it is understood, or refused in a way that botocore can read."""
    try:
        asked = recognise(given_request)
        assert asked is None or decode(asked) is not None
    except AwsError as error:
        said = refuse(given_request, error)
        assert 400 <= said.status < 500
        assert parsed(said, "Publish")["ResponseMetadata"]["HTTPStatusCode"] == said.status


def form_of(action: str, pairs: list[tuple[str, str]]) -> bytes:
    fields = [("Action", action), ("Version", "2010-03-31"), ("TopicArn", TOPIC), *pairs]
    return urlencode([(name, text.encode("utf-8", "replace")) for name, text in fields]).encode()


@HOSTILE
@given(st.sampled_from(ACTIONS), st.lists(st.tuples(PATHS, TEXT), max_size=12))
def test_random_forms(action: str, pairs: list[tuple[str, str]]) -> None:
    survives(request(headers=FORM, body=form_of(action, pairs)))


@HOSTILE
@given(st.binary(), st.binary(), st.sampled_from(["GET", "POST"]))
def test_random_bytes_as_forms(query: bytes, body: bytes, method: str) -> None:
    survives(request(method, "/", quote_from_bytes(query, "=&%+."), FORM, b"Action=Publish&Version=2010-03-31&" + body))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    with running_server(folder) as server, httpx.Client(base_url=server.url, headers=FORM, timeout=60) as client:
        yield client


@ON_A_SERVER
@given(st.sampled_from(sorted(OPERATIONS)), st.lists(st.tuples(PATHS, TEXT), max_size=12))
def test_random_forms_on_a_server(client: httpx.Client, action: str, pairs: list[tuple[str, str]]) -> None:
    """Now the actions themselves meet what the checks let pass: on a topic that is there, and none that is."""
    arn = TOPIC.replace("123456789012", "000000000000")
    client.post("/", content=form_of("CreateTopic", [("Name", "orders")]))
    for more in ([], [("TopicArn", arn), ("ResourceArn", arn), ("TargetArn", arn)]):
        said = client.post("/", content=form_of(action, [*pairs, *more]))
        assert said.status_code < 500, said.text
        assert "Traceback" not in said.text


def test_what_is_for_this_door() -> None:
    def signed(service: str) -> dict[str, str]:
        return FORM | {"authorization": f"AWS4-HMAC-SHA256 Credential=AK/20260101/eu-west-1/{service}/aws4_request, S"}

    ours = [
        request(headers=FORM, body=b"Action=ListTopics&Version=2010-03-31"),
        request("GET", "/", "Action=ConfirmSubscription&Version=2010-03-31&Token=x"),
        request(headers=signed("sns"), body=b"Action=AddPermission"),
        request(headers=FORM, body=b"Action=Publish"),
    ]
    others = [
        request(headers=FORM, body=b"Action=AddPermission"),
        request(headers=signed("sqs"), body=b"Action=AddPermission"),
        request(headers=FORM, body=b"Action=ListTopics&Version=2012-11-05"),
        request(headers=FORM, body=b"Version=2010-03-31"),
        request(headers={"content-type": "application/json"}, body=b"Action=ListTopics&Version=2010-03-31"),
        request(path="/topics", headers=FORM, body=b"Action=ListTopics&Version=2010-03-31"),
        request(headers={"x-amz-target": "AmazonSNS.ListTopics"}, body=b"{}"),
    ]
    assert [recognise(one) is not None for one in ours] == [True] * len(ours)
    assert [recognise(one) for one in others] == [None] * len(others)


def test_actions_that_are_not_there_and_those_of_others() -> None:
    with pytest.raises(InvalidAction):
        decode(Asked("Fly", {}))
    for action in ELSEWHERE:
        with pytest.raises(UnsupportedOperation):
            decode(Asked(action, {}))


@pytest.mark.parametrize(
    "arn",
    ["", "orders", "arn:aws:sns:eu-west-1:123456789012", "arn:aws:sqs:eu-west-1:123456789012:orders",
     "arn:aws:sns:eu\r\nx: y:123456789012:orders", "arn:aws:sns::123456789012:orders", f"{TOPIC}:more",
     "arn:aws:sns:eu-west-1:12:orders", "arn:gov:sns:eu-west-1:123456789012:orders", f"{TOPIC}/x", f"{TOPIC}\n"],
)
def test_what_is_no_arn_of_a_topic(arn: str) -> None:
    with pytest.raises(InvalidParameter, match="Invalid parameter: TopicArn"):
        decoded(asked_for("GetTopicAttributes", TopicArn=arn))


def test_of_an_endpoint_a_log_has_scheme_and_host() -> None:
    assert shown("http://me:secret@shop.example:80/a@b?c@d") == "http://shop.example:80"
    assert shown("http://shop.example/a//b@c") == "http://shop.example"
    assert shown("https://shop.example?token=secret\n#x") == "https://shop.example"
    assert shown("000000000000/orders") == "000000000000/orders"



def test_lists_and_maps_are_nested_both_ways() -> None:
    wanted = decoded(asked_for(
        "PublishBatch", TopicArn=TOPIC,
        PublishBatchRequestEntries=[
            {"Id": "a", "Message": "x", "MessageAttributes": {"k": {"DataType": "Binary", "BinaryValue": b"\x00"}}},
            {"Id": "b", "Message": "y"},
        ],
    ))
    assert [entry.id for entry in wanted.entries] == ["a", "b"]
    assert wanted.entries[0].message.attributes["k"].binary_value == b"\x00"
    asked, given_request = Asked("GetTopicAttributes", {}), request()
    said = answer(asked, given_request, GetTopicAttributesResult({"A&B": "<c>", "D": ""}))
    assert parsed(said, "GetTopicAttributes")["Attributes"] == {"A&B": "<c>", "D": ""}
