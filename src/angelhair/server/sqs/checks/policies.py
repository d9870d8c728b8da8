"""The attributes that are JSON: who may use a queue, where its dead letters go, whose dead letters it takes."""

from __future__ import annotations

import re

from angelhair import limits
from angelhair.server.aws.arns import FIFO, looks_like_arn, parse_arn
from angelhair.server.aws.errors import echoed
from angelhair.server.aws.policies import json_object, statements_in
from angelhair.server.sqs.checked import RedriveAllowPolicy, RedrivePolicy
from angelhair.server.sqs.errors import (
    InvalidAttributeValue,
    InvalidParameterValue,
    OverLimit,
    invalid_value,
    wrong_attribute_value,
)

_REDRIVE_MEMBERS = {"deadLetterTargetArn", "maxReceiveCount"}
_COUNT = re.compile("[0-9]{1,4}", re.ASCII)
_ALLOW_MEMBERS = {"redrivePermission", "sourceQueueArns"}


def parse_policy(name: str, text: str, _is_fifo: bool) -> str | None:
    """A policy as it was given; its form is checked, its meaning is for whoever decides by it."""
    if not text:
        return None
    statements = statements_in(text)
    if statements is None:
        raise wrong_attribute_value(name)
    if len(statements) > limits.AWS_POLICY_STATEMENTS:
        raise OverLimit(
            f"{len(statements)} statements were found in the submitted policy, "
            f"max allowed is {limits.AWS_POLICY_STATEMENTS}"
        )
    return text


def parse_redrive_policy(name: str, text: str, is_fifo: bool) -> RedrivePolicy | None:
    if not text:
        return None
    policy = json_object(text)
    if policy is None:
        raise wrong_attribute_value(name, "Redrive policy is not a valid JSON map.")
    if not policy.keys() <= _REDRIVE_MEMBERS:
        reason = "Only following attributes are supported: [maxReceiveCount, deadLetterTargetArn]."
        raise invalid_value(text, name, reason)
    most = policy.get("maxReceiveCount", limits.AWS_RECEIVES_DEFAULT)
    count = int(most) if isinstance(most, str) and _COUNT.fullmatch(most) else most
    if type(count) is not int or not 1 <= count <= limits.AWS_RECEIVES_MAXIMUM:
        reason = f"valid values are from 1 to {limits.AWS_RECEIVES_MAXIMUM} both inclusive."
        said = echoed(most) if isinstance(most, str | int | float) else "null"
        raise invalid_value(text, name, f"Invalid value for maxReceiveCount: {said}, {reason}")
    target = policy.get("deadLetterTargetArn")
    if target is None:
        reason = "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."
        raise invalid_value(text, name, reason)
    arn = parse_arn(target) if isinstance(target, str) else None
    if arn is None:
        is_other = isinstance(target, str) and looks_like_arn(target) and target.split(":")[2] != "sqs"
        raise invalid_value(
            text, name,
            "Only SQS queues are valid resources for deadLetterTargetArn." if is_other
            else "Invalid value for deadLetterTargetArn.",
        )
    if arn.name.endswith(FIFO) != is_fifo:
        # Both full stops are AWS's.
        raise invalid_value(text, name, "Dead-letter queue must be same type of queue as the source..")
    return RedrivePolicy(target, arn.name, count)


def missing_dead_letter_queue(text: str) -> InvalidParameterValue:
    """What an action says when the queue that a redrive policy names is not there."""
    return invalid_value(text, "RedrivePolicy", "Dead letter target does not exist.")


def parse_redrive_allow_policy(name: str, text: str, _is_fifo: bool) -> RedriveAllowPolicy | None:
    if not text:
        return None
    policy = json_object(text)
    if policy is None or not policy.keys() <= _ALLOW_MEMBERS:
        raise _unsupported_format(name)
    permission, sources = policy.get("redrivePermission"), policy.get("sourceQueueArns")
    if permission not in ("allowAll", "denyAll", "byQueue"):
        raise _unsupported_format(name)
    if sources is not None:
        if not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
            raise _unsupported_format(name)
        if permission != "byQueue":
            raise _cannot_create(
                name, text, "To specify one or more source queue ARNs, you must set redrivePermission to byQueue."
            )
        if len(sources) > limits.AWS_REDRIVE_SOURCES:
            most = limits.AWS_REDRIVE_SOURCES
            raise _cannot_create(name, text, f"The maximum number of source queue ARNs you can specify is {most}.")
        if not all(parse_arn(source) for source in sources):
            raise _unsupported_format(name)
    if permission == "byQueue" and not sources:
        raise _cannot_create(
            name, text,
            "When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values.",
        )
    return RedriveAllowPolicy(permission, sources or [])


def _unsupported_format(name: str) -> InvalidAttributeValue:
    # The apostrophe is AWS's.
    return wrong_attribute_value(
        name, "Amazon SQS can't create the redrive allow policy, as it’s in an unsupported format."
    )


def _cannot_create(name: str, text: str, reason: str) -> InvalidParameterValue:
    return invalid_value(text, name, f"Amazon SQS can't create the redrive allow policy. {reason}")
