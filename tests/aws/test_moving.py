"""Move tasks: started, held to a rate, cancelled, listed, and taken over from a server that is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from angelhair import limits
from angelhair.server.sqs.movers import Movers
from angelhair.server.sqs.tasks import MoveTask, adding, running
from angelhair.settings import ACCOUNT
from tests.aws.queues import AwsQueue
from tests.aws.test_queues import code_of, policy, text_of
from tests.wire.server import RunningServer

Make = Callable[..., AwsQueue]
PATIENCE_SECONDS = 60


@pytest.fixture
def dead(make: Make) -> AwsQueue:
    return make(VisibilityTimeout=0)


@pytest.fixture
def source(make: Make, dead: AwsQueue) -> AwsQueue:
    return make(RedrivePolicy=policy(dead, 1), VisibilityTimeout=0)


def bury(source: AwsQueue, dead: AwsQueue, count: int) -> None:
    """Sends messages and lets them die."""
    for number in range(count):
        source.send(str(number))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while dead.attributes()["ApproximateNumberOfMessages"] != str(count):
        source.receive()
        assert time.monotonic() < deadline, "they do not die"


def tasks(dead: AwsQueue, most: int = 10) -> list[dict[str, Any]]:
    answer = dead.sqs.list_message_move_tasks(SourceArn=dead.arn, MaxResults=most)
    found: list[dict[str, Any]] = answer.get("Results", [])
    return found


def ended(dead: AwsQueue) -> dict[str, Any]:
    """The newest task, once it is not running any more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (task := tasks(dead, 1)[0])["Status"] == "RUNNING":
        assert time.monotonic() < deadline, "the task does not end"
        time.sleep(0.1)
    return task


def left(queue: AwsQueue) -> int:
    return int(queue.attributes()["ApproximateNumberOfMessages"])


def test_back_to_where_they_came_from(source: AwsQueue, dead: AwsQueue) -> None:
    bury(source, dead, 5)
    source.set(VisibilityTimeout=600)
    assert dead.sqs.start_message_move_task(SourceArn=dead.arn)["TaskHandle"]
    task = ended(dead)
    assert task["Status"] == "COMPLETED"
    assert (task["ApproximateNumberOfMessagesMoved"], task["ApproximateNumberOfMessagesToMove"]) == (5, 5)
    assert (task["SourceArn"], "DestinationArn" in task, "TaskHandle" in task) == (dead.arn, False, False)
    assert abs(task["StartedTimestamp"] / 1000 - time.time()) < PATIENCE_SECONDS
    assert sorted(source.bodies()) == ["0", "1", "2", "3", "4"]
    assert left(dead) == 0


def test_back_into_a_timeline(make: Make, server: RunningServer, dead: AwsQueue) -> None:
    line = make(RedrivePolicy=policy(dead, 1), VisibilityTimeout=0, **{"Angelhair.Kind": "timeline"})
    server.run(server.service.change_queue(ACCOUNT, line.name, {"producer_delay_ms": 0}))
    bury(line, dead, 3)
    line.set(VisibilityTimeout=600)
    dead.sqs.start_message_move_task(SourceArn=dead.arn)
    task = ended(dead)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 3)
    found: set[str] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < 3:
        assert time.monotonic() < deadline
        found |= set(line.bodies())
    assert (found, left(dead)) == ({"0", "1", "2"}, 0)


def test_from_a_timeline_nothing_can_be_moved_and_what_to_do_is_said(make: Make) -> None:
    line = make(**{"Angelhair.Kind": "timeline"})
    make(RedrivePolicy=policy(line, 1))
    with pytest.raises(ClientError) as caught:
        line.sqs.start_message_move_task(SourceArn=line.arn)
    assert code_of(caught) == "InvalidParameterValue"
    assert "Source queue is a timeline" in text_of(caught) and "receive them" in text_of(caught)


