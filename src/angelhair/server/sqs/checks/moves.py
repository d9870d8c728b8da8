"""Move tasks: from a dead-letter queue back, or elsewhere."""

from __future__ import annotations

from angelhair import limits
from angelhair.server.aws.arns import looks_like_arn, parse_arn
from angelhair.server.sqs.checks.common import check_max_results
from angelhair.server.sqs.errors import InvalidParameterValue, MissingParameter, ResourceNotFoundException
from angelhair.server.sqs.inputs import (
    CancelMessageMoveTaskRequest,
    ListMessageMoveTasksRequest,
    StartMessageMoveTaskRequest,
)


def check_start_move(request: StartMessageMoveTaskRequest) -> StartMessageMoveTaskRequest:
    _check_arn(request.source_arn, "SourceArn")
    if request.destination_arn is not None:
        _check_arn(request.destination_arn, "DestinationArn")
        if request.destination_arn == request.source_arn:
            raise InvalidParameterValue("Source queue arn and destination queue arn cannot be the same.")
    rate = request.max_number_of_messages_per_second
    if rate is not None and not 1 <= rate <= limits.AWS_MOVE_RATE_MAXIMUM:
        raise InvalidParameterValue(
            "Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: "
            f"You must enter a number that's between 1 and {limits.AWS_MOVE_RATE_MAXIMUM}."
        )
    return request


def check_cancel_move(request: CancelMessageMoveTaskRequest) -> CancelMessageMoveTaskRequest:
    if not request.task_handle:
        raise MissingParameter("TaskHandle")
    return request


def check_list_moves(request: ListMessageMoveTasksRequest) -> ListMessageMoveTasksRequest:
    _check_arn(request.source_arn, "SourceArn")
    check_max_results(request.max_results, limits.AWS_MOVE_TASKS_LISTED)
    return request


def _check_arn(text: str, parameter: str) -> None:
    if not text:
        raise MissingParameter(parameter)
    if parse_arn(text) is None:
        if looks_like_arn(text):
            raise no_such_resource(parameter)
        raise InvalidParameterValue(
            f"You must use this format to specify the {parameter}: "
            "arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
        )


def no_such_resource(parameter: str) -> ResourceNotFoundException:
    """Also what an action says of an ARN that names no queue."""
    return ResourceNotFoundException(f"The resource that you specified for the {parameter} parameter doesn't exist.")
