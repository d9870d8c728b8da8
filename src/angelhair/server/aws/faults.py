"""The errors that every AWS door may meet, in the words that all of them share."""

from __future__ import annotations

from angelhair.errors import AngelhairError, OutcomeUnknown, Unavailable
from angelhair.server.auth import Refused
from angelhair.server.aws.errors import AtTheGate, AwsError, InternalFailure, ServiceUnavailable

_AT_THE_GATE = {error.code: error for error in AtTheGate.__subclasses__()}

REFUSED = (AwsError, AngelhairError, Refused)
"""What an action, or the gate before it, may raise."""


def as_aws_error(error: Exception) -> AwsError:
    """What it does not know is raised, and becomes a fault of the server with a log entry."""
    match error:
        case AwsError():
            return error
        case Refused():
            return _AT_THE_GATE[error.code](error.message)
        case Unavailable():
            return ServiceUnavailable()
        case OutcomeUnknown():
            return InternalFailure()
    raise error
