"""A queue as a user of boto3 has it, with the calls that tests make again and again."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from tests.wire.server import RunningServer


def client_of(server: RunningServer, service: str = "sqs") -> Any:
    return boto3.client(
        service, endpoint_url=server.url, region_name="eu-west-1", aws_access_key_id="AK",
        aws_secret_access_key="secret", config=Config(retries={"max_attempts": 0}, read_timeout=60),
    )


class AwsQueue:
    def __init__(self, sqs: Any, url: str) -> None:
        self.sqs = sqs
        self.url = url

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def arn(self) -> str:
        return self.attributes("QueueArn")["QueueArn"]

    def attributes(self, *names: str) -> dict[str, str]:
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(names) or ["All"])
        found: dict[str, str] = answer["Attributes"]
        return found

    def set(self, **attributes: object) -> None:
        wanted = {key: str(value) for key, value in attributes.items()}
        self.sqs.set_queue_attributes(QueueUrl=self.url, Attributes=wanted)

    def send(self, body: str = "hello", **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **more)
        return answer

    def receive(self, most: int = 10, **more: Any) -> list[dict[str, Any]]:
        answer = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=most, **more)
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

    def bodies(self, **more: Any) -> list[str]:
        return [message["Body"] for message in self.receive(**more)]

    def ack(self, message: dict[str, Any]) -> None:
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def hide(self, message: dict[str, Any], seconds: int) -> None:
        self.sqs.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )

    def delete(self) -> None:
        try:
            self.sqs.delete_queue(QueueUrl=self.url)
        except self.sqs.exceptions.QueueDoesNotExist:
            pass
