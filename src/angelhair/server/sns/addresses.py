"""ARNs of topics and of subscriptions."""

from __future__ import annotations

import re
from typing import NamedTuple

from angelhair import limits
from angelhair.server.aws.arns import ACCOUNT, FIFO
from angelhair.server.aws.carried import as_uuid
from angelhair.server.sns.errors import InvalidParameter

PARTS = 6
"""Of an ARN, parted by colons; what comes after the fifth belongs to the resource."""

_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.SNS_TOPIC_NAME_LENGTH}}}", re.ASCII)
_ACCOUNT = re.compile(ACCOUNT, re.ASCII)
_REGION = re.compile("[a-z0-9-]{1,64}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class TopicAddress(NamedTuple):
    region: str
    account: str
    name: str


class SubscriptionAddress(NamedTuple):
    region: str
    account: str
    topic: str
    id: str
    """As the engine has it."""


def is_topic_name(text: str) -> bool:
    return len(text) <= limits.SNS_TOPIC_NAME_LENGTH and _NAME.fullmatch(text.removesuffix(FIFO)) is not None


def topic_arn(region: str, account: str, name: str) -> str:
    return f"arn:aws:sns:{region}:{account}:{name}"


def subscription_arn(region: str, account: str, topic: str, subscription_id: str) -> str:
    return f"{topic_arn(region, account, topic)}:{as_uuid(subscription_id)}"


def parse_topic_arn(text: str, parameter: str = "TopicArn") -> TopicAddress:
    _, region, account, name, *more = _parts(text, parameter)
    if more or not is_topic_name(name):
        raise InvalidParameter(parameter)
    return TopicAddress(region, account, name)


def parse_subscription_arn(text: str) -> SubscriptionAddress:
    _, region, account, name, *more = _parts(text, "SubscriptionArn")
    if len(more) != 1 or not is_topic_name(name) or _ID.fullmatch(more[0]) is None:
        raise InvalidParameter("SubscriptionArn")
    return SubscriptionAddress(region, account, name, more[0].replace("-", ""))


def _parts(text: str, parameter: str) -> list[str]:
    """What comes after `arn:aws:`."""
    parts = text.split(":")
    if len(parts) < PARTS:
        raise InvalidParameter(parameter, f"An ARN must have at least {PARTS} elements, not {len(parts)}")
    is_of_sns = parts[0] == "arn" and parts[1].startswith("aws") and parts[2] == "sns"
    if not is_of_sns or _REGION.fullmatch(parts[3]) is None or _ACCOUNT.fullmatch(parts[4]) is None:
        raise InvalidParameter(parameter)
    return parts[2:]
