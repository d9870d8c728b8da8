"""Access keys as boto3 meets them, in both protocols, on a server in a process of its own."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.aws.keys.keyed import DENIED, Key, Keyed, refusal, sign_at, until


def test_a_key_owns_what_its_account_has(server: Keyed, ours: Any, shop: Key, name: str) -> None:
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    assert urlsplit(url).path == f"/{shop.account}/{name}"
    ours.send_message(QueueUrl=url, MessageBody="hello")
    (message,) = ours.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]
    assert (message["Body"], message["Attributes"]["SenderId"]) == ("hello", shop.id)
    ours.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    attributes = ours.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    assert attributes["QueueArn"] == f"arn:aws:sqs:eu-west-1:{shop.account}:{name}"


def test_wrong_keys_are_refused(server: Keyed, protocol: str, shop: Key) -> None:
    for key, refused in (
        (Key("AHKINOBODY0000000000", shop.secret, ""), (403, "InvalidClientTokenId")),
        (Key(shop.id, "another secret", ""), (403, "SignatureDoesNotMatch")),
    ):
        with server.spoken(protocol, key) as client:
            assert refusal(client.list_queues) == refused


def test_nobody_is_let_in_without_a_signature(server: Keyed) -> None:
    query = httpx.post(server.url, data={"Action": "ListQueues", "Version": "2012-11-05"})
    assert query.status_code == 403 and "<Code>MissingAuthenticationToken</Code>" in query.text
    said = httpx.post(server.url, content=b"{}", headers={"x-amz-target": "AmazonSQS.ListQueues"})
    assert said.status_code == 403
    assert said.json()["__type"] == "com.amazon.coral.service#MissingAuthenticationTokenException"
    assert said.headers["x-amzn-query-error"] == "MissingAuthenticationToken;Sender"
    damaged = {"x-amz-target": "AmazonSQS.ListQueues", "authorization": "AWS4-HMAC-SHA256 Credential=a"}
    answer = httpx.post(server.url, content=b"{}", headers=damaged)
    assert (answer.status_code, answer.headers["x-amzn-query-error"]) == (400, "IncompleteSignature;Sender")


def test_what_tells_of_the_server_itself_is_open(server: Keyed) -> None:
    for path in ("/", "/docs", "/openapi.json", "/health/live", "/health/ready", "/metrics"):
        assert httpx.get(server.url + path).status_code == 200
    assert httpx.get(f"{server.url}/queues").status_code == 401


def test_a_new_key_works_at_once_a_disabled_one_soon_not_and_another_takes_over(server: Keyed) -> None:
    """Rotation: the second key is made while the first is in use, and only then the first is disabled."""
    account = server.account("rotating")
    first = server.key(account)
    one = server.client(first)
    url = one.create_queue(QueueName="orders")["QueueUrl"]
    second = server.key(account)
    other = server.client(second)
    other.send_message(QueueUrl=url, MessageBody="by the second")
    one.send_message(QueueUrl=url, MessageBody="by the first")
    server.run("key", "disable", first.id)

    def refused() -> bool:
        try:
            one.list_queues()
        except one.exceptions.ClientError as error:
            return bool(error.response["Error"]["Code"] == "InvalidClientTokenId")
        return False

    until(refused)
    with server.rest(first) as line:
        assert line.get("/queues").status_code == 401
    assert other.list_queues()["QueueUrls"] == [url]
    server.run("key", "enable", first.id)
    until(lambda: not refused())
    server.run("key", "delete", first.id)
    until(refused)
    assert [line["id"] for line in server.run("key", "list", "--account", account)["keys"]] == [second.id]
    other.delete_queue(QueueUrl=url)


def test_clocks_may_differ_by_a_quarter_of_an_hour(server: Keyed, shop: Key) -> None:
    sqs = server.client(shop)
    now = time.time()
    for ahead, good in ((0, True), (-800, True), (800, True), (-1000, False), (1000, False)):
        signed = AWSRequest("POST", server.url + "/", {"x-amz-target": "AmazonSQS.ListQueues"}, b"{}")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now + ahead))
        sign_at(signed, shop, stamp)
        answer = httpx.post(server.url + "/", content=b"{}", headers=dict(signed.headers))
        assert (answer.status_code == 200) is good, answer.text
        if not good:
            assert answer.headers["x-amzn-query-error"] == "SignatureDoesNotMatch;Sender"
            assert "Signature" in answer.json()["message"]
    assert sqs.list_queues()


def test_a_presigned_url_is_good_for_what_it_was_made_for(server: Keyed, shop: Key, partner: Key, name: str) -> None:
    url = server.client(shop).create_queue(QueueName=name)["QueueUrl"]

    def presigned(key: Key, seconds: int = 60, body: str = "hello") -> str:
        wanted = AWSRequest("GET", f"{url}?Action=SendMessage&Version=2012-11-05&MessageBody={body}")
        SigV4QueryAuth(Credentials(key.id, key.secret), "sqs", "eu-west-1", expires=seconds).add_auth(wanted)
        return str(wanted.url)

    good = presigned(shop)
    assert "<MessageId>" in httpx.get(good).text
    spoiled = httpx.get(good.replace("MessageBody=hello", "MessageBody=other"))
    assert spoiled.status_code == 403 and "<Code>SignatureDoesNotMatch</Code>" in spoiled.text
    assert httpx.post(good).status_code == 403, "it was made for GET"
    foreign = httpx.get(presigned(partner))
    assert foreign.status_code == 403 and "<Code>AccessDenied</Code>" in foreign.text
    short = presigned(shop, 1)
    time.sleep(2.1)
    late = httpx.get(short)
    assert late.status_code == 403 and "Signature expired" in late.text
    (message,) = server.client(shop).receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert message["Body"] == "hello"


def test_tools_learn_who_they_are(server: Keyed, shop: Key) -> None:
    said = server.client(shop, "sts").get_caller_identity()
    assert (said["Account"], said["UserId"]) == (shop.account, shop.id)
    assert said["Arn"] == f"arn:aws:iam::{shop.account}:user/{shop.id}"
    wrong = server.client(Key(shop.id, "another", ""), "sts")
    assert refusal(wrong.get_caller_identity) == (403, "SignatureDoesNotMatch")
    # Signed for one service, a request is none of another's.
    signed = AWSRequest("POST", server.url + "/", {"x-amz-target": "AmazonSQS.ListQueues"}, b"{}")
    sign_at(signed, shop, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), "sts")
    assert httpx.post(server.url + "/", content=b"{}", headers=dict(signed.headers)).status_code == 403


# --- what a key is limited to ----------------------------------------------------------------------------------------


def test_a_key_is_for_its_queues_and_its_actions(server: Keyed, protocol: str, ours: Any, shop: Key) -> None:
    urls = {
        short: ours.create_queue(QueueName=f"{short}-{protocol}")["QueueUrl"] for short in ("orders", "other", "dead")
    }
    limited = server.key(shop.account, queues="orders*,dead-*", actions="SendMessage,GetQueueUrl,SetQueueAttributes")
    with server.spoken(protocol, limited) as client:
        client.send_message(QueueUrl=urls["orders"], MessageBody="x")
        entries = [{"Id": "1", "MessageBody": "x"}]
        assert client.send_message_batch(QueueUrl=urls["orders"], Entries=entries)["Successful"]
        assert client.get_queue_url(QueueName=f"orders-{protocol}")["QueueUrl"] == urls["orders"]
        assert refusal(client.send_message, QueueUrl=urls["other"], MessageBody="x") == DENIED
        assert refusal(client.get_queue_url, QueueName=f"other-{protocol}") == DENIED
        assert refusal(client.receive_message, QueueUrl=urls["orders"]) == DENIED
        assert refusal(client.list_queues) == DENIED
        assert refusal(client.create_queue, QueueName="orders-2") == DENIED
        assert refusal(client.send_message, QueueUrl=f"{server.url}/{shop.account}/none", MessageBody="x") == DENIED
        # Where a queue's dead letters go is a queue that it makes use of.
        for short, good in (("dead", True), ("other", False)):
            arn = f"arn:aws:sqs:eu-west-1:{shop.account}:{short}-{protocol}"
            policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"})
            wanted = {"QueueUrl": urls["orders"], "Attributes": {"RedrivePolicy": policy}}
            if good:
                client.set_queue_attributes(**wanted)
            else:
                assert refusal(client.set_queue_attributes, **wanted) == DENIED
    for url in urls.values():
        ours.delete_queue(QueueUrl=url)
