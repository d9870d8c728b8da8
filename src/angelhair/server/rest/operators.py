"""What the operators' door (`server/observing/door.py`) answers: described here, so that there is one description."""

from __future__ import annotations

from typing import Any

from angelhair.server.http.messages import Response
from angelhair.server.rest import own_shapes
from angelhair.server.rest.route import Answer, Route

METRICS_TYPE = "text/plain"


async def _elsewhere(*_: Any) -> Response:
    raise NotImplementedError("the operators' door answers this")


OPERATORS = (
    Route(
        "GET", "/health/live", _elsewhere, "live", "Server", "Whether this process lives",
        {200: Answer("It does.", own_shapes.Health, own_shapes.Health("live"))}, action=None,
        description="Says nothing of the store: that it is away is no reason to start a process again.",
    ),
    Route(
        "GET", "/health/ready", _elsewhere, "ready", "Server", "Whether to send requests here",
        {200: Answer("Its store answers, and it is not stopping.", own_shapes.Health, own_shapes.Health("ready"))},
        refusals=("unavailable",), action=None,
    ),
    Route(
        "GET", "/metrics", _elsewhere, "metrics", "Server", "Figures for Prometheus",
        {200: Answer("All of this server's processes, in one text.", content_type=METRICS_TYPE, example="figures")},
        description="In OpenMetrics for who asks for it by `Accept`.", action=None,
    ),
)
