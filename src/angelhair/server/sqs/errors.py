"""How SQS says no. One type per outcome, each with its code, its status and its name in JSON.

    SqsError       modelled: QueueDoesNotExist, QueueNameExists, OverLimit, …: errors that the SDKs have classes for
    CommonError    InvalidParameterValue, MissingParameter, SerializationException, …, beside those of `aws/errors.py`
"""

from __future__ import annotations

from angelhair import limits
from angelhair.server.aws.errors import AwsError, CommonError, Protocol, echoed

MODELLED = "com.amazonaws.sqs#"


class SqsError(AwsError):
    """The root of what the model has."""

    namespace = MODELLED


# --- modelled: queues -------------------------------------------------------------------------------------------------


class QueueDoesNotExist(SqsError):
    code = "AWS.SimpleQueueService.NonExistentQueue"
    text = "The specified queue does not exist."

    def message_in(self, protocol: Protocol) -> str:
        if protocol is Protocol.QUERY and self.message == self.text:
            return "The specified queue does not exist for this wsdl version."
        return self.message


class QueueNameExists(SqsError):
    code = "QueueAlreadyExists"

    def __init__(self, attribute: str) -> None:
        super().__init__(f"A queue already exists with the same name and a different value for attribute {attribute}")


class QueueDeletedRecently(SqsError):
    code = "AWS.SimpleQueueService.QueueDeletedRecently"
    text = "You must wait 60 seconds after deleting a queue before you can create another with the same name."


class PurgeQueueInProgress(SqsError):
    code = "AWS.SimpleQueueService.PurgeQueueInProgress"
    status = 403

    def __init__(self, queue: str) -> None:
        super().__init__(f"Only one PurgeQueue operation on {queue} is allowed every 60 seconds.")


class InvalidAddress(SqsError):
    status = 404

    def __init__(self, address: str) -> None:
        super().__init__(f"The address {echoed(address)} is not valid for this endpoint.")


class InvalidAttributeName(SqsError):
    """A queue attribute that there is not, or not for this queue."""


class InvalidAttributeValue(SqsError):
    """A value that a queue attribute cannot have."""


class OverLimit(SqsError):
    status = 403


class ResourceNotFoundException(SqsError):
    status = 404


# --- modelled: messages -----------------------------------------------------------------------------------------------


class InvalidMessageContents(SqsError):
    text = (
        "Invalid characters found. Valid unicode characters are "
        "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
    )


class MessageNotInflight(SqsError):
    code = "AWS.SimpleQueueService.MessageNotInflight"
    text = "The message referred to is not in flight."


class ReceiptHandleIsInvalid(SqsError):
    status = 404

    def __init__(self, receipt: str) -> None:
        super().__init__(f'The input receipt handle "{echoed(receipt)}" is not valid.')


class InvalidIdFormat(SqsError):
    """Retired by AWS in favour of `ReceiptHandleIsInvalid`; SDKs still have a class for it."""

    text = "The specified receipt handle is not valid for the current version."


class UnsupportedOperation(SqsError):
    code = "AWS.SimpleQueueService.UnsupportedOperation"
    text = "Unsupported operation."


# --- modelled: batches ------------------------------------------------------------------------------------------------


class EmptyBatchRequest(SqsError):
    code = "AWS.SimpleQueueService.EmptyBatchRequest"

    def __init__(self, entry: str) -> None:
        super().__init__(f"There should be at least one {entry} in the request.")


class TooManyEntriesInBatchRequest(SqsError):
    code = "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"

    def __init__(self, entries: int) -> None:
        super().__init__(
            f"Maximum number of entries per request are {limits.AWS_BATCH_ENTRIES}. You have sent {entries}."
        )


class BatchEntryIdsNotDistinct(SqsError):
    code = "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"Id {entry_id} repeated.")


class InvalidBatchEntryId(SqsError):
    code = "AWS.SimpleQueueService.InvalidBatchEntryId"
    text = (
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        f"It can be at most {limits.AWS_ENTRY_ID_LENGTH} letters long."
    )


class BatchRequestTooLong(SqsError):
    code = "AWS.SimpleQueueService.BatchRequestTooLong"

    def __init__(self, sent_bytes: int) -> None:
        super().__init__(
            f"Batch requests cannot be longer than {limits.AWS_MESSAGE_SIZE_MAXIMUM_BYTES} bytes. "
            f"You have sent {sent_bytes} bytes."
        )


# --- modelled: keys and access ----------------------------------------------------------------------------------------


class KmsAccessDenied(SqsError):
    code = "KMS.AccessDeniedException"


class KmsDisabled(SqsError):
    code = "KMS.DisabledException"


class KmsInvalidKeyUsage(SqsError):
    code = "KMS.InvalidKeyUsageException"


class KmsInvalidState(SqsError):
    code = "KMS.InvalidStateException"


class KmsNotFound(SqsError):
    code = "KMS.NotFoundException"


class KmsOptInRequired(SqsError):
    code = "KMS.OptInRequired"
    status = 403


class KmsThrottled(SqsError):
    code = "KMS.ThrottlingException"


class InvalidSecurity(SqsError):
    status = 403
    text = "The request was not made over HTTPS or did not use SigV4 for signing."


class RequestThrottled(SqsError):
    status = 403
    text = "Rate exceeded."


# --- common -----------------------------------------------------------------------------------------------------------


class InvalidParameterValue(CommonError):
    shape = "InvalidParameterValueException"
    code = "InvalidParameterValue"


class MissingParameter(CommonError):
    shape = "MissingRequiredParameterException"
    code = "MissingParameter"

    def __init__(self, parameter: str) -> None:
        super().__init__(f"The request must contain the parameter {parameter}.")


class UnknownOperation(CommonError):
    """An action that there is not, in JSON; or, in the Query protocol, none at all."""

    shape = "UnknownOperationException"
    code = "UnknownOperationException"
    in_header = False


class SerializationException(CommonError):
    """The body is no JSON, or a member has another type than the model says."""

    in_header = False


# --- wordings that many share -----------------------------------------------------------------------------------------


def invalid_value(value: object, parameter: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"Value {echoed(value)} for parameter {parameter} is invalid. Reason: {reason}")


def message_too_long(limit_bytes: int, in_batch: bool = False) -> InvalidParameterValue:
    verdict = "cannot be validated" if in_batch else "are invalid"
    return InvalidParameterValue(
        f"One or more parameters {verdict}. Reason: Message must be shorter than {limit_bytes} bytes."
    )


def unknown_attribute(name: str) -> InvalidAttributeName:
    return InvalidAttributeName(f"Unknown Attribute {echoed(name)}.")


def wrong_attribute_value(name: str, reason: str = "") -> InvalidAttributeValue:
    return InvalidAttributeValue(f"Invalid value for the parameter {name}.{f' Reason: {reason}' if reason else ''}")


def too_many_in_flight() -> OverLimit:
    return OverLimit(
        "Too many messages have been received without being deleted. "
        "Please delete your received messages or let them timeout before receiving more."
    )


def expired_receipt(receipt: str) -> InvalidParameterValue:
    """A FIFO queue's answer to a delete that comes too late."""
    return invalid_value(receipt, "ReceiptHandle", "The receipt handle has expired.")
