"""The one table of actions: what each takes on the wire, how that is checked, what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from angelhair.server.aws.operation import Operation
from angelhair.server.aws.shape import Shape
from angelhair.server.sns import inputs, outputs
from angelhair.server.sns.checks import publishing, subscriptions, topics

_TABLE: tuple[tuple[type[Shape], Callable[[Any], Any], type[Shape]], ...] = (
    (inputs.AddPermissionRequest, topics.check_add_permission, outputs.Nothing),
    (inputs.ConfirmSubscriptionRequest, subscriptions.check_confirm, outputs.ConfirmSubscriptionResult),
    (inputs.CreateTopicRequest, topics.check_create, outputs.CreateTopicResult),
    (inputs.DeleteTopicRequest, topics.check_topic, outputs.Nothing),
    (inputs.GetDataProtectionPolicyRequest, topics.check_get_protection, outputs.GetDataProtectionPolicyResult),
    (
        inputs.GetSubscriptionAttributesRequest, subscriptions.check_subscription,
        outputs.GetSubscriptionAttributesResult,
    ),
    (inputs.GetTopicAttributesRequest, topics.check_topic, outputs.GetTopicAttributesResult),
    (inputs.ListSubscriptionsRequest, subscriptions.check_list, outputs.ListSubscriptionsResult),
    (inputs.ListSubscriptionsByTopicRequest, subscriptions.check_list_by_topic, outputs.ListSubscriptionsResult),
    (inputs.ListTagsForResourceRequest, topics.check_list_tags, outputs.ListTagsForResourceResult),
    (inputs.ListTopicsRequest, topics.check_list, outputs.ListTopicsResult),
    (inputs.PublishRequest, publishing.check_publish, outputs.PublishResult),
    (inputs.PublishBatchRequest, publishing.check_publish_batch, outputs.PublishBatchResult),
    (inputs.PutDataProtectionPolicyRequest, topics.check_put_protection, outputs.Nothing),
    (inputs.RemovePermissionRequest, topics.check_remove_permission, outputs.Nothing),
    (inputs.SetSubscriptionAttributesRequest, subscriptions.check_set, outputs.Nothing),
    (inputs.SetTopicAttributesRequest, topics.check_set, outputs.Nothing),
    (inputs.SubscribeRequest, subscriptions.check_subscribe, outputs.SubscribeResult),
    (inputs.TagResourceRequest, topics.check_tag, outputs.Empty),
    (inputs.UnsubscribeRequest, subscriptions.check_subscription, outputs.Nothing),
    (inputs.UntagResourceRequest, topics.check_untag, outputs.Empty),
)

OPERATIONS = {operation.name: operation for operation in (Operation(*row) for row in _TABLE)}
"""By the name of the action."""

ELSEWHERE = frozenset({
    "CheckIfPhoneNumberIsOptedOut", "CreatePlatformApplication", "CreatePlatformEndpoint",
    "CreateSMSSandboxPhoneNumber", "DeleteEndpoint", "DeletePlatformApplication",
    "DeleteSMSSandboxPhoneNumber", "GetEndpointAttributes",
    "GetPlatformApplicationAttributes", "GetSMSAttributes", "GetSMSSandboxAccountStatus",
    "ListEndpointsByPlatformApplication", "ListOriginationNumbers", "ListPhoneNumbersOptedOut",
    "ListPlatformApplications", "ListSMSSandboxPhoneNumbers", "OptInPhoneNumber", "SetEndpointAttributes",
    "SetPlatformApplicationAttributes", "SetSMSAttributes", "VerifySMSSandboxPhoneNumber",
})
"""Text messages and mobile push, which are no business of a queue."""
