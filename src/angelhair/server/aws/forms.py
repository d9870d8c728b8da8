"""The parameters of a request in the Query protocol, and which service its signature is for."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from angelhair import limits
from angelhair.server.aws.errors import MalformedForm
from angelhair.server.http.messages import Request

_FORM = "application/x-www-form-urlencoded"
_SCOPE = re.compile(r"/([a-z0-9-]+)/aws4_request")


def form_of(request: Request) -> dict[str, str] | None:
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
            raise MalformedForm from None
    return dict(pairs)


def service_in_scope(request: Request, form: dict[str, str]) -> str | None:
    """The service that the request is signed for, as far as it says so."""
    found = _SCOPE.search(request.headers.get("authorization", "") or form.get("X-Amz-Credential", ""))
    return None if found is None else found[1]
