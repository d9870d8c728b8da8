"""Answers who is asking. Tools that set up credentials call it first, and stop when nobody answers."""

from __future__ import annotations

from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from angelhair import limits
from angelhair.server.auth import Refused
from angelhair.server.gate import Caller, Gate
from angelhair.server.http.messages import Request, Response

ACTION, VERSION = "GetCallerIdentity", "2011-06-15"
SERVICES = frozenset({"sts"})
NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
XML = "text/xml"


class StsDoor:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def handle(self, request: Request) -> Response | None:
        """None when the request is not for this door: anything but this action of this version."""
        if request.path != "/" or request.method not in ("GET", "POST"):
            return None
        text = request.body.decode("latin-1") if request.method == "POST" else request.query
        try:
            form = parse_qs(text, max_num_fields=limits.AWS_FORM_PARAMETERS) if VERSION in text else {}
        except ValueError:
            return None
        if form.get("Action") != [ACTION] or form.get("Version") != [VERSION]:
            return None
        request.route = f"sts:{ACTION}"
        try:
            return _told(await self._gate.admit(request, SERVICES, ACTION), request)
        except Refused as refused:
            return _refused(refused, request)


def _told(caller: Caller, request: Request) -> Response:
    result = (
        f"<Arn>{escape(caller.arn)}</Arn><UserId>{escape(caller.id)}</UserId><Account>{caller.account}</Account>"
    )
    return _answer(200, request, (
        f'<{ACTION}Response xmlns="{NAMESPACE}"><{ACTION}Result>{result}</{ACTION}Result>'
        f"<ResponseMetadata><RequestId>{escape(request.id)}</RequestId></ResponseMetadata></{ACTION}Response>"
    ))


def _refused(refused: Refused, request: Request) -> Response:
    return _answer(refused.status, request, (
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>Sender</Type><Code>{refused.code}</Code>'
        f"<Message>{escape(refused.message)}</Message></Error><RequestId>{escape(request.id)}</RequestId>"
        "</ErrorResponse>"
    ))


def _answer(status: int, request: Request, xml: str) -> Response:
    return Response(status, xml.encode(), XML, (("x-amzn-RequestId", request.id),))
