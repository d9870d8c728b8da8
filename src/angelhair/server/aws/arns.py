"""ARNs of queues, and the names that queues may have on the AWS wire."""

from __future__ import annotations

import re
from typing import NamedTuple

from angelhair import limits
from angelhair.model import FIFO_ENDING

FIFO = FIFO_ENDING
ACCOUNT = "[0-9]{12}"
QUEUE_NAME = r"[A-Za-z0-9_-]+(?:\.fifo)?"

_BARE_NAME = re.compile(QUEUE_NAME, re.ASCII)
_ARN = re.compile(rf"arn:(aws[a-z-]*):sqs:([a-z0-9-]+):({ACCOUNT}):({QUEUE_NAME})", re.ASCII)
_ANY_ARN = re.compile(r"arn:[^:\s]+:[^:\s]+:[^:\s]*:[^:\s]*:\S+")


class QueueArn(NamedTuple):
    partition: str
    region: str
    account: str
    name: str


def is_queue_name(text: str) -> bool:
    return len(text) <= limits.AWS_QUEUE_NAME_LENGTH and _BARE_NAME.fullmatch(text) is not None


def queue_arn(region: str, account: str, name: str) -> str:
    return f"arn:aws:sqs:{region}:{account}:{name}"


def parse_arn(text: str) -> QueueArn | None:
    """The queue that an ARN names; None when it does not name a queue of SQS."""
    found = _ARN.fullmatch(text)
    return QueueArn(*found.groups()) if found is not None and is_queue_name(found[4]) else None


def looks_like_arn(text: str) -> bool:
    """Whether it has the form of an ARN, of whatever service."""
    return _ANY_ARN.fullmatch(text) is not None
