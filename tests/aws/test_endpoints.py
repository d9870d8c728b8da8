"""HTTP endpoints: asked whether they want it, posted to, tried again, given up; and where nobody is sent to."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from angelhair import limits
from angelhair.server.sns.deliveries.courier import Courier
from angelhair.server.sns.deliveries.places import Forbidden, Places, is_public
from angelhair.settings import ACCOUNT
from tests.aws.listener import Listener, listening
from tests.aws.queues import AwsQueue
from tests.aws.test_publishing import verify
from tests.aws.topics import AwsTopic, bodies, notification, text
from tests.wire.server import RunningServer

Make = Callable[..., AwsTopic]
MakeQueue = Callable[..., AwsQueue]

AT_ONCE = json.dumps({
    "healthyRetryPolicy": {"minDelayTarget": 1, "maxDelayTarget": 1, "numRetries": 2, "numNoDelayRetries": 2}
})
"""Two more tries, without a pause."""


@pytest.fixture
def endpoint() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


def subscribe(topic: AwsTopic, endpoint: Listener, **attributes: str) -> str:
    """Asked for and confirmed; the subscription's ARN."""
    topic.sns.subscribe(TopicArn=topic.arn, Protocol="http", Endpoint=endpoint.url, Attributes=attributes)
    token = endpoint.next().message["Token"]
    return str(topic.sns.confirm_subscription(TopicArn=topic.arn, Token=token)["SubscriptionArn"])


def test_an_endpoint_is_asked_and_gets_nothing_before_it_agrees(
    sns: Any, make_topic: Make, make_queue: MakeQueue, endpoint: Listener
) -> None:
    topic, queue = make_topic(), make_queue()
    topic.subscribe(queue, RawMessageDelivery="true")
    answer = sns.subscribe(TopicArn=topic.arn, Protocol="http", Endpoint=endpoint.url)
    assert answer["SubscriptionArn"] == "pending confirmation"
    asked = endpoint.next()
    assert asked.path == "/inbox?from=topic"
    assert asked.headers["x-amz-sns-message-type"] == "SubscriptionConfirmation"
    assert asked.headers["x-amz-sns-topic-arn"] == topic.arn
    assert asked.headers["content-type"] == "text/plain; charset=UTF-8"
    assert asked.message["Type"] == "SubscriptionConfirmation"
    assert topic.arn in urllib.parse.unquote(asked.message["SubscribeURL"])
    verify(asked.message)
    said = topic.attributes()
    assert (said["SubscriptionsPending"], said["SubscriptionsConfirmed"]) == ("1", "1")
    topic.publish("too early")
    assert bodies(queue) == ["too early"]
    listed = sns.list_subscriptions_by_topic(TopicArn=topic.arn)["Subscriptions"]
    assert "PendingConfirmation" in [one["SubscriptionArn"] for one in listed]
    with pytest.raises(sns.exceptions.InvalidParameterException, match="Token"):
        sns.confirm_subscription(TopicArn=topic.arn, Token="made-up")
    # As a person does it, or an endpoint by itself: by the link.
    with urllib.request.urlopen(asked.message["SubscribeURL"]) as confirmed:
        arn = confirmed.read().decode().partition("<SubscriptionArn>")[2].partition("<")[0]
    assert sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]["PendingConfirmation"] == "false"
    assert sns.confirm_subscription(TopicArn=topic.arn, Token=asked.message["Token"])["SubscriptionArn"] == arn
    topic.publish("in time")
    assert endpoint.next().message["Message"] == "in time"
    assert endpoint.sent.empty()


def test_asked_again_when_subscribed_again_and_too_late_after_days(
    sns: Any, server: RunningServer, make_topic: Make, endpoint: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    wanted = {"TopicArn": topic.arn, "Protocol": "http", "Endpoint": endpoint.url}
    arn = sns.subscribe(**wanted, ReturnSubscriptionArn=True)["SubscriptionArn"]
    assert arn.startswith(f"{topic.arn}:")
    first = endpoint.next().message["Token"]
    sns.subscribe(**wanted)
    assert endpoint.next().message["Token"] == first
    monkeypatch.setattr(limits, "SNS_TOKEN_SECONDS", -1)
    with pytest.raises(sns.exceptions.InvalidParameterException, match="expired"):
        sns.confirm_subscription(TopicArn=topic.arn, Token=first)
    assert sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]["PendingConfirmation"] == "true"


def test_a_notification_is_posted_and_signed(make_topic: Make, endpoint: Listener) -> None:
    topic = make_topic(SignatureVersion="2")
    arn = subscribe(topic, endpoint)
    published = topic.publish("hello", Subject="s", MessageAttributes={"a": text("b")})
    sent = endpoint.next()
    assert sent.headers["x-amz-sns-message-type"] == "Notification"
    assert sent.headers["x-amz-sns-message-id"] == published["MessageId"] == sent.message["MessageId"]
    assert sent.headers["x-amz-sns-subscription-arn"] == arn
    assert sent.headers["user-agent"] == "Amazon Simple Notification Service Agent"
    assert "x-amz-sns-rawdelivery" not in sent.headers
    assert (sent.message["Message"], sent.message["Subject"]) == ("hello", "s")
    assert sent.message["MessageAttributes"] == {"a": {"Type": "String", "Value": "b"}}
    verify(sent.message)


