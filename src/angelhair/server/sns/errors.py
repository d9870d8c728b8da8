"""How SNS says no. One type per outcome, with its code and its status; those of the model by the model's names.

    SnsError       modelled: NotFound, InvalidParameter, AuthorizationError, …: errors that the SDKs have classes for
    CommonError    UnsupportedOperation, InternalError, beside those of `aws/errors.py`
"""

from __future__ import annotations

from angelhair.server.aws.errors import AwsError, CommonError, InternalFailure


class SnsError(AwsError):
    """The root of what the model has."""


# --- modelled ---------------------------------------------------------------------------------------------------------


class InvalidParameter(SnsError):
    """`InvalidParameter("Subject")` says "Invalid parameter: Subject"; with a reason, that too."""

    def __init__(self, parameter: str, reason: str = "") -> None:
        super().__init__(f"Invalid parameter: {parameter}{f' Reason: {reason}' if reason else ''}")


class ParameterValueInvalid(SnsError):
    """A message attribute that cannot be."""


class NotFound(SnsError):
    status = 404
    text = "Topic does not exist"


class ResourceNotFound(SnsError):
    """What tags are asked of."""

    status = 404
    text = "Resource does not exist"


class AuthorizationError(SnsError):
    status = 403
    text = "Access to the resource is denied."


class InvalidSecurity(SnsError):
    status = 403
    text = "The credential signature isn't valid. Please use HTTPS and sign your request using AWS Signature Version 4."


class FilterPolicyLimitExceeded(SnsError):
    status = 403


class SubscriptionLimitExceeded(SnsError):
    status = 403
    text = "The topic has as many subscriptions as a topic can have."


class TagLimitExceeded(SnsError):
    text = "Could not complete request: tag quota of per resource exceeded"


class EmptyBatchRequest(SnsError):
    text = "The batch request doesn't contain any entries."


class TooManyEntriesInBatchRequest(SnsError):
    text = "The batch request contains more entries than permissible."


class BatchEntryIdsNotDistinct(SnsError):
    text = "Two or more batch entries in the request have the same Id."


class BatchRequestTooLong(SnsError):
    text = "The length of all the messages put together is more than the limit."


class InvalidBatchEntryId(SnsError):
    text = "The Id of a batch entry in a batch request doesn't abide by the specification."


# --- common -----------------------------------------------------------------------------------------------------------


class UnsupportedOperation(CommonError):
    """An action of SNS that this server leaves to others."""

    def __init__(self, action: str) -> None:
        super().__init__(
            f"{action} is not served here: topics send to queues and to HTTP endpoints, not to phones and mobile push."
        )


class InternalError(InternalFailure):
    """What SNS calls it."""
