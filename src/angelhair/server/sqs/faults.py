"""The errors of the engine and of the gate, in the words of SQS."""

from __future__ import annotations

from angelhair.errors import InvalidReceipt, InvalidRequest, NotInFlight, QueueNotFound, StaleReceipt
from angelhair.server.aws.errors import AwsError
from angelhair.server.aws.faults import as_aws_error
from angelhair.server.sqs.errors import (
    InvalidParameterValue,
    MessageNotInflight,
    QueueDoesNotExist,
    ReceiptHandleIsInvalid,
    invalid_value,
)


def as_sqs_error(error: Exception, receipt: str = "") -> AwsError:
    """What it does not know is raised, and becomes a fault of the server with a log entry."""
    match error:
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
    return as_aws_error(error)
