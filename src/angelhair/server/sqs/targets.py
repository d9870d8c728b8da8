"""Which queues a request is about, before anything is done with them: what the gate has to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from angelhair.server.aws.arns import parse_arn
from angelhair.server.sqs import tasks
from angelhair.server.sqs.addresses import queue_address
from angelhair.server.sqs.checked import CreateQueue, QueueAttributes, RedrivePolicy, SetQueueAttributes
from angelhair.server.sqs.inputs import (
    CancelMessageMoveTaskRequest,
    GetQueueUrlRequest,
    ListMessageMoveTasksRequest,
    StartMessageMoveTaskRequest,
)


class Target(NamedTuple):
    owner: str | None
    """The account that was named; None when the caller's own is meant."""
    name: str | None
    """The queue; None when it is about all of them, or one that nobody can tell."""
    also: tuple[str, ...] = ()
    """Other queues that it makes use of."""

    @property
    def names(self) -> tuple[str | None, ...]:
        return (self.name, *self.also)


def target_of(action: str, wanted: Any) -> Target:
    """Of a checked input. Raises `InvalidAddress` for a URL that leads nowhere."""
    return _OTHERS.get(action, _by_url)(wanted)


def _by_url(wanted: Any) -> Target:
    address = queue_address(wanted.queue_url)
    return Target(address.account, address.name)


def _created(wanted: CreateQueue) -> Target:
    return Target(None, wanted.queue_name, _dead_letters(wanted.attributes))


def _set(wanted: SetQueueAttributes) -> Target:
    return _by_url(wanted)._replace(also=_dead_letters(wanted.attributes))


def _dead_letters(attributes: QueueAttributes) -> tuple[str, ...]:
    policy = attributes.redrive_policy
    return (policy.dead_letter_queue,) if isinstance(policy, RedrivePolicy) else ()


def _by_name(wanted: GetQueueUrlRequest) -> Target:
    return Target(wanted.queue_owner_aws_account_id, wanted.queue_name)


def _all(_: object) -> Target:
    return Target(None, None)


def _moved(wanted: StartMessageMoveTaskRequest) -> Target:
    destination = parse_arn(wanted.destination_arn) if wanted.destination_arn else None
    return _by_arn(wanted.source_arn)._replace(also=(destination.name,) if destination is not None else ())


def _moving(wanted: ListMessageMoveTasksRequest) -> Target:
    return _by_arn(wanted.source_arn)


def _cancelled(wanted: CancelMessageMoveTaskRequest) -> Target:
    handle = tasks.decode_handle(wanted.task_handle)
    return _all(wanted) if handle is None else _by_arn(handle.source_arn)


def _by_arn(text: str) -> Target:
    arn = parse_arn(text)
    return Target(None, None) if arn is None else Target(arn.account, arn.name)


_OTHERS: dict[str, Callable[[Any], Target]] = {
    "CancelMessageMoveTask": _cancelled,
    "CreateQueue": _created,
    "GetQueueUrl": _by_name,
    "ListMessageMoveTasks": _moving,
    "ListQueues": _all,
    "SetQueueAttributes": _set,
    "StartMessageMoveTask": _moved,
}
"""All others have the URL of a queue."""
