"""Topics: their names, attributes, tags, listings, and who may use them."""

from __future__ import annotations

import re
from typing import TypeVar

from angelhair import limits
from angelhair.server.aws.arns import ACCOUNT, FIFO
from angelhair.server.aws.patterns import LABEL
from angelhair.server.aws.policies import json_object
from angelhair.server.sns.addresses import is_topic_name
from angelhair.server.sns.checked import CreateTopic, OfTopic
from angelhair.server.sns.checks.attributes import checked_topic_attributes
from angelhair.server.sns.checks.common import (
    check_next_token,
    check_tag_keys,
    checked_tags,
    need,
    need_topic,
    tagged_topic,
)
from angelhair.server.sns.errors import InvalidParameter
from angelhair.server.sns.inputs import (
    AddPermissionRequest,
    CreateTopicRequest,
    DeleteTopicRequest,
    GetDataProtectionPolicyRequest,
    GetTopicAttributesRequest,
    ListTagsForResourceRequest,
    ListTopicsRequest,
    PutDataProtectionPolicyRequest,
    RemovePermissionRequest,
    SetTopicAttributesRequest,
    TagResourceRequest,
    UntagResourceRequest,
)

_ACCOUNT = re.compile(ACCOUNT, re.ASCII)

GRANTABLE = frozenset({
    "AddPermission", "DeleteTopic", "GetDataProtectionPolicy", "GetTopicAttributes", "ListSubscriptionsByTopic",
    "ListTagsForResource", "Publish", "PutDataProtectionPolicy", "RemovePermission", "SetTopicAttributes", "Subscribe",
    "*",
})

Asked = TypeVar("Asked", DeleteTopicRequest, GetTopicAttributesRequest, SetTopicAttributesRequest)


def check_create(request: CreateTopicRequest) -> CreateTopic:
    name = need(request.name, "Name")
    is_fifo = name.endswith(FIFO)
    if not is_topic_name(name):
        wants_fifo = request.attributes.get("FifoTopic", "").lower() == "true"
        raise InvalidParameter(
            "Fifo Topic names must end with .fifo and must be made up of only uppercase and lowercase ASCII letters, "
            "numbers, underscores, and hyphens, and must be between 1 and "
            f"{limits.SNS_TOPIC_NAME_LENGTH} characters long."
            if wants_fifo else "Topic Name"
        )
    return CreateTopic(
        name, is_fifo, checked_topic_attributes(request.attributes, is_fifo), checked_tags(request.tags),
        _data_protection(request.data_protection_policy),
    )


def check_topic(request: Asked) -> OfTopic[Asked]:
    return OfTopic(need_topic(request.topic_arn), request)


def check_set(request: SetTopicAttributesRequest) -> OfTopic[SetTopicAttributesRequest]:
    need(request.attribute_name, "AttributeName")
    return check_topic(request)


def check_list(request: ListTopicsRequest) -> ListTopicsRequest:
    check_next_token(request.next_token)
    return request


# --- who may use it ---------------------------------------------------------------------------------------------------


def check_add_permission(request: AddPermissionRequest) -> OfTopic[AddPermissionRequest]:
    topic = need_topic(request.topic_arn)
    _check_label(request.label)
    if not request.aws_account_id:
        raise InvalidParameter("AWSAccountId", "no value for required parameter")
    if not request.action_name:
        raise InvalidParameter("ActionName", "no value for required parameter")
    for account in request.aws_account_id:
        if _ACCOUNT.fullmatch(account) is None:
            raise InvalidParameter("Policy", "Unable to verify the account")
    for action in request.action_name:
        if action not in GRANTABLE:
            raise InvalidParameter("Policy statement action out of service scope!")
    return OfTopic(topic, request)


def check_remove_permission(request: RemovePermissionRequest) -> OfTopic[RemovePermissionRequest]:
    topic = need_topic(request.topic_arn)
    _check_label(request.label)
    return OfTopic(topic, request)


def _check_label(label: str) -> None:
    if LABEL.fullmatch(need(label, "Label")) is None:
        raise InvalidParameter("Label")


# --- tags and the protection of data ----------------------------------------------------------------------------------


def check_tag(request: TagResourceRequest) -> OfTopic[dict[str, str]]:
    topic = tagged_topic(request.resource_arn)
    if not request.tags:
        raise InvalidParameter("Tags", "no value for required parameter")
    return OfTopic(topic, checked_tags(request.tags))


def check_untag(request: UntagResourceRequest) -> OfTopic[list[str]]:
    topic = tagged_topic(request.resource_arn)
    if not request.tag_keys:
        raise InvalidParameter("TagKeys", "no value for required parameter")
    check_tag_keys(request.tag_keys)
    return OfTopic(topic, request.tag_keys)


def check_list_tags(request: ListTagsForResourceRequest) -> OfTopic[None]:
    return OfTopic(tagged_topic(request.resource_arn), None)


def check_get_protection(request: GetDataProtectionPolicyRequest) -> OfTopic[None]:
    return OfTopic(need_topic(request.resource_arn, "ResourceArn"), None)


def check_put_protection(request: PutDataProtectionPolicyRequest) -> OfTopic[str | None]:
    topic = need_topic(request.resource_arn, "ResourceArn")
    return OfTopic(topic, _data_protection(request.data_protection_policy))


def _data_protection(text: str | None) -> str | None:
    if text and json_object(text) is None:
        raise InvalidParameter("DataProtectionPolicy", "must be a JSON object")
    return text or None
