"""The operators' door: health and metrics."""

from __future__ import annotations

from angelhair.server.http.messages import Request, Response, error_response
from angelhair.server.observing.health import Readiness, live
from angelhair.server.observing.metrics import Metrics

LIVE, READY, METRICS = "/health/live", "/health/ready", "/metrics"
ROUTES = (LIVE, READY, METRICS)


class OperationsDoor:
    def __init__(self, readiness: Readiness, metrics: Metrics) -> None:
        self._readiness = readiness
        self._metrics = metrics

    async def handle(self, request: Request) -> Response | None:
        if request.path not in ROUTES:
            return None
        request.route = request.path
        if request.method not in ("GET", "HEAD"):
            allow = (("Allow", "GET, HEAD"),)
            return error_response(405, "method_not_allowed", "this answers to GET", request.id, headers=allow)
        if request.path == LIVE:
            return live(request)
        if request.path == READY:
            return await self._readiness.respond(request)
        return await self._metrics.respond(request)
