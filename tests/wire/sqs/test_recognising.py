"""Which requests are for this door: one port serves REST, SQS and SNS."""

from __future__ import annotations

import pytest

from angelhair.server.aws.errors import AwsError, InvalidAction, MalformedQueryString, Protocol
from angelhair.server.http.messages import Request
from angelhair.server.sqs.answering import decode
from angelhair.server.sqs.errors import UnknownOperation
from angelhair.server.sqs.recognising import recognise
from tests.wire.sqs.amazon import request

FORM = {"content-type": "application/x-www-form-urlencoded"}
QUEUE = "/123456789012/orders"


def signed(service: str) -> dict[str, str]:
    return FORM | {"authorization": f"AWS4-HMAC-SHA256 Credential=AK/20260101/eu-west-1/{service}/aws4_request, Signed"}


@pytest.mark.parametrize(("given", "action"), [
    (request(headers=FORM, body=b"Action=ListQueues&Version=2012-11-05"), "ListQueues"),
    (request(headers=FORM, body=b"Version=2012-11-05&Action=Nonsense"), "Nonsense"),
    (request(headers=FORM, body=b"Action=ListQueues"), "ListQueues"),
    (request(headers=FORM, body=b"Action=ListQueues&Version=2009-02-01"), "ListQueues"),
    (request(headers=signed("sqs"), body=b"Action=AddPermission"), "AddPermission"),
    (request(headers=signed("sqs"), body=b"Action=Nonsense"), "Nonsense"),
    (request("GET", "/", "Action=ListQueues&Version=2012-11-05"), "ListQueues"),
    (request("POST", "/", "Action=ListQueues&Version=2012-11-05"), "ListQueues"),
    (request("GET", "/", "Action=AddPermission&X-Amz-Credential=A%2F1%2Feu%2Fsqs%2Faws4_request"), "AddPermission"),
    (request("GET", QUEUE, "Action=AddPermission"), "AddPermission"),
    (request("GET", QUEUE), ""),
    (request(path=QUEUE, headers=FORM, body=b"MessageBody=x"), ""),
])
def test_query_requests_of_ours(given: Request, action: str) -> None:
    asked = recognise(given)
    assert asked is not None
    assert (asked.protocol, asked.action) == (Protocol.QUERY, action)


@pytest.mark.parametrize(("target", "path"), [("AmazonSQS.SendMessage", "/"), ("AmazonSQS.SendMessage", QUEUE)])
def test_json_requests_of_ours(target: str, path: str) -> None:
    asked = recognise(request(path=path, headers={"x-amz-target": target}, body=b"{}"))
    assert asked == (Protocol.JSON, "SendMessage", None)


@pytest.mark.parametrize("given", [
    request("GET", "/"),
    request("GET", "/queues", "Action=ListQueues&Version=2012-11-05"),
    request("PUT", QUEUE, headers=FORM, body=b"Action=ListQueues&Version=2012-11-05"),
    request("DELETE", "/", "Action=ListQueues&Version=2012-11-05"),
    request(headers={"x-amz-target": "DynamoDB_20120810.ListTables"}, body=b"{}"),
    request(headers={"content-type": "application/json"}, body=b"Action=ListQueues&Version=2012-11-05"),
    request(headers=FORM, body=b"Action=ListTopics&Version=2010-03-31"),
    request(headers=FORM, body=b"Action=AddPermission&Version=2010-03-31"),
    request(headers=FORM, body=b"Action=AddPermission"),
    request(headers=FORM, body=b"Action=GetCallerIdentity&Version=2011-06-15"),
    request(headers=signed("sns"), body=b"Action=AddPermission"),
    request(headers=signed("sts"), body=b"Action=GetCallerIdentity"),
    request(headers=FORM, body=b"a=b"),
    request(headers=FORM),
])
def test_requests_for_others(given: Request) -> None:
    assert recognise(given) is None


@pytest.mark.parametrize(("given", "error"), [
    (request(headers={"x-amz-target": "AmazonSQS.Nonsense"}, body=b"{}"), UnknownOperation),
    (request(headers={"x-amz-target": "AmazonSQS."}, body=b"{}"), UnknownOperation),
    (request("GET", QUEUE), UnknownOperation),
    (request("GET", QUEUE, "Action=Nonsense"), InvalidAction),
    (request("GET", QUEUE, "Action=sendmessage"), InvalidAction),
])
def test_actions_that_there_are_not(given: Request, error: type[AwsError]) -> None:
    asked = recognise(given)
    assert asked is not None
    with pytest.raises(error):
        decode(asked, given)


@pytest.mark.parametrize("body", [b"Action=ListQueues&a=%ff", b"Action=ListQueues&\xff=1", b"a=1&" * 5000])
def test_forms_that_are_none(body: bytes) -> None:
    with pytest.raises(MalformedQueryString):
        recognise(request(headers=FORM, body=body))
