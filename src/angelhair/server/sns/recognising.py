"""Whether a request is for this door, and which action it asks for.

The Query protocol of SQS and SNS looks alike: the version of the API tells them apart, else the scope of the signature,
else the action itself.
"""

from __future__ import annotations

from typing import NamedTuple

from angelhair.server.aws.errors import MalformedForm, MalformedQueryString
from angelhair.server.aws.forms import form_of, service_in_scope
from angelhair.server.http.messages import Request
from angelhair.server.sns.operations import ELSEWHERE, OPERATIONS

VERSION = "2010-03-31"

_ALSO_OF_SQS = {"AddPermission", "RemovePermission"}


class Asked(NamedTuple):
    action: str
    form: dict[str, str]


def recognise(request: Request) -> Asked | None:
    """None when the request is for another door. A form that cannot be read is refused here already."""
    if request.path != "/" or request.method not in ("POST", "GET") or "x-amz-target" in request.headers:
        return None
    try:
        form = form_of(request)
    except MalformedForm:
        raise MalformedQueryString from None
    action = "" if form is None else form.get("Action", "")
    return Asked(action, form) if form is not None and action and _is_ours(request, form, action) else None


def _is_ours(request: Request, form: dict[str, str], action: str) -> bool:
    version = form.get("Version")
    if version is not None:
        return version == VERSION
    service = service_in_scope(request, form)
    if service is not None:
        return service == "sns"
    return (action in OPERATIONS or action in ELSEWHERE) and action not in _ALSO_OF_SQS
