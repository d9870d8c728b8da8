"""OpenTelemetry: one span per request, sent to a collector by OTLP over HTTP. Only when an endpoint is set.

Spans carry the route, never the path: that has receipts in it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from angelhair import limits
from angelhair.errors import AngelhairError, InvalidRequest
from angelhair.server.http.messages import Request
from angelhair.server.installing import to_install

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

TRACES_PATH = "/v1/traces"
"""Where OTLP wants traces, below the address of the collector."""


class TelemetryMissing(AngelhairError):
    """Traces are asked for, and the packages that send them are not installed."""


class Traces:
    """Spans of one process. Sending is done on a thread of the SDK's own; what finds no room there is dropped."""

    def __init__(self, endpoint: str, application: str) -> None:
        url = traces_url(endpoint)
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace import SpanKind, Status, StatusCode
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

            from angelhair.server.observing.sending import Sending
        except ImportError as error:
            raise TelemetryMissing(
                f"otlp_endpoint is {endpoint}, but {error.name} is not installed; {to_install('telemetry')}"
            ) from error
        # No provider is made global: a program that embeds the server may have its own.
        self._provider: TracerProvider = TracerProvider(
            resource=Resource.create({"service.name": application}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(Sending(url, limits.TRACES_PATIENCE_SECONDS)))
        self._tracer = self._provider.get_tracer("angelhair")
        self._extract = TraceContextTextMapPropagator().extract
        self._kind = SpanKind.SERVER
        self._error = Status(StatusCode.ERROR)

    def begin(self, request: Request) -> Span:
        """A span that continues the caller's trace, if it sent a traceparent."""
        context = self._extract(dict(request.headers))
        return self._tracer.start_span(
            request.method,
            context=context,
            kind=self._kind,
            attributes={
                "http.request.method": request.method,
                "url.scheme": "https" if request.secure else "http",
                "client.address": request.peer,
                "http.request.body.size": len(request.body),
                "angelhair.request_id": request.id,
            },
        )

    def end(self, span: Span, request: Request, status: int) -> None:
        span.set_attribute("http.response.status_code", status)
        if request.route:
            span.update_name(f"{request.method} {request.route}")
            span.set_attribute("http.route", request.route)
        if request.queue is not None:
            span.set_attribute("messaging.system", "angelhair")
            span.set_attribute("messaging.destination.name", request.queue)
        if request.key is not None:
            span.set_attribute("angelhair.account", request.account)
        if status >= 500:
            span.set_status(self._error)
        span.end()

    async def stop(self) -> None:
        """Sends what is left, on a thread: the collector may be away."""
        await asyncio.to_thread(self._provider.shutdown)


def traces_url(endpoint: str) -> str:
    """The address of a collector, or the whole URL of its traces."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest("otlp_endpoint", f"must be a URL such as http://127.0.0.1:4318, not {endpoint!r}")
    if parts.path in ("", "/"):
        return f"{parts.scheme}://{parts.netloc}{TRACES_PATH}"
    return endpoint
