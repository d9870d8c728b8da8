"""The names of actions, as keys are limited to them and policies speak of them: Amazon's, whatever door is used."""

from __future__ import annotations

ORDINARY = frozenset({
    # SQS
    "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues",
    "ListMessageMoveTasks", "ListQueueTags", "ListQueues", "ReceiveMessage", "SendMessage",
    # SNS
    "ConfirmSubscription", "GetDataProtectionPolicy", "GetSubscriptionAttributes", "GetTopicAttributes",
    "ListSubscriptions", "ListSubscriptionsByTopic", "ListTagsForResource", "ListTopics", "Publish",
    # Of our own: Amazon shows nobody its servers
    "DescribeCluster",
})
"""What programs do all the time, or what only looks."""

ADMINISTRATIVE = frozenset({
    # SQS
    "AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "PurgeQueue", "RemovePermission",
    "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue",
    # SNS; its permissions have the names of SQS's
    "CreateTopic", "DeleteTopic", "PutDataProtectionPolicy", "SetSubscriptionAttributes", "SetTopicAttributes",
    "Subscribe", "TagResource", "Unsubscribe", "UntagResource",
})
"""What the audit log tells of, however it ended."""

ACTIONS = ORDINARY | ADMINISTRATIVE

ONLY_OF_THE_OWNER = frozenset({
    "AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks", "ListQueues",
    "ListQueueTags", "RemovePermission", "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue",
})
"""What Amazon SQS allows no other account, whatever a policy says."""

RESCUING = frozenset({
    "GetQueueAttributes", "GetTopicAttributes", "RemovePermission", "SetQueueAttributes", "SetTopicAttributes",
})
"""What a denial in a policy never keeps a key without limits of the owner's own account from: how else would the policy
be mended?"""

_BATCHES = {f"{name}Batch": name for name in ("ChangeMessageVisibility", "DeleteMessage", "Publish", "SendMessage")}


def permission(action: str) -> str:
    """The action that has to be permitted: who may do a thing may do it ten times in one request."""
    return _BATCHES.get(action, action)
