"""The errors of the engine and of the gate, in the words of SNS."""

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
from angelhair.server.auth import Refused
from angelhair.server.sns.errors import (
    AuthorizationError,
    IncompleteSignature,
    InternalError,
    InvalidClientTokenId,
    InvalidParameter,
    InvalidQueryParameter,
    MissingAuthenticationToken,
    NotFound,
    ServiceUnavailable,
    SignatureDoesNotMatch,
    SnsError,
)

_AT_THE_GATE: dict[str, type[SnsError]] = {
    error.code: error
    for error in (
        IncompleteSignature, InvalidClientTokenId, InvalidQueryParameter, MissingAuthenticationToken,
        SignatureDoesNotMatch,
    )
} | {"AccessDenied": AuthorizationError}

NO_SUBSCRIPTION = "Subscription does not exist"


def as_sns_error(error: Exception) -> SnsError:
    """What it does not know is raised, and becomes a fault of the server with a log entry."""
    match error:
        case SnsError():
            return error
        case Refused():
            return _AT_THE_GATE[error.code](error.message)
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


REFUSED = (SnsError, AngelhairError, Refused)
"""What an action may raise."""
