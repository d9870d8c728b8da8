"""Whatever is sent, only typed errors come out, and each of them can be answered."""

from __future__ import annotations

from urllib.parse import quote_from_bytes, urlencode

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from angelhair.server.aws.errors import AwsError, Protocol
from angelhair.server.http.messages import Request
from angelhair.server.sqs.answering import decode, refuse
from angelhair.server.sqs.recognising import recognise
from tests.wire.sqs.amazon import ACTIONS, FIFO_URL, JSON_MODEL, URL, json, parsed, request

HOSTILE = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))

MEMBERS = sorted({
    name for action in ACTIONS for name in JSON_MODEL.operation_model(action).input_shape.members
} | {"Id", "DataType", "StringValue", "BinaryValue", "StringListValues", "VisibilityTimeout"})
QUERY_NAMES = [
    *MEMBERS, "Attribute", "AttributeName", "MessageAttribute", "MessageSystemAttribute", "Tag", "TagKey", "ActionName",
    "AWSAccountId", "SendMessageBatchRequestEntry", "DeleteMessageBatchRequestEntry", "StringListValue",
    "ChangeMessageVisibilityBatchRequestEntry", "Name", "Key", "Value", "entry", "member", "key", "value", "", "1", "2",
    "0", "-1", "01", "9" * 30, "x",
]
TEXT = st.one_of(
    st.text(max_size=20),
    st.sampled_from([
        URL, FIFO_URL, "All", "String", "Number", "Binary", "true", "5", "orders", "orders.fifo", "RedrivePolicy",
        "Policy", "RedriveAllowPolicy", "DelaySeconds", "FifoQueue", "AWSTraceHeader", '{"maxReceiveCount":[[]]}',
        '{"Statement":[{}]}', '{"redrivePermission":[]}', "[" * 3000, "{}", "[]", "9" * 6000,
    ]),
)
SCALARS = st.one_of(
    TEXT, st.integers(), st.sampled_from([10**40, -(10**40), 2**63, 1e300]), st.floats(allow_nan=False), st.booleans(),
    st.none(),
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(st.sampled_from(MEMBERS), TEXT), inner, max_size=6)
    ),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(MEMBERS), DOCUMENTS, max_size=8)
PATHS = st.lists(st.sampled_from(QUERY_NAMES), min_size=1, max_size=8).map(".".join)


def survives(given_request: Request) -> None:
    """Either it is understood, or refused in a way that botocore can read."""
    protocol = Protocol.JSON if "x-amz-target" in given_request.headers else Protocol.QUERY
    try:
        asked = recognise(given_request)
        assert asked is None or decode(asked, given_request) is not None
    except AwsError as error:
        answer = refuse(protocol, given_request, error)
        assert 400 <= answer.status < 500
        understood = parsed(answer, "SendMessage", protocol)
        assert understood["ResponseMetadata"]["HTTPStatusCode"] == answer.status


@HOSTILE
@given(st.sampled_from(ACTIONS), st.binary())
@example("SendMessage", b"\xef\xbb\xbf{}")
@example("SendMessage", b'{"DelaySeconds":' + b"9" * 5000 + b"}")
@example("SendMessage", b'{"DelaySeconds":1e999}')
@example("SendMessage", b'{"a":' * 20_000)
def test_random_bytes_as_json(action: str, body: bytes) -> None:
    survives(json(action, body))


@HOSTILE
@given(st.sampled_from(ACTIONS), st.one_of(OBJECTS, DOCUMENTS))
def test_random_documents(action: str, document: object) -> None:
    try:
        body = msgspec.json.encode(document)
    except (UnicodeEncodeError, OverflowError):
        body = b"{}"
    survives(json(action, body))


@HOSTILE
@given(st.sampled_from(ACTIONS), st.lists(st.tuples(PATHS, TEXT), max_size=12))
def test_random_forms(action: str, pairs: list[tuple[str, str]]) -> None:
    fields = [("Action", action), ("Version", "2012-11-05"), ("QueueUrl", URL), *pairs]
    body = urlencode([(name, text.encode("utf-8", "replace")) for name, text in fields]).encode()
    survives(request(headers={"content-type": "application/x-www-form-urlencoded"}, body=body))


@HOSTILE
@given(st.binary(), st.binary(), st.sampled_from(["/", "/123456789012/orders", "/x"]), st.sampled_from(["GET", "POST"]))
def test_random_bytes_as_forms(query: bytes, body: bytes, path: str, method: str) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    survives(request(method, path, quote_from_bytes(query, "=&%+."), headers, b"Action=SendMessage&" + body))


@HOSTILE
@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary())
def test_random_headers(text: str, body: bytes) -> None:
    for name in ("x-amz-target", "content-type", "authorization", "host"):
        survives(request(headers={name: text}, body=body))
    survives(request(headers={"x-amz-target": f"AmazonSQS.{text}"}, body=body))
