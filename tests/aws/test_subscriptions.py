"""Subscriptions of queues, as boto3 sees them: once each, listed, changed, with filters and dead letters, undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from angelhair import limits
from tests.aws.queues import AwsQueue
from tests.aws.topics import AwsTopic, bodies, notification, received, text

Make = Callable[..., AwsTopic]
MakeQueue = Callable[..., AwsQueue]


def test_subscribed_once_however_often_it_is_asked_for(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(), make_queue()
    arn = topic.subscribe(queue, RawMessageDelivery="true")
    assert arn.startswith(f"{topic.arn}:")
    assert topic.subscribe(queue) == arn
    assert topic.subscribe(queue, RawMessageDelivery="true") == arn
    policy = '{"a": [1, {"exists": false}]}'
    sns.set_subscription_attributes(SubscriptionArn=arn, AttributeName="FilterPolicy", AttributeValue=policy)
    assert topic.subscribe(queue, RawMessageDelivery="true") == arn, "only what is named is compared"
    for other in ({"RawMessageDelivery": "false"}, {"FilterPolicy": '{"b": [1]}'}, {"DeliveryPolicy": "{}"}):
        with pytest.raises(sns.exceptions.InvalidParameterException, match="already exists with different attributes"):
            topic.subscribe(queue, **other)
    topic.publish("one")
    assert bodies(queue) == ["one"]
    assert queue.receive() == []
    assert topic.attributes()["SubscriptionsConfirmed"] == "1"


def test_listed_by_topic_and_all_of_them_in_pages(
    sns: Any, make_topic: Make, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SNS_PAGE", 2)
    topics, queues = [make_topic() for _ in range(3)], [make_queue() for _ in range(3)]
    made = {topic.subscribe(queue): (topic.arn, queue.arn) for topic in topics for queue in queues}
    pages = list(sns.get_paginator("list_subscriptions").paginate())
    listed = [one for page in pages for one in page["Subscriptions"]]
    assert {one["SubscriptionArn"]: (one["TopicArn"], one["Endpoint"]) for one in listed}.items() >= made.items()
    assert len(listed) == len({one["SubscriptionArn"] for one in listed})
    assert max(len(page["Subscriptions"]) for page in pages) == 2
    assert {one["Protocol"] for one in listed} == {"sqs"}
    pages = list(sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topics[1].arn))
    assert sorted(one["Endpoint"] for page in pages for one in page["Subscriptions"]) == sorted(q.arn for q in queues)
    assert len(pages) == 2


def test_attributes_of_a_subscription(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue, dead = make_topic(), make_queue(), make_queue()
    arn = topic.subscribe(queue)

    def change(name: str, value: str) -> None:
        sns.set_subscription_attributes(SubscriptionArn=arn, AttributeName=name, AttributeValue=value)

    def said() -> dict[str, str]:
        found: dict[str, str] = sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
        return found

    assert said() == {
        "SubscriptionArn": arn, "TopicArn": topic.arn, "Owner": "000000000000", "Protocol": "sqs",
        "Endpoint": queue.arn, "PendingConfirmation": "false", "ConfirmationWasAuthenticated": "true",
        "SubscriptionPrincipal": "arn:aws:iam::000000000000:root", "RawMessageDelivery": "false",
    }
    change("RawMessageDelivery", "true")
    change("FilterPolicy", '{"a": ["b"]}')
    change("RedrivePolicy", json.dumps({"deadLetterTargetArn": dead.arn}))
    change("DeliveryPolicy", '{"healthyRetryPolicy": {"numRetries": 7}}')
    change("SubscriptionRoleArn", "arn:aws:iam::000000000000:role/r")
    found = said()
    assert (found["RawMessageDelivery"], found["FilterPolicy"]) == ("true", '{"a": ["b"]}')
    assert found["FilterPolicyScope"] == "MessageAttributes"
    assert json.loads(found["RedrivePolicy"]) == {"deadLetterTargetArn": dead.arn}
    assert (found["DeliveryPolicy"], found["SubscriptionRoleArn"]) == (
        '{"healthyRetryPolicy": {"numRetries": 7}}', "arn:aws:iam::000000000000:role/r"
    )
    change("FilterPolicy", "{}")
    change("RedrivePolicy", "")
    assert not {"FilterPolicy", "RedrivePolicy"} & said().keys()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [("Unheard", "1", "AttributeName"), ("RawMessageDelivery", "maybe", "Must be true or false"),
     ("FilterPolicy", "{", "FilterPolicy: failed to parse JSON"), ("FilterPolicyScope", "Both", "FilterPolicyScope"),
     ("FilterPolicy", '{"a": {"b": ["c"]}}', "does not support nested filter policy"),
     ("RedrivePolicy", "{}", "deadLetterTargetArn"), ("ReplayPolicy", "{}", "not served here"),
     ("DeliveryPolicy", '{"healthyRetryPolicy": {"numRetries": "many"}}', "DeliveryPolicy")],
)
def test_an_attribute_that_cannot_be_set(
    sns: Any, make_topic: Make, make_queue: MakeQueue, name: str, value: str, reason: str
) -> None:
    arn = make_topic().subscribe(make_queue())
    before = sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    with pytest.raises(sns.exceptions.InvalidParameterException, match=reason):
        sns.set_subscription_attributes(SubscriptionArn=arn, AttributeName=name, AttributeValue=value)
    assert sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"] == before


def test_unsubscribed_it_gets_nothing_more(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic, leaving, staying = make_topic(), make_queue(), make_queue()
    arn = topic.subscribe(leaving, RawMessageDelivery="true")
    topic.subscribe(staying, RawMessageDelivery="true")
    sns.unsubscribe(SubscriptionArn=arn)
    sns.unsubscribe(SubscriptionArn=arn)
    topic.publish("late")
    assert bodies(staying) == ["late"]
    assert leaving.receive() == []
    with pytest.raises(sns.exceptions.NotFoundException, match="Subscription does not exist"):
        sns.get_subscription_attributes(SubscriptionArn=arn)
    with pytest.raises(sns.exceptions.InvalidParameterException, match="An ARN must have at least 6 elements"):
        sns.unsubscribe(SubscriptionArn="pending confirmation")


def test_a_filter_policy_over_attributes(make_topic: Make, make_queue: MakeQueue) -> None:
    topic, wanted, rest = make_topic(), make_queue(), make_queue()
    policy = json.dumps({"store": ["example"], "price": [{"numeric": [">=", 100]}], "list": [{"exists": False}]})
    topic.subscribe(wanted, FilterPolicy=policy, RawMessageDelivery="true")
    topic.subscribe(rest, FilterPolicy='{"tags": ["b"]}', RawMessageDelivery="true")
    store, dear = text("example"), text("150.5", "Number")
    topic.publish("cheap", MessageAttributes={"store": store, "price": text("99", "Number")})
    topic.publish("listed", MessageAttributes={"store": store, "price": dear, "list": text('["a"]', "String.Array")})
    topic.publish("bare")
    topic.publish("wanted", MessageAttributes={"store": store, "price": dear})
    topic.publish("tagged", MessageAttributes={"tags": text('["a", "b"]', "String.Array")})
    assert bodies(wanted) == ["wanted"]
    assert bodies(rest) == ["tagged"]
    assert (wanted.receive(), rest.receive()) == ([], [])


def test_a_filter_policy_over_the_body(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic, queue = make_topic(), make_queue()
    policy = json.dumps({"order": {"state": ["paid"], "items": {"kind": [{"prefix": "book"}]}}})
    arn = topic.subscribe(queue, FilterPolicy=policy, FilterPolicyScope="MessageBody", RawMessageDelivery="true")
    wanted = json.dumps({"order": {"state": "paid", "items": [{"kind": "pen"}, {"kind": "bookmark"}]}})
    topic.publish("no JSON")
    topic.publish(json.dumps({"order": {"state": "open", "items": [{"kind": "book"}]}}))
    topic.publish(wanted)
    assert bodies(queue) == [wanted]
    sns.set_subscription_attributes(SubscriptionArn=arn, AttributeName="FilterPolicy", AttributeValue="{}")
    topic.publish("now anything")
    assert bodies(queue) == ["now anything"]
    assert queue.receive() == []


def test_what_cannot_be_delivered_goes_to_the_subscriptions_dead_letters(
    make_topic: Make, make_queue: MakeQueue
) -> None:
    topic, gone, dead, other = make_topic(), make_queue(), make_queue(), make_queue()
    topic.subscribe(gone, RedrivePolicy=json.dumps({"deadLetterTargetArn": dead.arn}))
    topic.subscribe(other, RawMessageDelivery="true")
    gone.delete()
    topic.publish("undeliverable", MessageAttributes={"why": text("because")})
    assert bodies(other) == ["undeliverable"]
    found = notification(dead)
    assert (found["Message"], found["MessageAttributes"]["why"]["Value"]) == ("undeliverable", "because")
    assert other.receive() == []


def test_endpoints_that_cannot_be_subscribed(sns: Any, make_topic: Make, make_queue: MakeQueue) -> None:
    topic, fifo_topic, fifo = make_topic(), make_topic(FifoTopic="true"), make_queue(fifo=True)
    for protocol, endpoint, reason in [
        ("sqs", "queue", "SQS endpoint ARN"), ("sqs", fifo.arn, "FIFO SQS Queues can not be subscribed to standard"),
        ("carrier-pigeon", "coop", "does not support this protocol string"), ("email", "a@b.c", "not served here"),
        ("http", "https://example.com/", "Endpoint must match the specified protocol"),
        ("http", "http://", "Endpoint"), ("https", "https://a b/", "Endpoint"),
    ]:
        with pytest.raises(sns.exceptions.InvalidParameterException, match=reason):
            sns.subscribe(TopicArn=topic.arn, Protocol=protocol, Endpoint=endpoint)
    with pytest.raises(sns.exceptions.InvalidParameterException, match="FIFO topics do not deliver"):
        sns.subscribe(TopicArn=fifo_topic.arn, Protocol="http", Endpoint="http://example.com/")
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.subscribe(TopicArn=f"{topic.arn}-unheard", Protocol="sqs", Endpoint=make_queue().arn)
    assert topic.attributes()["SubscriptionsConfirmed"] == "0"


def test_as_many_subscriptions_as_a_topic_can_have(
    sns: Any, make_topic: Make, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    topic.subscribe(make_queue())
    monkeypatch.setattr(limits, "SUBSCRIPTIONS", 1)
    with pytest.raises(sns.exceptions.SubscriptionLimitExceededException):
        topic.subscribe(make_queue())


def test_one_topic_to_many_queues_of_both_kinds_of_client(make_topic: Make, make: Callable[..., AwsQueue]) -> None:
    topic, queue = make_topic(), make()
    topic.subscribe(queue, RawMessageDelivery="true")
    topic.publish("raw", MessageAttributes={"colour": text("red"), "size": text("3", "Number")})
    (message,) = received(queue)
    assert message["Body"] == "raw"
    assert message["MessageAttributes"] == {"colour": text("red"), "size": text("3", "Number")}
