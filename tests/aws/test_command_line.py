"""The AWS command line, as a process of its own: it is told the URL and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.wire.server import RunningServer

AWS = Path(sys.executable).with_name("aws")


class Aws:
    def __init__(self, server: RunningServer, home: Path) -> None:
        self._url = server.url
        self._environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "AWS_PAGER": "", "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1",
        }

    def run(self, *arguments: str, service: str = "sqs") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(AWS), "--endpoint-url", self._url, "--output", "json", service, *arguments], env=self._environment,
            capture_output=True, text=True, check=False, timeout=120,
        )

    def ask(self, *arguments: str, service: str = "sqs") -> Any:
        ran = self.run(*arguments, service=service)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout) if ran.stdout.strip() else None


@pytest.fixture
def aws(server: RunningServer, tmp_path: Path) -> Aws:
    return Aws(server, tmp_path)


def test_a_message_from_one_end_to_the_other(aws: Aws, name: str) -> None:
    url = aws.ask("create-queue", "--queue-name", name, "--attributes", "VisibilityTimeout=60")["QueueUrl"]
    assert url in aws.ask("list-queues", "--queue-name-prefix", name)["QueueUrls"]
    sent = aws.ask("send-message", "--queue-url", url, "--message-body", "hello")
    (message,) = aws.ask("receive-message", "--queue-url", url, "--attribute-names", "All")["Messages"]
    assert (message["Body"], message["MessageId"]) == ("hello", sent["MessageId"])
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    assert aws.ask("delete-message", "--queue-url", url, "--receipt-handle", message["ReceiptHandle"]) is None
    assert aws.ask("delete-queue", "--queue-url", url) is None


def test_a_publication_reaches_a_queue(aws: Aws, name: str) -> None:
    url = aws.ask("create-queue", "--queue-name", name)["QueueUrl"]
    queue = f"arn:aws:sqs:us-east-1:000000000000:{name}"
    topic = aws.ask("create-topic", "--name", name, service="sns")["TopicArn"]
    aws.ask(
        "subscribe", "--topic-arn", topic, "--protocol", "sqs", "--notification-endpoint", queue, "--attributes",
        "RawMessageDelivery=true", service="sns",
    )
    published = aws.ask("publish", "--topic-arn", topic, "--message", "hello", service="sns")
    assert len(published["MessageId"]) == 36
    (message,) = aws.ask("receive-message", "--queue-url", url, "--wait-time-seconds", "20")["Messages"]
    assert message["Body"] == "hello"


def test_a_refusal_is_said_in_words(aws: Aws, name: str) -> None:
    ran = aws.run("get-queue-url", "--queue-name", name)
    assert ran.returncode != 0
    assert "AWS.SimpleQueueService.NonExistentQueue" in ran.stderr
    assert "The specified queue does not exist." in ran.stderr
