"""Whether a request is for this door, in which protocol, and which action it asks for.

One port serves REST, SQS and SNS. A header names SQS in JSON. The Query protocol of SQS and SNS looks alike: the
version of the API tells them apart, else the scope of the signature, else the path, else the action itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl

from angelhair import limits
from angelhair.server.http.messages import Request
from angelhair.server.sqs.addresses import address_in_path
from angelhair.server.sqs.errors import MalformedQueryString, Protocol
from angelhair.server.sqs.operations import OPERATIONS

VERSIONS = ("2012-11-05", "2011-10-01", "2009-02-01", "2008-01-01")
"""The first is the one that everybody uses; AWS still answers requests of those before it."""

_TARGET = "AmazonSQS."
_FORM = "application/x-www-form-urlencoded"
_SCOPE = re.compile(r"/([a-z0-9-]+)/aws4_request")
_ALSO_OF_SNS = {"AddPermission", "RemovePermission"}


class Asked(NamedTuple):
    protocol: Protocol
    action: str
    form: dict[str, str] | None = None
    """The parameters, in the Query protocol."""


def recognise(request: Request) -> Asked | None:
    """None when the request is for another door. A form that cannot be read is refused here already."""
    target = request.headers.get("x-amz-target")
    if target is not None:
        return Asked(Protocol.JSON, target[len(_TARGET):]) if target.startswith(_TARGET) else None
    if request.method != "POST" and request.method != "GET":
        return None
    queue = address_in_path(request.path)
    if queue is None and request.path != "/":
        return None
    pairs = _parameters(request)
    if pairs is None:
        return None
    form = dict(pairs)
    action = form.get("Action", "")
    if not _is_ours(request, form, action, queue is not None):
        return None
    if queue is not None:
        form.setdefault("QueueUrl", request.path)
    return Asked(Protocol.QUERY, action, form)


def _parameters(request: Request) -> list[tuple[str, str]] | None:
    """Those of the URL, then those of the body, which wins; None when the body is no form."""
    parts: list[str | bytes] = [request.query] if request.query else []
    if request.method == "POST" and request.body:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != _FORM:
            return None
        parts.append(request.body)
    pairs: list[tuple[str, str]] = []
    for part in parts:
        try:
            # Some clients leave letters of other alphabets as they are.
            text = part if isinstance(part, str) else part.decode()
            pairs += parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=limits.AWS_FORM_PARAMETERS)
        except ValueError:
            raise MalformedQueryString from None
    return pairs


def _is_ours(request: Request, form: dict[str, str], action: str, is_queue: bool) -> bool:
    version = form.get("Version")
    if version is not None and action:
        return version in VERSIONS
    if is_queue:
        return True
    scope = _SCOPE.search(request.headers.get("authorization", "") or form.get("X-Amz-Credential", ""))
    if scope is not None and action:
        return scope[1] == "sqs"
    return action in OPERATIONS and action not in _ALSO_OF_SNS
