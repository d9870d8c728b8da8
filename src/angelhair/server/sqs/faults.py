"""The errors of the engine and of the gate, in the words of SQS."""

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
from angelhair.server.auth import Refused
from angelhair.server.sqs.errors import (
    AccessDenied,
    CommonError,
    IncompleteSignature,
    InternalFailure,
    InvalidClientTokenId,
    InvalidParameterValue,
    InvalidQueryParameter,
    MessageNotInflight,
    MissingAuthenticationToken,
    QueueDoesNotExist,
    ReceiptHandleIsInvalid,
    ServiceUnavailable,
    SignatureDoesNotMatch,
    SqsError,
    invalid_value,
)

_AT_THE_GATE: dict[str, type[CommonError]] = {
    error.code: error
    for error in (
        AccessDenied, IncompleteSignature, InvalidClientTokenId, InvalidQueryParameter, MissingAuthenticationToken,
        SignatureDoesNotMatch,
    )
}


def as_sqs_error(error: Exception, receipt: str = "") -> SqsError:
    """What it does not know is raised, and becomes a fault of the server with a log entry."""
    match error:
        case SqsError():
            return error
        case Refused():
            return _AT_THE_GATE[error.code](error.message)
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


REFUSED = (SqsError, AngelhairError, Refused)
"""What an action, or the gate before it, may raise."""