def test_raw_it_is_posted_as_it_was_published(make_topic: Make, endpoint: Listener) -> None:
    topic = make_topic()
    subscribe(topic, endpoint, RawMessageDelivery="true")
    topic.publish(json.dumps({"default": "d", "http": "for endpoints"}), MessageStructure="json")
    sent = endpoint.next()
    assert (sent.body, sent.headers["x-amz-sns-rawdelivery"]) == ("for endpoints", "true")


def test_tried_again_until_it_is_taken(
    server: RunningServer, make_topic: Make, endpoint: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    monkeypatch.setattr(server.service.topics, "count", lambda event, count: counts.update({event: count}))
    topic = make_topic()
    subscribe(topic, endpoint, DeliveryPolicy=AT_ONCE)
    endpoint.answer(500, 429)
    topic.publish("persistent")
    assert [endpoint.next().message["Message"] for _ in range(3)] == ["persistent"] * 3
    topic.publish("next")
    assert endpoint.next().message["Message"] == "next"
    # The question whether it wants to be subscribed was posted too.
    server.until(lambda: counts["posted"] == 3)
    assert (counts["published"], counts["retried"], counts["dropped"]) == (2, 2, 0)


@pytest.mark.parametrize("answers", [(503, 503, 503), (403,), (302,) * 3])
def test_given_up_it_goes_to_the_dead_letters(
    make_topic: Make, make_queue: MakeQueue, endpoint: Listener, answers: tuple[int, ...]
) -> None:
    topic, dead = make_topic(), make_queue()
    redrive = json.dumps({"deadLetterTargetArn": dead.arn})
    subscribe(topic, endpoint, DeliveryPolicy=AT_ONCE, RedrivePolicy=redrive)
    # A redirection leads nowhere: who follows it could be led anywhere.
    endpoint.answer(*answers, location=endpoint.url.replace("inbox", "elsewhere"))
    topic.publish("unwanted")
    assert notification(dead)["Message"] == "unwanted"
    assert {endpoint.next().path for _ in answers} == {"/inbox?from=topic"}
    assert endpoint.sent.empty()


def test_no_log_has_more_of_an_endpoint_than_its_host(
    server: RunningServer, make_topic: Make, endpoint: Listener, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Path and query are all that keeps others from posting to many an endpoint."""
    counts: Counter[str] = Counter()
    monkeypatch.setattr(server.service.topics, "count", lambda event, count: counts.update({event: count}))
    topic = make_topic()
    subscribe(topic, endpoint, DeliveryPolicy=AT_ONCE)
    endpoint.answer(500, 500, 500)
    with caplog.at_level("INFO", "angelhair"):
        topic.publish("unwanted")
        server.until(lambda: counts["dropped"] == 1)
    host = endpoint.url.partition("/inbox")[0]
    lines = [record.getMessage() for record in caplog.records if host in record.getMessage()]
    assert [line.split(": ")[0] for line in lines] == [
        *[f"{host} is tried again in 0 seconds"] * 2,
        f"a message of topic {topic.arn.split(':')[-1]} is dropped for {host}",
    ]
    assert "inbox" not in caplog.text and "from=topic" not in caplog.text


def test_the_link_in_a_message_unsubscribes(sns: Any, make_topic: Make, endpoint: Listener) -> None:
    topic = make_topic()
    arn = subscribe(topic, endpoint)
    topic.publish("bye")
    with urllib.request.urlopen(endpoint.next().message["UnsubscribeURL"]) as answer:
        assert answer.status == 200
    farewell = endpoint.next().message
    assert farewell["Type"] == "UnsubscribeConfirmation"
    verify(farewell)
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.get_subscription_attributes(SubscriptionArn=arn)


def test_a_delivery_that_its_server_did_not_live_to_make_is_made(
    server: RunningServer, make_topic: Make, endpoint: Listener
) -> None:
    topic = make_topic()
    subscribe(topic, endpoint)
    desk = server.sns.desk
    server.run(desk.courier.stop())
    topic.publish("left behind")
    server.until(lambda: server.service.topics.spread_total > 0)

    async def another_server() -> None:
        desk.courier = Courier(server.service, desk.envelopes, desk.places)
        desk.courier.start(ACCOUNT)

    assert endpoint.sent.empty()
    server.run(another_server())
    assert endpoint.next().message["Message"] == "left behind"


# --- where nobody is sent to ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
     "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
     "2002:7f00:1::", "nonsense", "fec0::1", "::127.0.0.1", "4000::1", "5f00::1"],
)
def test_an_address_of_this_network(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8"])
def test_an_address_of_the_internet(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://localhost:9/", "http://[::1]/", "http://2130706433/", "http://0x7f.1/"]
)
def test_an_endpoint_of_this_network_is_refused_unless_it_is_allowed(url: str) -> None:
    async def look(allow_private: bool) -> str:
        return (await Places(allow_private).find(url)).address

    with pytest.raises(Forbidden):
        asyncio.run(look(allow_private=False))
    assert asyncio.run(look(allow_private=True)) in ("127.0.0.1", "::1")


def test_every_address_of_a_name_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_addresses(*_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]

    async def look() -> None:
        monkeypatch.setattr(socket, "getaddrinfo", two_addresses)
        await Places(allow_private=False).find("http://both.example/")

    with pytest.raises(Forbidden):
        asyncio.run(look())
