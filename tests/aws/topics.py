"""A topic as a user of boto3 has it, with the calls that tests make again and again."""

from __future__ import annotations

import json
from typing import Any

from tests.aws.queues import AwsQueue

WAIT_SECONDS = 20
"""How long a queue is waited for. What was published is there in milliseconds, unless it does not come at all."""


class AwsTopic:
    def __init__(self, sns: Any, arn: str) -> None:
        self.sns = sns
        self.arn = arn

    @property
    def name(self) -> str:
        return self.arn.rpartition(":")[2]

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = self.sns.get_topic_attributes(TopicArn=self.arn)["Attributes"]
        return found

    def set(self, name: str, value: str) -> None:
        self.sns.set_topic_attributes(TopicArn=self.arn, AttributeName=name, AttributeValue=value)

    def subscribe(self, queue: AwsQueue, **attributes: str) -> str:
        """The subscription's ARN."""
        answer = self.sns.subscribe(TopicArn=self.arn, Protocol="sqs", Endpoint=queue.arn, Attributes=attributes)
        return str(answer["SubscriptionArn"])

    def publish(self, message: str = "hello", **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.sns.publish(TopicArn=self.arn, Message=message, **more)
        return answer

    def delete(self) -> None:
        self.sns.delete_topic(TopicArn=self.arn)


def received(queue: AwsQueue, count: int = 1) -> list[dict[str, Any]]:
    """So many messages, which are acked."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        some = queue.receive(
            min(10, count - len(found)),
            WaitTimeSeconds=WAIT_SECONDS, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"]
        )
        assert some, f"{len(found)} of {count} messages came"
        for message in some:
            queue.ack(message)
        found += some
    return found


def bodies(queue: AwsQueue, count: int = 1) -> list[str]:
    return [message["Body"] for message in received(queue, count)]


def notification(queue: AwsQueue) -> dict[str, Any]:
    """The next message, which is one of SNS's around what was published."""
    (message,) = received(queue)
    found: dict[str, Any] = json.loads(message["Body"])
    return found


def text(value: str, kind: str = "String") -> dict[str, str]:
    return {"DataType": kind, "StringValue": value}