def test_to_another_queue_at_a_rate_until_it_is_cancelled(
    make: Make, server: RunningServer, source: AwsQueue, dead: AwsQueue
) -> None:
    other = make()
    bury(source, dead, 6)
    handle = dead.sqs.start_message_move_task(
        SourceArn=dead.arn, DestinationArn=other.arn, MaxNumberOfMessagesPerSecond=1
    )["TaskHandle"]
    (task,) = tasks(dead)
    assert (task["Status"], task["TaskHandle"], task["DestinationArn"]) == ("RUNNING", handle, other.arn)
    assert task["MaxNumberOfMessagesPerSecond"] == 1
    with pytest.raises(ClientError) as caught:
        dead.sqs.start_message_move_task(SourceArn=dead.arn)
    assert text_of(caught).startswith("There is already a task running.")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not left(other):
        assert time.monotonic() < deadline
    moved = dead.sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    assert moved < 6
    assert [task["Status"] for task in tasks(dead)] == ["CANCELLED"]
    # What was under way when it was cancelled may still arrive; nothing more is begun.
    server.until(lambda: server.sqs.moving == 0)
    arrived = left(other)
    assert arrived <= moved + 2
    assert arrived + left(dead) == 6
    with pytest.raises(ClientError) as caught:
        dead.sqs.cancel_message_move_task(TaskHandle=handle)
    assert text_of(caught) == "Only active tasks can be cancelled."


def test_what_cannot_be_moved(make: Make, sqs: Any, source: AwsQueue, dead: AwsQueue) -> None:
    plain = make()
    with pytest.raises(ClientError) as caught:
        sqs.start_message_move_task(SourceArn=plain.arn)
    assert text_of(caught) == "Source queue must be configured as a Dead Letter Queue."
    for arns in ({"SourceArn": f"{dead.arn}x"}, {"SourceArn": dead.arn, "DestinationArn": f"{dead.arn}x"}):
        with pytest.raises(sqs.exceptions.ResourceNotFoundException):
            sqs.start_message_move_task(**arns)
    with pytest.raises(sqs.exceptions.ResourceNotFoundException):
        sqs.list_message_move_tasks(SourceArn=f"{dead.arn}x")
    with pytest.raises(ClientError) as caught:
        sqs.cancel_message_move_task(TaskHandle="never given out")
    assert code_of(caught) == "InvalidParameterValue"
    assert tasks(dead) == []


def test_ten_are_remembered_the_newest_first(source: AwsQueue, dead: AwsQueue) -> None:
    for _ in range(limits.AWS_MOVE_TASKS_LISTED + 1):
        dead.sqs.start_message_move_task(SourceArn=dead.arn)
        ended(dead)
    started = [task["StartedTimestamp"] for task in tasks(dead)]
    assert started == sorted(started, reverse=True)
    assert len(started) == limits.AWS_MOVE_TASKS_LISTED
    assert len(dead.sqs.list_message_move_tasks(SourceArn=dead.arn)["Results"]) == 1


def test_a_task_whose_server_is_gone_is_taken_over(
    server: RunningServer, source: AwsQueue, dead: AwsQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(source, dead, 3)
    monkeypatch.setattr(limits, "AWS_MOVE_TAKEOVER_SECONDS", 0.2)
    monkeypatch.setattr(limits, "AWS_MOVE_LOOK_SECONDS", 0.05)
    task = MoveTask("orphan", "RUNNING", int(time.time() * 1000), 3, owner="a server that is gone")

    async def adopt() -> Movers:
        await server.service.rewrite_queue(ACCOUNT, dead.name, adding(task, lambda _: AssertionError()))
        movers = Movers(server.service)
        movers.start()
        return movers

    movers = server.run(adopt())
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 3
    server.run(movers.stop())

    async def found() -> MoveTask | None:
        return running(await server.service.engine.find_queue(ACCOUNT, dead.name))

    assert server.run(found()) is None
