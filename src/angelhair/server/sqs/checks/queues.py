"""Queues: their names, their listing, their tags, and who may use them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import UNSET

from angelhair import limits
from angelhair.server.aws.arns import FIFO, is_queue_name
from angelhair.server.aws.patterns import LABEL
from angelhair.server.sqs.checked import CreateQueue, SetQueueAttributes
from angelhair.server.sqs.checks.attributes import (
    changed_type,
    check_attribute_names,
    parse_attributes,
    throughput_without_scope,
)
from angelhair.server.sqs.checks.common import check_max_results, check_next_token, need_queue
from angelhair.server.sqs.errors import (
    InvalidParameterValue,
    MissingParameter,
    OverLimit,
    invalid_value,
    unknown_attribute,
)
from angelhair.server.sqs.inputs import (
    AddPermissionRequest,
    CreateQueueRequest,
    DeleteQueueRequest,
    GetQueueAttributesRequest,
    GetQueueUrlRequest,
    ListDeadLetterSourceQueuesRequest,
    ListQueuesRequest,
    ListQueueTagsRequest,
    PurgeQueueRequest,
    RemovePermissionRequest,
    SetQueueAttributesRequest,
    TagQueueRequest,
    UntagQueueRequest,
)

_ACCOUNT = re.compile("[0-9]{12}", re.ASCII)

GRANTABLE = frozenset({
    "*", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues",
    "PurgeQueue", "ReceiveMessage", "SendMessage",
})
FOR_OWNERS = frozenset({
    "AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks", "ListQueueTags",
    "ListQueues", "RemovePermission", "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue",
})
"""What cannot be granted to other accounts. Batches are granted with the action that they repeat."""


# --- the queue itself -------------------------------------------------------------------------------------------------


def check_create(request: CreateQueueRequest) -> CreateQueue:
    name, fifo = request.queue_name, request.attributes.get("FifoQueue")
    _check_name_given(name)
    is_fifo = name.endswith(FIFO)
    if fifo is not None and fifo.lower() == "true" and not (is_fifo and is_queue_name(name)):
        raise InvalidParameterValue(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, "
            f"must end with .fifo suffix and be 1 to {limits.AWS_QUEUE_NAME_LENGTH} in length."
        )
    if not is_queue_name(name) or (is_fifo and fifo is None):
        raise InvalidParameterValue(
            "Can only include alphanumeric characters, hyphens, or underscores. "
            f"1 to {limits.AWS_QUEUE_NAME_LENGTH} in length"
        )
    if is_fifo and fifo is not None and fifo.lower() == "false":
        raise unknown_attribute("FifoQueue")
    attributes = parse_attributes(request.attributes, is_fifo)
    if attributes.fifo_throughput_limit == "perMessageGroupId" and attributes.deduplication_scope is UNSET:
        raise throughput_without_scope()
    _check_tags(request.tags)
    return CreateQueue(name, attributes, request.tags)


def _check_name_given(name: str) -> None:
    if not name:
        raise InvalidParameterValue("Value for parameter QueueName is invalid. Reason: Must specify a queue name.")


def check_queue_url(request: GetQueueUrlRequest) -> GetQueueUrlRequest:
    """A name that no queue can have is left to the action, which will not find it, and say so."""
    _check_name_given(request.queue_name)
    owner = request.queue_owner_aws_account_id
    if owner is not None and _ACCOUNT.fullmatch(owner) is None:
        reason = "An account id has 12 digits."
        raise invalid_value(owner, "QueueOwnerAWSAccountId", reason)
    return request


def check_set_attributes(request: SetQueueAttributesRequest) -> SetQueueAttributes:
    is_fifo = need_queue(request.queue_url).is_fifo
    if not request.attributes:
        raise MissingParameter("Attribute.Name")
    attributes = parse_attributes(request.attributes, is_fifo)
    if attributes.fifo_queue is False:
        raise changed_type()
    return SetQueueAttributes(request.queue_url, attributes)


def check_get_attributes(request: GetQueueAttributesRequest) -> GetQueueAttributesRequest:
    need_queue(request.queue_url)
    check_attribute_names(request.attribute_names)
    return request


def check_delete_queue(request: DeleteQueueRequest) -> DeleteQueueRequest:
    need_queue(request.queue_url)
    return request


def check_purge(request: PurgeQueueRequest) -> PurgeQueueRequest:
    need_queue(request.queue_url)
    return request


# --- listings ---------------------------------------------------------------------------------------------------------


def check_list(request: ListQueuesRequest) -> ListQueuesRequest:
    check_max_results(request.max_results, limits.AWS_LIST_MAXIMUM)
    check_next_token(request.next_token)
    return request


def check_list_sources(request: ListDeadLetterSourceQueuesRequest) -> ListDeadLetterSourceQueuesRequest:
    need_queue(request.queue_url)
    check_max_results(request.max_results, limits.AWS_LIST_MAXIMUM)
    check_next_token(request.next_token)
    return request


# --- tags -------------------------------------------------------------------------------------------------------------


def check_tag(request: TagQueueRequest) -> TagQueueRequest:
    need_queue(request.queue_url)
    if not request.tags:
        raise MissingParameter("Tags")
    _check_tags(request.tags)
    return request


def check_untag(request: UntagQueueRequest) -> UntagQueueRequest:
    need_queue(request.queue_url)
    if not request.tag_keys:
        raise MissingParameter("TagKeys")
    _check_tag_keys(request.tag_keys)
    return request


def check_list_tags(request: ListQueueTagsRequest) -> ListQueueTagsRequest:
    need_queue(request.queue_url)
    return request


def _check_tags(tags: Mapping[str, str]) -> None:
    if len(tags) > limits.AWS_TAGS:
        raise InvalidParameterValue(f"Too many tags added for queue. A queue can have at most {limits.AWS_TAGS}.")
    _check_tag_keys(tags)
    for value in tags.values():
        if len(value) > limits.AWS_TAG_VALUE_LENGTH:
            raise InvalidParameterValue(f"Tag values must be at most {limits.AWS_TAG_VALUE_LENGTH} characters long.")


def _check_tag_keys(keys: Iterable[str]) -> None:
    for key in keys:
        if not 1 <= len(key) <= limits.AWS_TAG_KEY_LENGTH:
            raise InvalidParameterValue(f"Tag keys must be between 1 and {limits.AWS_TAG_KEY_LENGTH} characters long.")
        if key.lower().startswith("aws:"):
            raise InvalidParameterValue("Tag keys beginning with aws: are reserved for internal use.")


# --- permissions ------------------------------------------------------------------------------------------------------


def check_add_permission(request: AddPermissionRequest) -> AddPermissionRequest:
    need_queue(request.queue_url)
    _check_label(request.label)
    if not request.aws_account_ids:
        raise MissingParameter("AWSAccountIds")
    if not request.actions:
        raise MissingParameter("Actions")
    for account in request.aws_account_ids:
        if _ACCOUNT.fullmatch(account) is None:
            raise invalid_value(f"[{account}]", "PrincipalId", "Unable to verify.")
    for action in request.actions:
        if action in FOR_OWNERS:
            reason = "Only the queue owner is allowed to invoke this action."
            raise invalid_value(f"SQS:{action}", "ActionName", reason)
        if action not in GRANTABLE:
            reason = "Please refer to the appropriate WSDL for a list of valid actions."
            raise invalid_value(f"SQS:{action}", "ActionName", reason)
    if len(request.actions) > limits.AWS_POLICY_ACTIONS:
        most = limits.AWS_POLICY_ACTIONS
        raise OverLimit(f"{len(request.actions)} Actions were found, maximum allowed is {most}.")
    return request


def check_remove_permission(request: RemovePermissionRequest) -> RemovePermissionRequest:
    need_queue(request.queue_url)
    _check_label(request.label)
    return request


def _check_label(label: str) -> None:
    if not label:
        raise MissingParameter("Label")
    if LABEL.fullmatch(label) is None:
        raise InvalidParameterValue(
            "Label can only include alphanumeric characters, hyphens, or underscores. "
            f"1 to {limits.AWS_LABEL_LENGTH} in length"
        )
