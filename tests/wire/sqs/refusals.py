"""Every rule that needs no queue, with the words in which AWS refuses: the same in both protocols."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.wire.sqs.amazon import ACCOUNT, FIFO_URL, URL

VALUE, MISSING = "InvalidParameterValue", "MissingParameter"
NAME, ATTRIBUTE = "InvalidAttributeName", "InvalidAttributeValue"
BATCH = "AWS.SimpleQueueService."
QUEUE, FIFO = {"QueueUrl": URL}, {"QueueUrl": FIFO_URL}
RECEIPT = {"QueueUrl": URL, "ReceiptHandle": "r"}
ARN = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:dead"

WRONG_TYPE = "The request include parameter that is not valid for this queue type."
PUNCTUATION = "can only include alphanumeric and punctuation characters. 1 to 128 in length."
CHARACTERS = (
    "Invalid characters found. Valid unicode characters are "
    "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
)
NAME_RULE = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
FIFO_NAME_RULE = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo "
    "suffix and be 1 to 80 in length."
)
ID_RULE = (
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
    "It can be at most 80 letters long."
)
FORMAT = "arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
ALLOW_FORMAT = (
    "Invalid value for the parameter RedriveAllowPolicy. Reason: "
    "Amazon SQS can't create the redrive allow policy, as it’s in an unsupported format."
)
ALLOW = "for parameter RedriveAllowPolicy is invalid. Reason: Amazon SQS can't create the redrive allow policy."


def missing(parameter: str) -> str:
    return f"The request must contain the parameter {parameter}."


def invalid(value: object, parameter: str, reason: str) -> str:
    return f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"


def attributed(name: str, data_type: str = "String", **value: Any) -> dict[str, Any]:
    value = value or {"StringValue": "v"}
    return {**QUEUE, "MessageBody": "b", "MessageAttributes": {name: {"DataType": data_type, **value}}}


def created(name: str, **attributes: str) -> dict[str, Any]:
    return {"QueueName": name, "Attributes": attributes} if attributes else {"QueueName": name}


def entries(*ids: str) -> dict[str, Any]:
    return {**QUEUE, "Entries": [{"Id": each} for each in ids]}


def policy(**members: Any) -> str:
    return msgspec.json.encode(members).decode()


STATEMENT = {"Effect": "Allow", "Action": "sqs:SendMessage", "Principal": "*"}
SHORT, WITHOUT_TARGET, OTHER = policy(maxReceiveCount=5), policy(), policy(deadLetterTargetArn=ARN, more=1)
ELEVEN = policy(redrivePermission="byQueue", sourceQueueArns=[f"{ARN}{number}" for number in range(11)])
TOPIC = f"arn:aws:sns:eu-west-1:{ACCOUNT}:topic"

SENDING: list[tuple[str, dict[str, Any], str, str]] = [
    ("SendMessage", {"MessageBody": "b"}, MISSING, missing("QueueUrl")),
    ("SendMessage", {"QueueUrl": "http://x/y", "MessageBody": "b"}, "InvalidAddress",
     "The address http://x/y is not valid for this endpoint."),
    ("SendMessage", QUEUE, MISSING, missing("MessageBody")),
    ("SendMessage", {**QUEUE, "MessageBody": ""}, MISSING, missing("MessageBody")),
    ("SendMessage", {**QUEUE, "MessageBody": "a\x00"}, "InvalidMessageContents", CHARACTERS),
    ("SendMessage", {**QUEUE, "MessageBody": "\x0b"}, "InvalidMessageContents", CHARACTERS),
    ("SendMessage", {**QUEUE, "MessageBody": "\uffff"}, "InvalidMessageContents", CHARACTERS),
    ("SendMessage", {**QUEUE, "MessageBody": "é\ufffe"}, "InvalidMessageContents", CHARACTERS),
    ("SendMessage", {**QUEUE, "MessageBody": "b" * 1_048_577}, VALUE,
     "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."),
    ("SendMessage", {**QUEUE, "MessageBody": "é" * 524_289}, VALUE,
     "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."),
    ("SendMessage", {**attributed("n"), "MessageBody": "b" * (1_048_576 - 7)}, VALUE,
     "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "DelaySeconds": -1}, VALUE,
     invalid(-1, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "DelaySeconds": 901}, VALUE,
     invalid(901, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageGroupId": "a b"}, VALUE,
     invalid("a b", "MessageGroupId", f"MessageGroupId {PUNCTUATION}")),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageGroupId": ""}, VALUE,
     invalid("", "MessageGroupId", f"MessageGroupId {PUNCTUATION}")),
    ("SendMessage", {**FIFO, "MessageBody": "b", "MessageGroupId": "g" * 129}, VALUE,
     invalid("g" * 129, "MessageGroupId", f"MessageGroupId {PUNCTUATION}")),
    ("SendMessage", {**FIFO, "MessageBody": "b", "MessageGroupId": "g", "MessageDeduplicationId": "é"}, VALUE,
     invalid("é", "MessageDeduplicationId", f"MessageDeduplicationId {PUNCTUATION}")),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageDeduplicationId": "d"}, VALUE,
     invalid("d", "MessageDeduplicationId", WRONG_TYPE)),
    ("SendMessage", {**FIFO, "MessageBody": "b"}, MISSING, missing("MessageGroupId")),
    ("SendMessage", {**FIFO, "MessageBody": "b", "MessageGroupId": "g", "DelaySeconds": 2}, VALUE,
     invalid(2, "DelaySeconds", WRONG_TYPE)),
    ("SendMessage", attributed(""), VALUE, "The request must contain non-empty message (user) attribute names."),
    ("SendMessage", attributed("n" * 256), VALUE, "Message (user) attribute name must be shorter than 256 bytes."),
    ("SendMessage", attributed("a b"), VALUE,
     "Message (user) attributes name can only contain upper and lower score characters, digits, periods, "
     "hyphens and underscores. "),
    ("SendMessage", attributed("AWS.x"), VALUE,
     "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. "
     "These strings are reserved for internal use."),
    ("SendMessage", attributed("aMazon.x"), VALUE,
     "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. "
     "These strings are reserved for internal use."),
    *[("SendMessage", attributed(name), VALUE,
       "You can't use message attribute names beginning or ending with a period, or with successive periods.")
      for name in (".a", "a.", "a..b")],
    ("SendMessage", attributed("n", ""), VALUE,
     "The message (user) attribute 'n' must contain a non-empty message attribute type."),
    ("SendMessage", attributed("n", "String." + "x" * 249), VALUE,
     "Message (user) attribute type must be shorter than 256 bytes."),
    *[("SendMessage", attributed("n", wrong), VALUE,
       "The type of message (user) attribute 'n' is invalid. "
       "You must use only the following supported type prefixes: Binary, Number, String.")
      for wrong in ("Text", "string", "Stringy", "String.", ".String")],
    ("SendMessage", attributed("n", "String", StringValue=""), VALUE,
     "Message (user) attribute 'n' must contain a non-empty value of type 'String'."),
    ("SendMessage", attributed("n", "Number.int", BinaryValue=b"1"), VALUE,
     "Message (user) attribute 'n' must contain a non-empty value of type 'Number.int'."),
    ("SendMessage", attributed("n", "Binary", StringValue="v"), VALUE,
     "Message (user) attribute 'n' must contain a non-empty value of type 'Binary'."),
    *[("SendMessage", attributed("n", "Number", StringValue=wrong), VALUE,
       "Can't cast the value of message (user) attribute 'n' to a number.")
      for wrong in ("world", " 1", "1 ", "0x1", "1e", "--1", ".", "NaN", "Infinity", "1_000", "٣")],
    ("SendMessage", attributed("n", "String", StringValue="\x01"), "InvalidMessageContents", CHARACTERS),
    ("SendMessage", attributed("n", "String.\x01"), "InvalidMessageContents", CHARACTERS),
    ("SendMessage", attributed("n", "String", StringListValues=["v"]), f"{BATCH}UnsupportedOperation",
     "Message attribute list values in SendMessage operation are not supported."),
    ("SendMessage", attributed("n", "Binary", BinaryListValues=[b"v"]), f"{BATCH}UnsupportedOperation",
     "Message attribute list values in SendMessage operation are not supported."),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageAttributes": {
        f"n{number}": {"DataType": "String", "StringValue": "v"} for number in range(11)}}, VALUE,
     "Number of message attributes [11] exceeds the allowed maximum [10]."),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageSystemAttributes": {
        "Hello": {"DataType": "String", "StringValue": "v"}}}, VALUE,
     "Message system attribute name 'Hello' is invalid."),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageSystemAttributes": {
        "AWSTraceHeader": {"DataType": "Number", "StringValue": "1"}}}, VALUE,
     "The type of message system attribute 'AWSTraceHeader' is invalid. You must use the type String."),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageSystemAttributes": {
        "AWSTraceHeader": {"DataType": "String", "StringValue": ""}}}, VALUE,
     "Message system attribute 'AWSTraceHeader' must contain a non-empty value of type 'String'."),
    ("SendMessage", {**QUEUE, "MessageBody": "b", "MessageSystemAttributes": {
        "AWSTraceHeader": {"DataType": "String", "StringValue": "\x02"}}}, "InvalidMessageContents", CHARACTERS),
]

BATCHES: list[tuple[str, dict[str, Any], str, str]] = [
    *[(action, QUEUE, f"{BATCH}EmptyBatchRequest", f"There should be at least one {action}RequestEntry in the request.")
      for action in ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")],
    *[(action, {**QUEUE, "Entries": []}, f"{BATCH}EmptyBatchRequest",
       f"There should be at least one {action}RequestEntry in the request.")
      for action in ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")],
    *[(action, {"Entries": [{"Id": "a"}]}, MISSING, missing("QueueUrl"))
      for action in ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")],
    *[(action, entries(*map(str, range(11))), f"{BATCH}TooManyEntriesInBatchRequest",
       "Maximum number of entries per request are 10. You have sent 11.")
      for action in ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")],
    *[(action, entries("a", "b", "a"), f"{BATCH}BatchEntryIdsNotDistinct", "Id a repeated.")
      for action in ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")],
    *[("DeleteMessageBatch", entries("a", wrong), f"{BATCH}InvalidBatchEntryId", ID_RULE)
      for wrong in ("", "invalid:id", "i" * 81, "é", "a b")],
    ("SendMessageBatch", {**QUEUE, "Entries": [
        {"Id": "a", "MessageBody": "b" * 1_048_570, "MessageAttributes": {
            "n": {"DataType": "Binary", "BinaryValue": b"v"}}},
        {"Id": "b", "MessageBody": "é"}]}, f"{BATCH}BatchRequestTooLong",
     "Batch requests cannot be longer than 1048576 bytes. You have sent 1048580 bytes."),
    ("SendMessageBatch", {**FIFO, "Entries": [{"Id": "a", "MessageBody": "b"}]}, VALUE, missing("MessageGroupId")),
    ("SendMessageBatch", {**FIFO, "Entries": [
        {"Id": "a", "MessageBody": "b", "MessageGroupId": "g", "DelaySeconds": 3}]}, VALUE,
     invalid(3, "DelaySeconds", WRONG_TYPE)),
]

RECEIVING: list[tuple[str, dict[str, Any], str, str]] = [
    ("ReceiveMessage", {}, MISSING, missing("QueueUrl")),
    *[("ReceiveMessage", {**QUEUE, "MaxNumberOfMessages": wrong}, VALUE,
       invalid(wrong, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")) for wrong in (0, 11, -1)],
    *[("ReceiveMessage", {**QUEUE, "WaitTimeSeconds": wrong}, VALUE,
       invalid(wrong, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")) for wrong in (-1, 21)],
    *[("ReceiveMessage", {**QUEUE, "VisibilityTimeout": wrong}, VALUE,
       invalid(wrong, "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided.")) for wrong in (-1, 43_201)],
    ("ReceiveMessage", {**QUEUE, "AttributeNames": ["All", "Nonsense"]}, NAME, "Unknown Attribute Nonsense."),
    ("ReceiveMessage", {**QUEUE, "MessageSystemAttributeNames": ["Policy"]}, NAME, "Unknown Attribute Policy."),
    ("ReceiveMessage", {**QUEUE, "ReceiveRequestAttemptId": "a"}, VALUE,
     invalid("a", "ReceiveRequestAttemptId", WRONG_TYPE)),
    ("ReceiveMessage", {**FIFO, "ReceiveRequestAttemptId": "a b"}, VALUE,
     invalid("a b", "ReceiveRequestAttemptId", f"ReceiveRequestAttemptId {PUNCTUATION}")),
    ("DeleteMessage", {"ReceiptHandle": "r"}, MISSING, missing("QueueUrl")),
    ("DeleteMessage", QUEUE, MISSING, missing("ReceiptHandle")),
    ("ChangeMessageVisibility", {"ReceiptHandle": "r"}, MISSING, missing("QueueUrl")),
    ("ChangeMessageVisibility", {**QUEUE, "VisibilityTimeout": 1}, MISSING, missing("ReceiptHandle")),
    ("ChangeMessageVisibility", RECEIPT, MISSING, missing("VisibilityTimeout")),
    *[("ChangeMessageVisibility", {**RECEIPT, "VisibilityTimeout": wrong}, VALUE,
       invalid(wrong, "VisibilityTimeout", "Must be between 0 and 43200.")) for wrong in (-1, 43_201)],
]

NUMBERS = {
    "DelaySeconds": ("-1", "901", "", " 6", "5.0", "x", "٣"), "MaximumMessageSize": ("1023", "1048577", "true"),
    "MessageRetentionPeriod": ("59", "1209601"), "ReceiveMessageWaitTimeSeconds": ("-1", "21"),
    "VisibilityTimeout": ("-1", "43201", "9" * 5000), "KmsDataKeyReusePeriodSeconds": ("59", "86401"),
    "SqsManagedSseEnabled": ("", "yes"),
}

QUEUES: list[tuple[str, dict[str, Any], str, str]] = [
    *[(action, {}, VALUE, "Value for parameter QueueName is invalid. Reason: Must specify a queue name.")
      for action in ("CreateQueue", "GetQueueUrl")],
    *[("CreateQueue", created(wrong), VALUE, NAME_RULE)
      for wrong in ("a b", "in.fo", "q" * 81, "ééwwà", "orders.fifo", "a.fifo.fifo")],
    *[("CreateQueue", created(wrong, FifoQueue="true"), VALUE, FIFO_NAME_RULE)
      for wrong in ("orders", "q" * 76 + ".fifo", "a b.fifo", ".fifo")],
    ("CreateQueue", created("orders", FifoQueue="false"), NAME, "Unknown Attribute FifoQueue."),
    ("CreateQueue", created("orders.fifo", FifoQueue="false"), NAME, "Unknown Attribute FifoQueue."),
    ("CreateQueue", created("orders.fifo", FifoQueue="maybe"), ATTRIBUTE, "Invalid value for the parameter FifoQueue."),
    ("CreateQueue", created("orders", ContentBasedDeduplication="true"), NAME,
     "Unknown Attribute ContentBasedDeduplication."),
    *[("CreateQueue", created("orders", **{wrong: "queue"}), NAME,
       f"You can specify the {wrong} only when FifoQueue is set to true.")
      for wrong in ("DeduplicationScope", "FifoThroughputLimit")],
    *[("CreateQueue", created("orders.fifo", FifoQueue="true", **{wrong: "x"}), ATTRIBUTE,
       f"Invalid value for the parameter {wrong}.")
      for wrong in ("DeduplicationScope", "FifoThroughputLimit", "ContentBasedDeduplication")],
    *[("CreateQueue", created("orders.fifo", FifoQueue="true", FifoThroughputLimit="perMessageGroupId", **scope),
       ATTRIBUTE, "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup.")
      for scope in ({}, {"DeduplicationScope": "queue"})],
    ("CreateQueue", created("orders", SqsManagedSseEnabled="true", KmsMasterKeyId="alias/aws/sqs"), NAME,
     "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."),
    *[("CreateQueue", created("orders", **{wrong: "1"}), NAME, f"Unknown Attribute {wrong}.") for wrong in (
        "Nonsense", "All", "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed", "delaySeconds")],
    *[("CreateQueue", created("orders", **{name: wrong}), ATTRIBUTE, f"Invalid value for the parameter {name}.")
      for name, all_wrong in NUMBERS.items() for wrong in all_wrong],
    ("SetQueueAttributes", {"Attributes": {"DelaySeconds": "1"}}, MISSING, missing("QueueUrl")),
    ("SetQueueAttributes", QUEUE, MISSING, missing("Attribute.Name")),
    ("SetQueueAttributes", {**QUEUE, "Attributes": {"DelaySeconds": "901"}}, ATTRIBUTE,
     "Invalid value for the parameter DelaySeconds."),
    ("SetQueueAttributes", {**QUEUE, "Attributes": {"FifoQueue": "true"}}, NAME, "Unknown Attribute FifoQueue."),
    ("SetQueueAttributes", {**FIFO, "Attributes": {"FifoQueue": "false"}}, ATTRIBUTE,
     "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."),
    ("GetQueueAttributes", {**QUEUE, "AttributeNames": ["Nonsense"]}, NAME, "Unknown Attribute Nonsense."),
    ("GetQueueUrl", {"QueueName": "orders", "QueueOwnerAWSAccountId": "me"}, VALUE,
     invalid("me", "QueueOwnerAWSAccountId", "An account id has 12 digits.")),
    *[(action, {}, MISSING, missing("QueueUrl")) for action in (
        "DeleteQueue", "PurgeQueue", "GetQueueAttributes", "ListDeadLetterSourceQueues", "TagQueue", "UntagQueue",
        "ListQueueTags", "AddPermission", "RemovePermission")],
    *[(action, {**QUEUE, "MaxResults": wrong} if action != "ListQueues" else {"MaxResults": wrong}, VALUE,
       "Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000.")
      for action in ("ListQueues", "ListDeadLetterSourceQueues") for wrong in (0, -1, 1001)],
    *[("ListQueues", {"NextToken": wrong}, VALUE, "Invalid or expired next token.") for wrong in ("", "t" * 4097)],
    ("ListDeadLetterSourceQueues", {**QUEUE, "NextToken": ""}, VALUE, "Invalid or expired next token."),
]

POLICIES: list[tuple[str, str, str, str]] = [
    *[("Policy", wrong, ATTRIBUTE, "Invalid value for the parameter Policy.") for wrong in (
        "badjson", "[]", '"text"', "null", "5", "{}", policy(Statement=[]), policy(Statement="x"),
        policy(Version="2020-10-17", Statement=[STATEMENT]), policy(More=1, Statement=[STATEMENT]),
        policy(Statement={**STATEMENT, "dummy": 1}), policy(Statement=[{**STATEMENT, "Effect": "Maybe"}]),
        policy(Statement=[{"Effect": "Allow"}]), policy(Statement=[5]), "[" * 5000)],
    ("Policy", policy(Statement=[STATEMENT] * 22), "OverLimit",
     "22 statements were found in the submitted policy, max allowed is 20"),
    *[("RedrivePolicy", wrong, ATTRIBUTE,
       "Invalid value for the parameter RedrivePolicy. Reason: Redrive policy is not a valid JSON map.")
      for wrong in (" ", "4", "[]", "badjson", "null")],
    ("RedrivePolicy", OTHER, VALUE, invalid(
        OTHER, "RedrivePolicy", "Only following attributes are supported: [maxReceiveCount, deadLetterTargetArn].")),
    ("RedrivePolicy", SHORT, VALUE, invalid(
        SHORT, "RedrivePolicy", "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")),
    ("RedrivePolicy", WITHOUT_TARGET, VALUE, invalid(
        WITHOUT_TARGET, "RedrivePolicy", "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")),
    *[("RedrivePolicy", text, VALUE, invalid(text, "RedrivePolicy", (
        f"Invalid value for maxReceiveCount: {said}, valid values are from 1 to 1000 both inclusive.")))
      for text, said in [(policy(deadLetterTargetArn=ARN, maxReceiveCount=wrong), said) for wrong, said in (
          (0, "0"), (-36, "-36"), (1001, "1001"), ("x", "x"), (2.5, "2.5"), (True, "True"), ([[]], "null"))]],
    *[("RedrivePolicy", text, VALUE, invalid(text, "RedrivePolicy", reason)) for text, reason in [
        (policy(deadLetterTargetArn="dummy", maxReceiveCount=42), "Invalid value for deadLetterTargetArn."),
        (policy(deadLetterTargetArn=5, maxReceiveCount=42), "Invalid value for deadLetterTargetArn."),
        (policy(deadLetterTargetArn=ARN + "/x", maxReceiveCount=42), "Invalid value for deadLetterTargetArn."),
        (policy(deadLetterTargetArn=TOPIC), "Only SQS queues are valid resources for deadLetterTargetArn."),
        (policy(deadLetterTargetArn=ARN + ".fifo"), "Dead-letter queue must be same type of queue as the source.."),
    ]],
    *[("RedriveAllowPolicy", wrong, ATTRIBUTE, ALLOW_FORMAT) for wrong in (
        "badjson", "[]", "444", "false", "{}", policy(redrivePermission="dummy"),
        policy(redrivePermission="allowAll", dummy=1), policy(redrivePermission="byQueue", sourceQueueArns="arn"),
        policy(redrivePermission="byQueue", sourceQueueArns=[{}]),
        policy(redrivePermission="byQueue", sourceQueueArns=["arn"]))],
    *[("RedriveAllowPolicy", text, VALUE, f"Value {text} {ALLOW} {reason}") for text, reason in [
        (policy(redrivePermission="byQueue"),
         "When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values."),
        (policy(redrivePermission="byQueue", sourceQueueArns=[]),
         "When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values."),
        (ELEVEN, "The maximum number of source queue ARNs you can specify is 10."),
        (policy(redrivePermission="denyAll", sourceQueueArns=[ARN]),
         "To specify one or more source queue ARNs, you must set redrivePermission to byQueue."),
    ]],
]

PERMISSION = {**QUEUE, "Label": "l", "AWSAccountIds": [ACCOUNT], "Actions": ["SendMessage"]}
LABEL_RULE = "Label can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"

OTHERS: list[tuple[str, dict[str, Any], str, str]] = [
    ("AddPermission", {**PERMISSION, "Label": ""}, MISSING, missing("Label")),
    ("AddPermission", {**PERMISSION, "Label": "a b"}, VALUE, LABEL_RULE),
    ("RemovePermission", {**QUEUE, "Label": "l" * 81}, VALUE, LABEL_RULE),
    ("RemovePermission", QUEUE, MISSING, missing("Label")),
    ("AddPermission", {**PERMISSION, "AWSAccountIds": []}, MISSING, missing("AWSAccountIds")),
    ("AddPermission", {**PERMISSION, "Actions": []}, MISSING, missing("Actions")),
    ("AddPermission", {**PERMISSION, "AWSAccountIds": [ACCOUNT, "me"]}, VALUE,
     invalid("[me]", "PrincipalId", "Unable to verify.")),
    ("AddPermission", {**PERMISSION, "Actions": ["SendMessageBatch"]}, VALUE,
     invalid("SQS:SendMessageBatch", "ActionName",
             "Please refer to the appropriate WSDL for a list of valid actions.")),
    ("AddPermission", {**PERMISSION, "Actions": ["CreateQueue"]}, VALUE,
     invalid("SQS:CreateQueue", "ActionName", "Only the queue owner is allowed to invoke this action.")),
    ("AddPermission", {**PERMISSION, "Actions": ["SendMessage"] * 8}, "OverLimit",
     "8 Actions were found, maximum allowed is 7."),
    ("TagQueue", QUEUE, MISSING, missing("Tags")),
    ("UntagQueue", QUEUE, MISSING, missing("TagKeys")),
    *[("TagQueue", {**QUEUE, "Tags": {wrong: "v"}}, VALUE, "Tag keys must be between 1 and 128 characters long.")
      for wrong in ("", "k" * 129)],
    ("UntagQueue", {**QUEUE, "TagKeys": ["k" * 129]}, VALUE, "Tag keys must be between 1 and 128 characters long."),
    ("TagQueue", {**QUEUE, "Tags": {"k": "v" * 257}}, VALUE, "Tag values must be at most 256 characters long."),
    ("TagQueue", {**QUEUE, "Tags": {"AWS:k": "v"}}, VALUE,
     "Tag keys beginning with aws: are reserved for internal use."),
    ("CreateQueue", {"QueueName": "orders", "tags": {str(number): "v" for number in range(51)}}, VALUE,
     "Too many tags added for queue. A queue can have at most 50."),
    *[(action, {}, MISSING, missing("SourceArn")) for action in ("StartMessageMoveTask", "ListMessageMoveTasks")],
    *[(action, {"SourceArn": "x"}, VALUE, f"You must use this format to specify the SourceArn: {FORMAT}")
      for action in ("StartMessageMoveTask", "ListMessageMoveTasks")],
    ("StartMessageMoveTask", {"SourceArn": TOPIC}, "ResourceNotFoundException",
     "The resource that you specified for the SourceArn parameter doesn't exist."),
    ("StartMessageMoveTask", {"SourceArn": ARN, "DestinationArn": "invalid"}, VALUE,
     f"You must use this format to specify the DestinationArn: {FORMAT}"),
    ("StartMessageMoveTask", {"SourceArn": ARN, "DestinationArn": ARN}, VALUE,
     "Source queue arn and destination queue arn cannot be the same."),
    *[("StartMessageMoveTask", {"SourceArn": ARN, "MaxNumberOfMessagesPerSecond": wrong}, VALUE,
       "Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: "
       "You must enter a number that's between 1 and 500.") for wrong in (0, 501)],
    ("CancelMessageMoveTask", {}, MISSING, missing("TaskHandle")),
    *[("ListMessageMoveTasks", {"SourceArn": ARN, "MaxResults": wrong}, VALUE,
       "Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 10.")
      for wrong in (0, 11)],
]

CASES = [
    *SENDING, *BATCHES, *RECEIVING, *QUEUES, *OTHERS,
    *[("CreateQueue", created("orders", **{name: text}), code, message) for name, text, code, message in POLICIES],
]
