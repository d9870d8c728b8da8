"""Whether a request is for this door, in which protocol, and which action it asks for.

One port serves REST, SQS and SNS. A header names SQS in JSON. The Query protocol of SQS and SNS looks alike: the
version of the API tells them apart, else the scope of the signature, else the path, else the action itself.
"""

from __future__ import annotations

from typing import NamedTuple

from angelhair.server.aws.errors import MalformedForm, MalformedQueryString, Protocol
from angelhair.server.aws.forms import form_of, service_in_scope
from angelhair.server.http.messages import Request
from angelhair.server.sqs.addresses import address_in_path
from angelhair.server.sqs.operations import OPERATIONS

VERSIONS = ("2012-11-05", "2011-10-01", "2009-02-01", "2008-01-01")
"""The first is the one that everybody uses; AWS still answers requests of those before it."""

_TARGET = "AmazonSQS."
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
    try:
        form = form_of(request)
    except MalformedForm:
        raise MalformedQueryString from None
    if form is None:
        return None
    action = form.get("Action", "")
    if not _is_ours(request, form, action, queue is not None):
        return None
    if queue is not None:
        form.setdefault("QueueUrl", request.path)
    return Asked(Protocol.QUERY, action, form)


def _is_ours(request: Request, form: dict[str, str], action: str, is_queue: bool) -> bool:
    version = form.get("Version")
    if version is not None and action:
        return version in VERSIONS
    if is_queue:
        return True
    service = service_in_scope(request, form)
    if service is not None and action:
        return service == "sqs"
    return action in OPERATIONS and action not in _ALSO_OF_SNS
