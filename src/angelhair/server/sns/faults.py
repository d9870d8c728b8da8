"""The engine's errors in the words of SNS."""

from __future__ import annotations

from angelhair.errors import (
    AngelhairError,
    InvalidRequest,
    OutcomeUnknown,
    SubscriptionNotFound,
    TopicExists,
    TopicNotFound,
    Unavailable,
)
from angelhair.server.sns.errors import InternalError, InvalidParameter, NotFound, ServiceUnavailable, SnsError

NO_SUBSCRIPTION = "Subscription does not exist"


def as_sns_error(error: Exception) -> SnsError:
    """What it does not know is raised, and becomes a fault of the server with a log entry."""
    match error:
        case SnsError():
            return error
        case Unavailable():
            return ServiceUnavailable()
        case OutcomeUnknown():
            return InternalError()
        case TopicNotFound():
            return NotFound()
        case SubscriptionNotFound():
            return NotFound(NO_SUBSCRIPTION)
        case TopicExists():
            return InvalidParameter("Attributes", "Topic already exists with different attributes")
        case InvalidRequest():
            return InvalidParameter(str(error))
    raise error


REFUSED = (SnsError, AngelhairError)
"""What an action may raise."""
