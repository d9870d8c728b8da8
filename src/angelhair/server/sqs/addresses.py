"""Where a queue is: its URL and its ARN.

A URL is made of what the client itself called this server, and any host is accepted in one: clients keep URLs in their
configuration, and come through proxies, tunnels and other names of the same server.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from angelhair import limits
from angelhair.server.http.messages import Request
from angelhair.server.sqs.errors import InvalidAddress

FIFO = ".fifo"

_NAME = r"[A-Za-z0-9_-]+(?:\.fifo)?"
_ACCOUNT = "[0-9]{12}"
_URL = re.compile(rf"(?:https?://[^/?#\s]+)?/({_ACCOUNT})/({_NAME})/?", re.ASCII)
_PATH = re.compile(rf"/({_ACCOUNT})/({_NAME})/?", re.ASCII)
_BARE_NAME = re.compile(_NAME, re.ASCII)
_ARN = re.compile(rf"arn:(aws[a-z-]*):sqs:([a-z0-9-]+):({_ACCOUNT}):({_NAME})", re.ASCII)
_ANY_ARN = re.compile(r"arn:[^:\s]+:[^:\s]+:[^:\s]*:[^:\s]*:\S+")


class QueueAddress(NamedTuple):
    account: str | None
    """None when only a name was given: whoever asks means a queue of their own."""
    name: str

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(FIFO)


class QueueArn(NamedTuple):
    partition: str
    region: str
    account: str
    name: str


@lru_cache(maxsize=4096)
def queue_address(url: str) -> QueueAddress:
    """The queue behind a URL of whatever host, behind a path, or behind a name alone."""
    if len(url) <= limits.AWS_QUEUE_URL_LENGTH:
        found = _URL.fullmatch(url)
        if found is not None and is_queue_name(found[2]):
            return QueueAddress(found[1], found[2])
        if is_queue_name(url):
            return QueueAddress(None, url)
    raise InvalidAddress(url)


def address_in_path(path: str) -> QueueAddress | None:
    """The queue whose URL has this path; None when it is the path of something else."""
    found = _PATH.fullmatch(path)
    return QueueAddress(found[1], found[2]) if found is not None and is_queue_name(found[2]) else None


def is_queue_name(text: str) -> bool:
    return len(text) <= limits.AWS_QUEUE_NAME_LENGTH and _BARE_NAME.fullmatch(text) is not None


def queue_url(request: Request, account: str, name: str) -> str:
    """As the client can use it: with the host and the scheme of its own request."""
    host = request.headers.get("host") or "localhost"
    return f"{'https' if request.secure else 'http'}://{host}/{account}/{name}"


def queue_arn(region: str, account: str, name: str) -> str:
    return f"arn:aws:sqs:{region}:{account}:{name}"


def parse_arn(text: str) -> QueueArn | None:
    """The queue that an ARN names; None when it does not name a queue of SQS."""
    found = _ARN.fullmatch(text)
    return QueueArn(*found.groups()) if found is not None and is_queue_name(found[4]) else None


def looks_like_arn(text: str) -> bool:
    """Whether it has the form of an ARN, of whatever service."""
    return _ANY_ARN.fullmatch(text) is not None
