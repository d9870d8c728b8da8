"""StartMessageMoveTask, CancelMessageMoveTask, ListMessageMoveTasks."""

from __future__ import annotations

from msgspec.structs import replace

from angelhair.engine.catalog import Queue
from angelhair.errors import QueueNotFound
from angelhair.model import DATABAG, TIMELINE
from angelhair.server.aws.arns import FIFO, parse_arn
from angelhair.server.aws.carried import as_uuid
from angelhair.server.sqs import tasks
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.checks.moves import no_such_resource
from angelhair.server.sqs.errors import InvalidParameterValue, ResourceNotFoundException
from angelhair.server.sqs.inputs import (
    CancelMessageMoveTaskRequest,
    ListMessageMoveTasksRequest,
    StartMessageMoveTaskRequest,
)
from angelhair.server.sqs.outputs import (
    CancelMessageMoveTaskResult,
    ListMessageMoveTasksResult,
    ListMessageMoveTasksResultEntry,
    StartMessageMoveTaskResult,
)
from angelhair.server.sqs.tasks import Gone, MoveTask


async def start_message_move_task(call: Call, wanted: StartMessageMoveTaskRequest) -> StartMessageMoveTaskResult:
    source = await _queue(call, wanted.source_arn, "SourceArn")
    sources, _ = await call.service.engine.list_dead_letter_sources(call.account, source.name, most=1)
    if not sources:
        raise InvalidParameterValue("Source queue must be configured as a Dead Letter Queue.")
    if source.settings.kind in (TIMELINE, DATABAG):
        raise InvalidParameterValue(
            f"Source queue is a {source.settings.kind}, from which no task can move messages: receive them, send them "
            "where they belong, and delete them."
        )
    destination = None
    if wanted.destination_arn is not None:
        destination = (await _queue(call, wanted.destination_arn, "DestinationArn")).name
        if destination.endswith(FIFO) != source.name.endswith(FIFO):
            raise InvalidParameterValue("Source and destination queues must be of the same type.")
    stats = await call.service.engine.stats(source.account, source.name)
    task = MoveTask(
        as_uuid(call.service.engine.identities.fresh()),
        tasks.RUNNING,
        call.service.clock.now().wall_ms,
        stats.visible,
        destination,
        wanted.max_number_of_messages_per_second,
        owner=call.movers.server,
    )
    await call.service.rewrite_queue(source.account, source.name, tasks.adding(task, _already_running))
    call.movers.work_on((source.account, source.name), task)
    return StartMessageMoveTaskResult(tasks.encode_handle(task.id, call.arn_of(source.name)))


def _already_running(_: MoveTask) -> Exception:
    return InvalidParameterValue(
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
    )


async def cancel_message_move_task(call: Call, wanted: CancelMessageMoveTaskRequest) -> CancelMessageMoveTaskResult:
    named = tasks.decode_handle(wanted.task_handle)
    if named is None:
        raise InvalidParameterValue("Value for parameter TaskHandle is invalid.")
    source = await _queue(call, named.source_arn, "SourceArn")
    moved = 0

    def cancel(task: MoveTask) -> MoveTask:
        nonlocal moved
        if task.status not in (tasks.RUNNING, tasks.CANCELLED):
            raise InvalidParameterValue("Only active tasks can be cancelled.")
        moved = task.moved
        return replace(task, status=tasks.CANCELLED, beat=task.beat + 1)

    known = next((task for task in tasks.tasks_of(source) if task.id == named.task_id), None)
    if known is not None and known.status == tasks.CANCELLED:
        raise InvalidParameterValue("Only active tasks can be cancelled.")
    try:
        await call.service.rewrite_queue(source.account, source.name, tasks.changing(named.task_id, cancel))
    except Gone:
        raise ResourceNotFoundException("Task does not exist.") from None
    return CancelMessageMoveTaskResult(moved)


async def list_message_move_tasks(call: Call, wanted: ListMessageMoveTasksRequest) -> ListMessageMoveTasksResult:
    source = await _queue(call, wanted.source_arn, "SourceArn")
    arn = call.arn_of(source.name)
    found = tasks.tasks_of(source)[: wanted.max_results or 1]
    return ListMessageMoveTasksResult([_said(call, arn, task) for task in found])


def _said(call: Call, arn: str, task: MoveTask) -> ListMessageMoveTasksResultEntry:
    return ListMessageMoveTasksResultEntry(
        status=task.status,
        source_arn=arn,
        approximate_number_of_messages_moved=task.moved,
        started_timestamp=task.started_at_ms,
        task_handle=tasks.encode_handle(task.id, arn) if task.status == tasks.RUNNING else None,
        destination_arn=None if task.destination is None else call.arn_of(task.destination),
        max_number_of_messages_per_second=task.rate,
        approximate_number_of_messages_to_move=task.to_move,
        failure_reason=task.reason,
    )


async def _queue(call: Call, text: str, parameter: str) -> Queue:
    """As the catalog has it now: a task that another server has just ended is not running."""
    arn = parse_arn(text)
    if arn is None or call.is_elsewhere(arn.account):
        raise no_such_resource(parameter)
    call.request.queue = arn.name
    call.service.engine.memory.distrust(call.account, arn.name)
    try:
        return await call.service.engine.find_queue(call.account, arn.name)
    except QueueNotFound:
        raise no_such_resource(parameter) from None
