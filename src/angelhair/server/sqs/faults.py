"""The engine's errors in the words of SQS."""

from __future__ import annotations

from angelhair.errors import (
    AngelhairError,
    InvalidReceipt,
    InvalidRequest,
    NotInFlight,
    OutcomeUnknown,
    QueueNotFound,
    StaleReceipt,
    Unavailable,
)
from angelhair.server.sqs.errors import (
    InternalFailure,
    InvalidParameterValue,
    MessageNotInflight,
    QueueDoesNotExist,
    ReceiptHandleIsInvalid,
    ServiceUnavailable,
    SqsError,
    invalid_value,
)


def as_sqs_error(error: Exception, receipt: str = "") -> SqsError:
    """What it does not know is raised, and becomes a fault of the server with a log entry."""
    match error:
        case SqsError():
            return error
        case Unavailable():
            return ServiceUnavailable()
        case OutcomeUnknown():
            return InternalFailure()
        case QueueNotFound():
            return QueueDoesNotExist()
        case InvalidReceipt():
            return ReceiptHandleIsInvalid(receipt)
        case NotInFlight():
            return MessageNotInflight()
        case StaleReceipt():
            reason = "Message does not exist or is not available for visibility timeout change."
            return invalid_value(receipt, "ReceiptHandle", reason)
        case InvalidRequest():
            return InvalidParameterValue(str(error))
    raise error


REFUSED = (SqsError, AngelhairError)
"""What an action may raise."""
