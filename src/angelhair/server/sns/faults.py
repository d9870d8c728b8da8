"""The errors of the engine and of the gate, in the words of SNS."""

from __future__ import annotations

from angelhair.errors import InvalidRequest, OutcomeUnknown, SubscriptionNotFound, TopicExists, TopicNotFound
from angelhair.server.auth import Refused
from angelhair.server.aws.errors import AwsError
from angelhair.server.aws.faults import as_aws_error
from angelhair.server.sns.errors import AuthorizationError, InternalError, InvalidParameter, NotFound


def as_sns_error(error: Exception) -> AwsError:
    """What it does not know is raised, and becomes a fault of the server with a log entry."""
    match error:
        case Refused(code="AccessDenied"):
            return AuthorizationError(error.message)
        case OutcomeUnknown():
            return InternalError()
        case TopicNotFound():
            return NotFound()
        case SubscriptionNotFound():
            return NotFound("Subscription does not exist")
        case TopicExists():
            return InvalidParameter("Attributes", "Topic already exists with different attributes")
        case InvalidRequest():
            return InvalidParameter(str(error))
    return as_aws_error(error)
