"""What the door says about itself: what this is, the OpenAPI document, and a page for people that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.release import version
from angelhair.server.rest import openapi, own_shapes, query, reading
from angelhair.server.rest.operators import OPERATORS
from angelhair.server.rest.route import Answer, Route
from angelhair.server.service import Service

HTML = "text/html; charset=utf-8"
# The page holds no script and loads nothing: a browser may know that.
_HTML_HEADERS = (("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),)
_LINKS = own_shapes.Links(
    "/queues", "/topics", "/cluster", "/openapi.json", "/docs", "/health/live", "/health/ready", "/metrics"
)


def routes(verbs: Sequence[Route]) -> tuple[Route, ...]:
    """The pages' own routes, which describe the verbs' and themselves."""

    async def about(service: Service, request: Request) -> Response:
        query.read(request.query, query.NONE)
        return json_response(200, own_shapes.About("angelhair", version(), _LINKS))

    async def show_openapi(service: Service, request: Request) -> Response:
        query.read(request.query, query.NONE)
        return Response(200, document())

    async def show_docs(service: Service, request: Request) -> Response:
        query.read(request.query, query.NONE)
        return Response(200, page(), HTML, _HTML_HEADERS)

    @cache
    def document() -> bytes:
        return msgspec.json.encode(openapi.document(all_routes, version())) + b"\n"

    @cache
    def page() -> bytes:
        return reading.page(all_routes, openapi.document(all_routes, version())).encode()

    about_example = own_shapes.About("angelhair", "1.0.0", _LINKS)
    own = (
        Route(
            "GET", "/", about, "about", "Server", "What this is",
            {200: Answer("Name, version, and where to go on.", own_shapes.About, about_example)}, action=None,
        ),
        Route(
            "GET", "/openapi.json", show_openapi, "openapi", "Server", "This description, for programs",
            {200: Answer("OpenAPI 3.1.", content_type="application/json", example="document")}, action=None,
        ),
        Route(
            "GET", "/docs", show_docs, "docs", "Server", "This description, for people",
            {200: Answer("A page.", content_type=HTML, example="page")}, action=None,
        ),
    )
    all_routes = (*verbs, *own, *OPERATORS)
    return own
