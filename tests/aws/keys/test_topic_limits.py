"""What nobody reaches by way of a topic: queues that a key is not for, or that are another account's; and what a
topic's policy says, by whichever door it is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.aws.keys.keyed import Key, Keyed, refusal
from tests.aws.keys.test_topics import DENIED, RAW, Side

INVALID = (400, "InvalidParameter")


@pytest.fixture(scope="module")
def our(keyed_server: Keyed, shop: Key) -> Side:
    return Side(keyed_server, shop)


@pytest.fixture(scope="module")
def their(keyed_server: Keyed, partner: Key) -> Side:
    return Side(keyed_server, partner)


def _policy(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Resource": "*", **one} for one in statements]})


def _dead_letters(arn: str) -> str:
    return json.dumps({"deadLetterTargetArn": arn})


def test_a_limited_key_has_a_topic_send_to_no_queue_that_it_is_not_for(
    server: Keyed, our: Side, name: str
) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    (url, own), (_, secret) = our.queue(name), our.queue(f"secret-{name}")
    limited = server.client(server.key(our.key.account, queues=f"{name}*"), "sns")
    wanted: dict[str, Any] = {"TopicArn": topic, "Protocol": "sqs"}
    assert refusal(limited.subscribe, **wanted, Endpoint=secret) == DENIED
    to_secret = {"RedrivePolicy": _dead_letters(secret)}
    assert refusal(limited.subscribe, **wanted, Endpoint=own, Attributes=to_secret) == DENIED
    arn = limited.subscribe(**wanted, Endpoint=own, Attributes=RAW)["SubscriptionArn"]
    setting = {"SubscriptionArn": arn, "AttributeName": "RedrivePolicy"}
    assert refusal(limited.set_subscription_attributes, **setting, AttributeValue=_dead_letters(secret)) == DENIED
    limited.set_subscription_attributes(**setting, AttributeValue=_dead_letters(own))
    limited.publish(TopicArn=topic, Message="within its limits")
    assert our.received(url) == ["within its limits"]


def test_who_may_subscribe_to_a_topic_subscribes_no_queue_of_its_owner(our: Side, their: Side, name: str) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    (url, queue), (_, foreign) = our.queue(name), their.queue(name)
    our.sns.add_permission(TopicArn=topic, Label="s", AWSAccountId=[their.key.account], ActionName=["Subscribe"])
    wanted: dict[str, Any] = {"TopicArn": topic, "Protocol": "sqs"}
    assert refusal(their.sns.subscribe, **wanted, Endpoint=queue) == DENIED
    to_ours = {"RedrivePolicy": _dead_letters(queue)}
    assert refusal(their.sns.subscribe, **wanted, Endpoint=foreign, Attributes=to_ours) == DENIED
    agreed = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
    our.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": _policy(agreed)})
    assert their.sns.subscribe(**wanted, Endpoint=queue, Attributes=RAW)["SubscriptionArn"]
    our.sns.publish(TopicArn=topic, Message="agreed")
    assert our.received(url) == ["agreed"]


def test_dead_letters_of_a_subscription_stay_in_the_topics_account(our: Side, their: Side, name: str) -> None:
    """Nothing goes to a queue of the same name in the wrong account, where nobody looks for it."""
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    (_, queue), (_, foreign) = our.queue(name), their.queue(name)
    wanted: dict[str, Any] = {"TopicArn": topic, "Protocol": "sqs", "Endpoint": queue}
    elsewhere = {"RedrivePolicy": _dead_letters(foreign)}
    assert refusal(our.sns.subscribe, **wanted, Attributes=elsewhere) == INVALID
    arn = our.sns.subscribe(**wanted)["SubscriptionArn"]
    setting = {"SubscriptionArn": arn, "AttributeName": "RedrivePolicy", "AttributeValue": _dead_letters(foreign)}
    assert refusal(our.sns.set_subscription_attributes, **setting) == INVALID


def test_conditions_of_a_topics_policy_see_what_is_subscribed(our: Side, their: Side, name: str) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    (_, queue), (_, other) = their.queue(name), their.queue(f"other-{name}")
    anybody = {"Principal": "*", "Action": "sns:Subscribe"}

    def said(effect: str, condition: Mapping[str, Any]) -> None:
        statements = [{**anybody, "Effect": effect, "Condition": condition}]
        if effect == "Deny":
            statements.append({**anybody, "Effect": "Allow"})
        our.sns.set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=_policy(*statements))

    http = {"TopicArn": topic, "Protocol": "http", "Endpoint": "http://198.51.100.7/x"}
    said("Deny", {"StringEquals": {"sns:Protocol": "http"}})
    assert refusal(their.sns.subscribe, **http) == DENIED
    said("Allow", {"StringNotEquals": {"sns:Protocol": "http"}})
    assert refusal(their.sns.subscribe, **http) == DENIED
    said("Allow", {"StringEquals": {"sns:Protocol": "sqs"}, "StringLike": {"sns:Endpoint": f"arn:*:{name}"}})
    assert refusal(their.sns.subscribe, **http) == DENIED
    assert refusal(their.sns.subscribe, TopicArn=topic, Protocol="sqs", Endpoint=other) == DENIED
    assert their.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue)["SubscriptionArn"]


def test_a_denial_in_a_topics_policy_holds_at_every_door_and_can_be_mended(
    server: Keyed, our: Side, name: str
) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    nobody = _policy({"Effect": "Deny", "Principal": "*", "Action": "*"})
    our.sns.set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=nobody)
    assert refusal(our.sns.publish, TopicArn=topic, Message="x") == DENIED
    with server.rest(our.key) as rest:
        for answer in (
            rest.put(f"/topics/{name}/message", content=b"x"), rest.put(f"/topics/{name}/queues/{name}"),
            rest.delete(f"/topics/{name}"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        limited = server.client(server.key(our.key.account, queues=f"{name}*"), "sns")
        mending = {"TopicArn": topic, "AttributeName": "Policy", "AttributeValue": ""}
        assert refusal(limited.set_topic_attributes, **mending) == DENIED
        # Who may do anything is not locked out: the policy has no label by which it could be removed.
        assert our.sns.get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"] == nobody
        our.sns.set_topic_attributes(**mending)
        assert rest.put(f"/topics/{name}/message", content=b"x").status_code == 201
