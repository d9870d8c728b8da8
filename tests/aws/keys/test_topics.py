"""Topics where requests are signed: whose they are, who else may use them, and what a link in a message can do."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from botocore import UNSIGNED

from tests.aws.keys.keyed import Key, Keyed, refusal, until

DENIED = (403, "AuthorizationError")


class Side:
    """An account's clients."""

    def __init__(self, server: Keyed, key: Key) -> None:
        self.key = key
        self.sqs, self.sns = server.client(key), server.client(key, "sns")

    def queue(self, name: str) -> tuple[str, str]:
        """Its URL and ARN."""
        url = self.sqs.create_queue(QueueName=name)["QueueUrl"]
        return url, f"arn:aws:sqs:eu-west-1:{self.key.account}:{name}"

    def received(self, url: str) -> list[str]:
        found = self.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MaxNumberOfMessages=10)["Messages"]
        for message in found:
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in found]


@pytest.fixture(scope="module")
def our(keyed_server: Keyed, shop: Key) -> Side:
    return Side(keyed_server, shop)


@pytest.fixture(scope="module")
def their(keyed_server: Keyed, partner: Key) -> Side:
    return Side(keyed_server, partner)


RAW = {"RawMessageDelivery": "true"}


def test_two_accounts_have_topics_of_one_name_and_see_their_own(our: Side, their: Side, name: str) -> None:
    for side in (our, their):
        topic = side.sns.create_topic(Name=name)["TopicArn"]
        assert topic == f"arn:aws:sns:eu-west-1:{side.key.account}:{name}"
        url, queue = side.queue(name)
        side.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue, Attributes=RAW)
        side.sns.publish(TopicArn=topic, Message=side.key.account)
        assert side.received(url) == [side.key.account]
        assert topic in [one["TopicArn"] for one in side.sns.list_topics()["Topics"]]
    others = {one["TopicArn"] for one in their.sns.list_topics()["Topics"]}
    assert not {one["TopicArn"] for one in our.sns.list_topics()["Topics"]} & others
    foreign = f"arn:aws:sns:eu-west-1:{our.key.account}:{name}"
    assert refusal(their.sns.publish, TopicArn=foreign, Message="x") == DENIED
    assert refusal(their.sns.delete_topic, TopicArn=foreign) == DENIED


def test_a_signature_is_asked_for_and_a_key_is_held_to_its_limits(server: Keyed, our: Side, name: str) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    unsigned = server.client(our.key, "sns", signature_version=UNSIGNED)
    assert refusal(unsigned.publish, TopicArn=topic, Message="x") == (403, "MissingAuthenticationToken")
    forged = server.client(Key(our.key.id, "wrong", our.key.account), "sns")
    assert refusal(forged.publish, TopicArn=topic, Message="x") == (403, "SignatureDoesNotMatch")
    limited = server.client(server.key(our.key.account, actions="Publish", queues=name), "sns")
    assert limited.publish(TopicArn=topic, Message="x")["MessageId"]
    entries = [{"Id": "a", "Message": "b"}]
    assert limited.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)["Successful"]
    assert refusal(limited.publish, TopicArn=f"{topic}-other", Message="x") == DENIED
    assert refusal(limited.create_topic, Name=name) == DENIED
    (made,) = until(lambda: server.lines("angelhair.audit", queue=name, event="administered"))
    assert (made["action"], made["outcome"], made["key"]) == ("CreateTopic", "done", our.key.id)


def test_a_permission_lets_another_account_publish(our: Side, their: Side, name: str) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    url, queue = our.queue(name)
    our.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue, Attributes=RAW)
    our.sns.add_permission(TopicArn=topic, Label="p", AWSAccountId=[their.key.account], ActionName=["Publish"])
    their.sns.publish(TopicArn=topic, Message="from the partner")
    assert our.received(url) == ["from the partner"]
    assert refusal(their.sns.get_topic_attributes, TopicArn=topic) == DENIED
    our.sns.remove_permission(TopicArn=topic, Label="p")
    assert refusal(their.sns.publish, TopicArn=topic, Message="x") == DENIED


def test_nobody_is_sent_what_they_did_not_agree_to(our: Side, their: Side, name: str) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    url, queue = their.queue(name)
    wanted: dict[str, Any] = {"TopicArn": topic, "Protocol": "sqs", "Endpoint": queue, "Attributes": RAW}
    assert refusal(our.sns.subscribe, **wanted) == DENIED
    statement = {
        "Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage",
        "Resource": queue, "Condition": {
            "ArnEquals": {"aws:SourceArn": topic},
            "StringEquals": {"aws:SourceArn": topic.replace("eu-west-1", "us-east-1")},
        },
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    their.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    arn = our.sns.subscribe(**wanted)["SubscriptionArn"]
    our.sns.publish(TopicArn=topic, Message="agreed")
    assert their.received(url) == ["agreed"]
    our.sns.unsubscribe(SubscriptionArn=arn)
    # Who owns the queue may subscribe it, where the topic lets them.
    their.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})
    assert refusal(their.sns.subscribe, **wanted) == DENIED
    our.sns.add_permission(TopicArn=topic, Label="s", AWSAccountId=[their.key.account], ActionName=["Subscribe"])
    their.sns.subscribe(**wanted)
    our.sns.publish(TopicArn=topic, Message="asked for")
    assert their.received(url) == ["asked for"]


def test_a_link_in_a_message_needs_no_key_and_cannot_be_made_up(our: Side, name: str) -> None:
    topic = our.sns.create_topic(Name=name)["TopicArn"]
    url, queue = our.queue(name)
    our.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue)
    our.sns.publish(TopicArn=topic, Message="x")
    link = json.loads(our.received(url)[0])["UnsubscribeURL"]
    for forged in (link[:-1] + ("0" if link[-1] != "0" else "1"), link.partition("&Token")[0]):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(forged)
        caught.value.close()
        assert caught.value.code == 403
    assert our.sns.get_topic_attributes(TopicArn=topic)["Attributes"]["SubscriptionsConfirmed"] == "1"
    with urllib.request.urlopen(link) as answer:
        assert answer.status == 200
    assert our.sns.get_topic_attributes(TopicArn=topic)["Attributes"]["SubscriptionsConfirmed"] == "0"
