"""Good requests to SNS, to be broken. No endpoint is one of HTTP: whatever becomes of them, nobody outside is asked."""

from __future__ import annotations

from typing import Any

from tests.wire.hostile.good import ACCOUNT

_ARN = f"arn:aws:sns:eu-west-1:{ACCOUNT}"
TOPIC = f"{_ARN}:news"
FIFO_TOPIC = f"{_ARN}:news.fifo"
SCRATCH = f"{_ARN}:scratch"
SUBSCRIPTION = f"{TOPIC}:00000000-0000-0000-0000-000000000000"
QUEUE = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders"
ATTRIBUTES = {
    "one": {"DataType": "String", "StringValue": "1"}, "two": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
    "three": {"DataType": "String.Array", "StringValue": '["a", 1, null, true]'},
}
FILTER = (
    '{"one":["1",{"prefix":"a"},{"numeric":[">",0,"<=",5]},{"anything-but":["b"]},{"exists":true}],'
    '"$or":[{"a":["b"]},{"c":["d"]}]}'
)
ENTRY = {"Id": "a", "Message": "hello", "MessageAttributes": ATTRIBUTES}
ORDERED = {"Message": "hello", "MessageGroupId": "g", "MessageDeduplicationId": "d"}

TOPICS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CreateTopic", {"Name": "scratch", "Attributes": {"DisplayName": "x"}, "Tags": [{"Key": "a", "Value": "b"}]}),
    ("CreateTopic", {"Name": "scratch.fifo", "Attributes": {"FifoTopic": "true", "ContentBasedDeduplication": "true"}}),
    ("DeleteTopic", {"TopicArn": SCRATCH}),
    ("ListTopics", {"NextToken": "x"}),
    ("GetTopicAttributes", {"TopicArn": TOPIC}),
    ("SetTopicAttributes", {"TopicArn": SCRATCH, "AttributeName": "DisplayName", "AttributeValue": "y"}),
    ("SetTopicAttributes", {"TopicArn": SCRATCH, "AttributeName": "DeliveryPolicy", "AttributeValue": "{}"}),
    ("Subscribe", {
        "TopicArn": SCRATCH, "Protocol": "sqs", "Endpoint": QUEUE, "ReturnSubscriptionArn": True, "Attributes": {
            "RawMessageDelivery": "true", "FilterPolicy": FILTER, "FilterPolicyScope": "MessageAttributes"}}),
    ("Subscribe", {"TopicArn": SCRATCH, "Protocol": "sqs", "Endpoint": QUEUE, "Attributes": {
        "FilterPolicy": FILTER, "FilterPolicyScope": "MessageBody"}}),
    ("ConfirmSubscription", {"TopicArn": TOPIC, "Token": "t" * 64, "AuthenticateOnUnsubscribe": "true"}),
    ("Unsubscribe", {"SubscriptionArn": SUBSCRIPTION}),
    ("ListSubscriptions", {}),
    ("ListSubscriptionsByTopic", {"TopicArn": TOPIC, "NextToken": "x"}),
    ("GetSubscriptionAttributes", {"SubscriptionArn": SUBSCRIPTION}),
    ("SetSubscriptionAttributes", {
        "SubscriptionArn": SUBSCRIPTION, "AttributeName": "FilterPolicy", "AttributeValue": FILTER}),
    ("Publish", {"TopicArn": TOPIC, "Message": "hello", "Subject": "s", "MessageAttributes": ATTRIBUTES}),
    ("Publish", {"TopicArn": TOPIC, "Message": '{"default":"x","sqs":"y"}', "MessageStructure": "json"}),
    ("Publish", {"TopicArn": FIFO_TOPIC, **ORDERED}),
    ("PublishBatch", {"TopicArn": TOPIC, "PublishBatchRequestEntries": [ENTRY, {"Id": "b", "Message": "x"}]}),
    ("PublishBatch", {"TopicArn": FIFO_TOPIC, "PublishBatchRequestEntries": [{"Id": "a", **ORDERED}]}),
    ("AddPermission", {
        "TopicArn": TOPIC, "Label": "l", "AWSAccountId": [ACCOUNT], "ActionName": ["Publish"]}),
    ("RemovePermission", {"TopicArn": TOPIC, "Label": "l"}),
    ("TagResource", {"ResourceArn": TOPIC, "Tags": [{"Key": "a", "Value": "b"}]}),
    ("UntagResource", {"ResourceArn": TOPIC, "TagKeys": ["a"]}),
    ("ListTagsForResource", {"ResourceArn": TOPIC}),
    ("GetDataProtectionPolicy", {"ResourceArn": TOPIC}),
    ("CheckIfPhoneNumberIsOptedOut", {"phoneNumber": "0"}),
)
