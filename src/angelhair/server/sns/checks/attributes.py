"""Attributes of topics and of subscriptions: which there are, and what each of them may be.

Values arrive as text and are kept as text. A check returns what is kept: None removes the attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from angelhair import limits
from angelhair.engine.topics import filters
from angelhair.server.aws.arns import FIFO, QueueArn, parse_arn
from angelhair.server.aws.policies import json_object, statements_in
from angelhair.server.sns.checks.delivery_policies import check_delivery_policy
from angelhair.server.sns.errors import InvalidParameter

Check = Callable[[str, str], str | None]
"""Takes the attribute's name and its text."""

SCOPES = {"MessageAttributes": filters.BY_ATTRIBUTES, "MessageBody": filters.BY_BODY}
THROUGHPUT_SCOPES = ("Topic", "MessageGroup")
FEEDBACK = tuple(
    f"{protocol}{feedback}"
    for protocol in ("HTTP", "SQS", "Lambda", "Firehose", "Application")
    for feedback in ("SuccessFeedbackRoleArn", "SuccessFeedbackSampleRate", "FailureFeedbackRoleArn")
)

_WHOLE = re.compile("[0-9]{1,10}", re.ASCII)


def _truth(name: str, text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise InvalidParameter(f"{name}: Invalid value [{text}]. Must be true or false.")
    return text.lower()


def _text(_name: str, text: str) -> str | None:
    return text or None


def _choice(*choices: str) -> Check:
    def check(name: str, text: str) -> str:
        if text not in choices:
            raise InvalidParameter(f"{name}: Invalid value [{text}]. Please use either {' or '.join(choices)}")
        return text

    return check


def _display_name(name: str, text: str) -> str | None:
    if len(text) > limits.SNS_DISPLAY_NAME_LENGTH:
        raise InvalidParameter(name, f"must be at most {limits.SNS_DISPLAY_NAME_LENGTH} characters long")
    return text or None


def _policy(name: str, text: str) -> str | None:
    statements = statements_in(text) if text else []
    if statements is None:
        raise InvalidParameter(name, "Policy Error: PrincipalNotFound or malformed policy")
    if len(statements) > limits.AWS_POLICY_STATEMENTS:
        raise InvalidParameter(name, f"A policy has at most {limits.AWS_POLICY_STATEMENTS} statements")
    return text or None


def _size(name: str, text: str) -> str:
    least, most = limits.AWS_MESSAGE_SIZE_MINIMUM_BYTES, limits.AWS_MESSAGE_SIZE_MAXIMUM_BYTES
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
        raise InvalidParameter(name, f"must be an integer between {least} and {most}")
    return text


def _never(name: str, _text: str) -> str:
    raise InvalidParameter(name, "Archives and replays of topics are not served here; a queue keeps its own history")


OF_TOPICS: dict[str, Check] = {
    "ArchivePolicy": _never,
    "ContentBasedDeduplication": _truth,
    "DeliveryPolicy": lambda name, text: check_delivery_policy(name, text, of_topic=True),
    "DisplayName": _display_name,
    "FifoThroughputScope": _choice(*THROUGHPUT_SCOPES),
    "FifoTopic": _truth,
    "KmsMasterKeyId": _text,
    "MaximumMessageSize": _size,
    "Policy": _policy,
    "SignatureVersion": _choice("1", "2"),
    "TracingConfig": _choice("PassThrough", "Active"),
    **dict.fromkeys(FEEDBACK, _text),
}
ONLY_FIFO = ("ContentBasedDeduplication", "FifoThroughputScope")
REDRIVE = "RedrivePolicy"


def checked_topic_attributes(texts: Mapping[str, str], is_fifo: bool) -> dict[str, str]:
    """At creation."""
    found: dict[str, str] = {}
    for name, text in texts.items():
        check = OF_TOPICS.get(name)
        if check is None or (name in ONLY_FIFO and not is_fifo):
            raise InvalidParameter("Attributes", f"Unknown attribute {name}")
        kept = check(name, text)
        if kept is not None:
            found[name] = kept
    if is_fifo != (found.pop("FifoTopic", "false") == "true"):
        raise InvalidParameter("Topic Name")
    return found


def checked_topic_attribute(name: str, text: str, is_fifo: bool) -> str | None:
    """Of a topic that is there: its kind stays as it is."""
    check = OF_TOPICS.get(name)
    if check is None or name == "FifoTopic" or (name in ONLY_FIFO and not is_fifo):
        raise InvalidParameter("AttributeName")
    return check(name, text)


# --- subscriptions ----------------------------------------------------------------------------------------------------


def _redrive(name: str, text: str) -> str | None:
    if not text:
        return None
    policy = json_object(text)
    target = None if policy is None else policy.get("deadLetterTargetArn")
    if policy is None or not isinstance(target, str) or parse_arn(target) is None:
        raise InvalidParameter(f"{name}: must be a JSON object with the deadLetterTargetArn of an SQS queue")
    return text


OF_SUBSCRIPTIONS: dict[str, Check] = {
    "DeliveryPolicy": lambda name, text: check_delivery_policy(name, text, of_topic=False),
    "FilterPolicy": _text,
    "FilterPolicyScope": _choice(*SCOPES),
    "RawMessageDelivery": _truth,
    REDRIVE: _redrive,
    "ReplayPolicy": _never,
    "SubscriptionRoleArn": _text,
}


def checked_subscription_attributes(texts: Mapping[str, str], at_subscribe: bool) -> dict[str, str | None]:
    """What is removed is None. A filter policy is another's to check, who knows its scope too."""
    found: dict[str, str | None] = {}
    for name, text in texts.items():
        check = OF_SUBSCRIPTIONS.get(name)
        if check is None:
            raise InvalidParameter("Attributes", f"Unknown attribute {name}") if at_subscribe else InvalidParameter(
                "AttributeName"
            )
        found[name] = check(name, text)
    return found


def check_filter(policy: str | None, scope: str, at_subscribe: bool) -> None:
    if policy is None:
        return
    try:
        filters.check(policy, scope)
    except filters.InvalidFilterPolicy as error:
        where = "Attributes Reason: " if at_subscribe else ""
        raise InvalidParameter(f"{where}FilterPolicy: {error}") from None


def dead_letter_arn(policy: str | None) -> QueueArn | None:
    found = None if policy is None else json_object(policy)
    return None if found is None else parse_arn(str(found.get("deadLetterTargetArn")))


def dead_letter_queue(policy: str | None, is_fifo: bool) -> str | None:
    """The name of the queue that takes what a subscription cannot be brought."""
    arn = dead_letter_arn(policy)
    if arn is None:
        return None
    if arn.name.endswith(FIFO) and not is_fifo:
        raise InvalidParameter("RedrivePolicy: must use a standard queue as its dead-letter queue")
    return arn.name
