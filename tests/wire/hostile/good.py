"""Good requests of every action, to be broken. What makes or deletes a queue is about one that nothing else needs."""

from __future__ import annotations

from typing import Any

ACCOUNT = "000000000000"
URL = f"http://127.0.0.1:9324/{ACCOUNT}/orders"
FIFO_URL = f"{URL}.fifo"
LETTERS = f"http://127.0.0.1:9324/{ACCOUNT}/letters"
SCRATCH = f"http://127.0.0.1:9324/{ACCOUNT}/scratch"
ARN = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:letters"
RECEIPT = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
MESSAGE = {
    "MessageBody": "hello", "DelaySeconds": 0,
    "MessageAttributes": {
        "one": {"DataType": "String", "StringValue": "1"}, "two": {"DataType": "Binary", "BinaryValue": "AAE="},
        "three": {"DataType": "Number.int", "StringValue": "-3.5"},
    },
    "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5e8-0"}},
}
ORDERED = {"MessageBody": "hello", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
QUEUE = {
    "VisibilityTimeout": "30", "DelaySeconds": "0", "MaximumMessageSize": "262144", "MessageRetentionPeriod": "3600",
    "ReceiveMessageWaitTimeSeconds": "0", "RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":"9"}}',
}
FIFO = {"FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "queue"}
ALL = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"], "AttributeNames": ["All"]}

REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CreateQueue", {"QueueName": "scratch", "Attributes": QUEUE, "tags": {"colour": "blue"}}),
    ("CreateQueue", {"QueueName": "scratch.fifo", "Attributes": FIFO}),
    ("DeleteQueue", {"QueueUrl": SCRATCH}),
    ("GetQueueUrl", {"QueueName": "orders", "QueueOwnerAWSAccountId": ACCOUNT}),
    ("ListQueues", {"QueueNamePrefix": "or", "MaxResults": 2, "NextToken": "b3JkZXJz"}),
    ("GetQueueAttributes", {"QueueUrl": URL, "AttributeNames": ["All", "QueueArn"]}),
    ("SetQueueAttributes", {"QueueUrl": SCRATCH, "Attributes": QUEUE}),
    ("SendMessage", {"QueueUrl": URL, **MESSAGE}),
    ("SendMessage", {"QueueUrl": FIFO_URL, **ORDERED}),
    ("SendMessageBatch", {"QueueUrl": URL, "Entries": [{"Id": "a", **MESSAGE}, {"Id": "b", "MessageBody": "x"}]}),
    ("SendMessageBatch", {"QueueUrl": FIFO_URL, "Entries": [{"Id": "a", **ORDERED}, {"Id": "b", **ORDERED}]}),
    ("ReceiveMessage", {
        "QueueUrl": URL, "MaxNumberOfMessages": 10, "VisibilityTimeout": 0, "WaitTimeSeconds": 0, **ALL}),
    ("ReceiveMessage", {"QueueUrl": FIFO_URL, "VisibilityTimeout": 0, "ReceiveRequestAttemptId": "r", **ALL}),
    ("DeleteMessage", {"QueueUrl": URL, "ReceiptHandle": RECEIPT}),
    ("DeleteMessage", {"QueueUrl": FIFO_URL, "ReceiptHandle": RECEIPT}),
    ("DeleteMessageBatch", {"QueueUrl": URL, "Entries": [{"Id": "a", "ReceiptHandle": RECEIPT}]}),
    ("ChangeMessageVisibility", {"QueueUrl": URL, "ReceiptHandle": RECEIPT, "VisibilityTimeout": 0}),
    ("ChangeMessageVisibilityBatch", {
        "QueueUrl": FIFO_URL, "Entries": [{"Id": "a", "ReceiptHandle": RECEIPT, "VisibilityTimeout": 9}]}),
    ("PurgeQueue", {"QueueUrl": SCRATCH}),
    ("TagQueue", {"QueueUrl": LETTERS, "Tags": {"a": "b"}}),
    ("UntagQueue", {"QueueUrl": LETTERS, "TagKeys": ["a"]}),
    ("ListQueueTags", {"QueueUrl": URL}),
    ("AddPermission", {"QueueUrl": FIFO_URL, "Label": "l", "AWSAccountIds": [ACCOUNT], "Actions": ["SendMessage"]}),
    ("RemovePermission", {"QueueUrl": FIFO_URL, "Label": "l"}),
    ("ListDeadLetterSourceQueues", {"QueueUrl": LETTERS, "MaxResults": 5}),
    ("StartMessageMoveTask", {"SourceArn": ARN, "MaxNumberOfMessagesPerSecond": 5}),
    ("ListMessageMoveTasks", {"SourceArn": ARN, "MaxResults": 1}),
    ("CancelMessageMoveTask", {"TaskHandle": RECEIPT}),
)

SETTINGS = {"visibility_timeout": 30, "max_deliveries": 3, "dead_letter_queue": "letters", "retention": 3600}
REST: tuple[tuple[str, str, dict[str, str], Any], ...] = (
    ("GET", "/queues", {"prefix": "o", "after": "a", "limit": "3"}, None),
    ("PUT", "/queues/scratch", {}, SETTINGS),
    ("PATCH", "/queues/scratch", {}, SETTINGS),
    ("GET", "/queues/orders", {}, None),
    ("DELETE", "/queues/scratch", {}, None),
    ("POST", "/queues/scratch/purge", {}, None),
    ("PUT", "/queues/orders/message", {"delay": "0", "lane": "0", "key": "k"}, "hello"),
    ("PUT", "/queues/orders/messages", {}, [{"body": "one"}, {"body": "two", "delay": 0, "content_type": "a/b"}]),
    ("GET", "/queues/orders/messages/10", {"visibility": "0", "wait": "0"}, None),
    ("DELETE", f"/queues/orders/message/{RECEIPT}", {}, None),
    ("PATCH", f"/queues/orders/message/{RECEIPT}", {}, {"visibility": 9, "body": "new"}),
    ("POST", "/queues/orders/acks", {}, {"receipts": [RECEIPT, RECEIPT]}),
    ("GET", "/queues/orders/peek/10", {"lane": "0"}, None),
    ("GET", "/queues/orders/dead/10", {}, None),
    ("POST", "/queues/letters/redrive", {}, {"destination": "orders", "count": 3}),
    ("GET", "/queues/orders/pointers", {}, None),
    ("GET", "/queues/orders/buckets", {"lane": "0", "from": "0", "count": "3"}, None),
    ("POST", "/queues/orders/repair", {}, {"lane": 0, "bucket": 0}),
    ("PUT", "/topics/scratch", {}, None),
    ("GET", "/topics", {}, None),
    ("GET", "/topics/news", {}, None),
    ("DELETE", "/topics/scratch", {}, None),
    ("PUT", "/topics/scratch/queues/orders", {}, None),
    ("DELETE", "/topics/scratch/queues/orders", {}, None),
    ("PUT", "/topics/news/message", {"key": "k"}, "hello"),
    ("GET", "/openapi.json", {}, None),
)
