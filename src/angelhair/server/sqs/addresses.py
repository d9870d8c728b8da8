"""Where a queue is: its URL.

A URL is made of what the client itself called this server, and any host is accepted in one: clients keep URLs in their
configuration, and come through proxies, tunnels and other names of the same server.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from angelhair import limits
from angelhair.server.aws.arns import ACCOUNT, FIFO, QUEUE_NAME, is_queue_name
from angelhair.server.http.messages import Request
from angelhair.server.sqs.errors import InvalidAddress

_URL = re.compile(rf"(?:https?://[^/?#\s]+)?/({ACCOUNT})/({QUEUE_NAME})/?", re.ASCII)
_PATH = re.compile(rf"/({ACCOUNT})/({QUEUE_NAME})/?", re.ASCII)


class QueueAddress(NamedTuple):
    account: str | None
    """None when only a name was given: whoever asks means a queue of their own."""
    name: str

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(FIFO)


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


def queue_url(request: Request, account: str, name: str) -> str:
    """As the client can use it: with the host and the scheme of its own request."""
    host = request.headers.get("host") or "localhost"
    return f"{'https' if request.secure else 'http'}://{host}/{account}/{name}"
