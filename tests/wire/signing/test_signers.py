"""What botocore and the AWS common runtime sign is verified: every form, odd bodies, paths, queries and headers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.auth import AUTH_TYPE_MAPS, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from angelhair.server.auth import AccessKey
from angelhair.server.http.messages import Request
from tests.wire.signing.signers import (
    ALICE,
    BOB,
    NOW,
    REGION,
    Headers,
    at,
    by_botocore,
    by_runtime,
    read_prepared,
    verified,
)

SIGNERS = [pytest.param(by_botocore, id="botocore"), pytest.param(by_runtime, id="runtime")]
Signer = Callable[..., Request]

BODIES = {
    "empty": b"",
    "small": b'{"QueueUrl":"http://127.0.0.1/1/q"}',
    "unicode": '{"MessageBody":"ünï¢ødé 🐝 \u2028"}'.encode(),
    "not UTF-8": bytes(range(256)),
    "large": b"x" * 300_000,
    "line ends": b"\r\n\n\r\nAuthorization: none",
}
PATHS = {
    "root": "/", "queue": "/111111111111/orders.fifo", "trailing slash": "/111111111111/orders/",
    "escaped": "/a%20b/%C3%A9%2F", "escaped percent": "/100%2525", "dots": "/a/./b/../c", "beyond the root": "/../../a",
    "empty segments": "//a///b", "reserved": "/a:b@c,d;e=f&g$h!i*j'k(l)", "tilde": "/~user/-._~",
    "lower case hex": "/%c3%a9",
}
QUERIES = {
    "plain": "Action=ListQueues&Version=2012-11-05", "unsorted": "b=2&a=1&C=3", "empty value": "a=&b=1",
    "escaped": "a=x%20y%2Bz&b=%C3%A9%26%3D", "names with marks": "Attribute.1.Name=All&Attribute.10.Name=x&a-b=1&a_b=2",
    "prefix names": "a=1&aa=2&a.=3&a~=4&A=5",
}
HEADERS: dict[str, Headers] = {
    "white space at the ends": [("X-Amz-Meta", "  two  ")],
    "white space inside": [("X-Amz-Meta", "a  b    c"), ("Other", "x   y")],
    "tabs": [("Other", "a \t b\tc")],
    "quoted": [("Other", '"a   b   c"')],
    "repeated": [("Other", "one"), ("Other", "two  three"), ("Other", "one")],
    "repeated, ending in white space": [("Other", "one  "), ("Other", "  two")],
    "empty": [("Other", "")],
    "commas": [("Other", "a, b,c ,d")],
    "names that sort oddly": [("X-Amz-A-B", "1"), ("X-Amz-A", "2"), ("X-Amz-A.B", "3"), ("X_Y", "4")],
    "content type and target": [
        ("Content-Type", "application/x-amz-json-1.0"), ("X-Amz-Target", "AmazonSQS.SendMessage"),
    ],
}


def check(request: Request, key: AccessKey = ALICE, service: str = "sqs") -> None:
    identity = verified(request)
    assert (identity.key, identity.account) == (key, key.account)
    assert (identity.region, identity.service, identity.date) == (REGION, service, "20261116")


@pytest.mark.parametrize("sign", SIGNERS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_bodies(sign: Signer, body: bytes) -> None:
    check(sign(body=body))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_bodies_with_their_hash_in_a_header(body: bytes) -> None:
    request = by_runtime(body=body, body_header=True)
    assert "x-amz-content-sha256" in request.headers
    check(request)


@pytest.mark.parametrize("sign", SIGNERS)
@pytest.mark.parametrize("expires", [None, 1, 604_800])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_paths(sign: Signer, path: str, expires: int | None) -> None:
    check(sign("GET", path, expires=expires))


@pytest.mark.parametrize("sign", SIGNERS)
@pytest.mark.parametrize("expires", [None, 3_600])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_queries(sign: Signer, query: str, expires: int | None) -> None:
    check(sign("GET", f"/?{query}", expires=expires))


@pytest.mark.parametrize("query", ["a&b=1", "a=%2f%7e", "a=!*'()", "&a=1&&b=2"])
def test_queries_that_only_the_runtime_brings_into_the_one_form(query: str) -> None:
    """botocore signs what stands in the URL as it stands there, and itself writes it in the one form only."""
    check(by_runtime("GET", f"/?{query}"))


@pytest.mark.parametrize("params", [
    {"a": "x y"}, {"a+b": "c+d"}, {"é": "🐝"}, {"a": "100%"}, {"a": "1&b=2"}, {"a": ""}, {"~-._": "~-._"}, {"a": "\n"},
])
def test_parameters_that_botocore_writes(params: dict[str, str]) -> None:
    check(by_botocore("GET", params=params))
    check(by_botocore("GET", params=params, expires=60))


@pytest.mark.parametrize("sign", SIGNERS)
@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS.keys())
def test_headers(sign: Signer, headers: Headers) -> None:
    check(sign(headers=headers, body=b"body"))


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS.keys())
def test_headers_and_a_body_that_a_url_was_signed_with(headers: Headers) -> None:
    check(by_runtime(headers=headers, body=b"body", expires=60))


@pytest.mark.parametrize("sign", SIGNERS)
@pytest.mark.parametrize("key", [ALICE, BOB], ids=["Alice", "Bob"])
@pytest.mark.parametrize("service", ["sqs", "sns", "sts"])
def test_keys_and_services(sign: Signer, key: AccessKey, service: str) -> None:
    check(sign(key=key, service=service), key, service)


@pytest.mark.parametrize("sign", SIGNERS)
@pytest.mark.parametrize("region", ["eu-central-1", "here", "1", "us-gov-west-1"])
def test_any_region(sign: Signer, region: str) -> None:
    assert verified(sign(region=region)).region == region


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("sign", SIGNERS)
def test_methods(sign: Signer, method: str) -> None:
    check(sign(method, "/a"))


def test_parts_of_the_header_may_stand_in_any_order_and_with_any_white_space() -> None:
    request = by_botocore(body=b"body")
    algorithm, _, rest = request.headers["authorization"].partition(" ")
    credential, names, signature = rest.split(", ")
    for parts in (f"{signature},{names},{credential}", f" {names} ,\t{signature},  {credential}"):
        request.headers["authorization"] = f"{algorithm} {parts}"  # type: ignore[index]
        check(request)


# --- whole clients --------------------------------------------------------------------------------------------------


def client(service: str, key: AccessKey = ALICE, **options: Any) -> Any:
    return boto3.client(
        service, region_name=REGION, endpoint_url="http://127.0.0.1:9324", aws_access_key_id=key.id,
        aws_secret_access_key=key.secret, config=Config(retries={"total_max_attempts": 1}), **options,
    )


def sent(service: str, operation: str, key: AccessKey = ALICE, **arguments: Any) -> Request:
    """What a client is about to send; nothing goes on the network."""
    seen: list[Request] = []

    def take(request: Any, **_: Any) -> AWSResponse:
        seen.append(read_prepared(request))
        raw = type("Raw", (), {"stream": lambda *_: iter([b"{}"]), "read": lambda *_: b"{}"})()
        return AWSResponse(request.url, 200, {"content-type": "application/x-amz-json-1.0"}, raw)

    asking = client(service, key)
    asking.meta.events.register("before-send", take)
    with at(NOW):
        try:
            getattr(asking, operation)(**arguments)
        except Exception:
            # SNS waits for XML; what it was sent is all that this is about.
            assert service == "sns"
    assert len(seen) == 1
    return seen[0]


URL = "http://127.0.0.1:9324/111111111111/orders"
ENTRIES = [{"Id": str(number), "MessageBody": f"é 🐝 {number}"} for number in range(10)]
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("sqs", "list_queues", {}),
    ("sqs", "create_queue", {"QueueName": "orders", "Attributes": {"DelaySeconds": "5"}, "tags": {"a b": "c"}}),
    ("sqs", "send_message", {"QueueUrl": URL, "MessageBody": "ünï¢ødé 🐝\u2028\ttab"}),
    ("sqs", "send_message", {"QueueUrl": URL, "MessageBody": "x" * 1_000_000}),
    ("sqs", "send_message_batch", {"QueueUrl": URL, "Entries": ENTRIES}),
    ("sqs", "receive_message", {"QueueUrl": URL, "WaitTimeSeconds": 20}),
    ("sqs", "delete_message", {"QueueUrl": URL, "ReceiptHandle": "a+b/c=="}),
    ("sns", "publish", {"TopicArn": "arn:aws:sns:us-east-1:111111111111:t", "Message": "a b+c&d=é"}),
    ("sns", "list_topics", {}),
]


@pytest.fixture(params=["runtime", "botocore"])
def signer(request: pytest.FixtureRequest) -> Iterator[None]:
    """With the common runtime installed, clients leave the signing to it; without, botocore does it itself."""
    own = {"v4": SigV4Auth, "v4-query": SigV4QueryAuth} if request.param == "botocore" else {}
    with patch.dict(AUTH_TYPE_MAPS, own):
        yield


@pytest.mark.usefixtures("signer")
@pytest.mark.parametrize(("service", "operation", "arguments"), CALLS, ids=[f"{call[0]}.{call[1]}" for call in CALLS])
@pytest.mark.parametrize("key", [ALICE, BOB], ids=["Alice", "Bob"])
def test_clients(service: str, operation: str, arguments: dict[str, Any], key: AccessKey) -> None:
    request = sent(service, operation, key, **arguments)
    if service == "sqs":
        assert "x-amz-target" in request.headers["authorization"]
        assert isinstance(json.loads(request.body), dict)
    check(request, key, service)


@pytest.mark.usefixtures("signer")
def test_a_url_that_a_client_presigned() -> None:
    with at(NOW):
        url = client("sns").generate_presigned_url("publish", {"TopicArn": "arn:a", "Message": "a b+c"}, ExpiresIn=60)
    request = read_prepared(type("Prepared", (), {"url": url, "method": "POST", "headers": {}, "body": b""})())
    check(request, service="sns")
