"""A real server, and boto3 as it comes: nothing but the URL is ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.aws.old_client import OldClient
from tests.aws.queues import AwsQueue, client_of
from tests.aws.topics import AwsTopic
from tests.wire.server import RunningServer, running_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("aws")) as server:
        yield server


@pytest.fixture
def server(shared_server: RunningServer) -> Iterator[RunningServer]:
    """The server, whose store is healthy again afterwards."""
    yield shared_server
    shared_server.store.heal()


@pytest.fixture(scope="session")
def shared_sqs(shared_server: RunningServer) -> Any:
    return client_of(shared_server)


@pytest.fixture(scope="session")
def old_sqs(shared_sqs: Any) -> Iterator[Any]:
    with OldClient(shared_sqs) as client:
        yield client


@pytest.fixture(params=["json", "query"])
def sqs(request: pytest.FixtureRequest, server: RunningServer) -> Any:
    """A client of today, and one of before SQS spoke JSON: everything is seen through both."""
    return request.getfixturevalue("shared_sqs" if request.param == "json" else "old_sqs")


@pytest.fixture
def name() -> str:
    """A name that no queue has had."""
    return f"queue-{next(_numbers)}"


@pytest.fixture
def make(sqs: Any, server: RunningServer) -> Iterator[Callable[..., AwsQueue]]:
    """Makes a queue with these attributes. It goes with its test."""
    made: list[AwsQueue] = []

    def making(**attributes: object) -> AwsQueue:
        wanted = {key: str(value) for key, value in attributes.items()}
        url = sqs.create_queue(QueueName=f"queue-{next(_numbers)}", Attributes=wanted)["QueueUrl"]
        made.append(AwsQueue(sqs, url))
        return made[-1]

    yield making
    server.store.heal()
    for queue in made:
        queue.delete()


@pytest.fixture(scope="session")
def shared_sns(shared_server: RunningServer) -> Any:
    return client_of(shared_server, "sns")


@pytest.fixture
def sns(shared_sns: Any, server: RunningServer) -> Any:
    return shared_sns


@pytest.fixture
def make_topic(sns: Any, server: RunningServer) -> Iterator[Callable[..., AwsTopic]]:
    """Makes a topic with these attributes. It goes with its test."""
    made: list[AwsTopic] = []

    def making(**attributes: object) -> AwsTopic:
        wanted = {key: str(value) for key, value in attributes.items()}
        name = f"topic-{next(_numbers)}{'.fifo' if wanted.get('FifoTopic') == 'true' else ''}"
        made.append(AwsTopic(sns, sns.create_topic(Name=name, Attributes=wanted)["TopicArn"]))
        return made[-1]

    yield making
    server.store.heal()
    for topic in made:
        topic.delete()


@pytest.fixture
def make_queue(shared_sqs: Any, server: RunningServer) -> Iterator[Callable[..., AwsQueue]]:
    """As `make`, by one client: for tests that are about something else than how queues are spoken to."""
    made: list[AwsQueue] = []

    def making(fifo: bool = False, **attributes: object) -> AwsQueue:
        wanted = {key: str(value) for key, value in attributes.items()} | ({"FifoQueue": "true"} if fifo else {})
        name = f"queue-{next(_numbers)}{'.fifo' if fifo else ''}"
        made.append(AwsQueue(shared_sqs, shared_sqs.create_queue(QueueName=name, Attributes=wanted)["QueueUrl"]))
        return made[-1]

    yield making
    server.store.heal()
    for queue in made:
        queue.delete()
