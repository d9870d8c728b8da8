"""Spans on their way to a collector. What OpenTelemetry's exporter has to say while that is away, it says once.

It logs two or three lines for every batch. The first has the reason; the next comes after spans went through again.
Importing this needs the packages of the extra `telemetry`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult


class Sending(SpanExporter):
    def __init__(self, url: str, timeout_seconds: float) -> None:
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=timeout_seconds)
        self._filter = _Once()
        # The logger is everybody's: a program that embeds the server may have an exporter of its own.
        self._logger = logging.getLogger(OTLPSpanExporter.__module__)
        self._logger.addFilter(self._filter)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._filter.thread = threading.get_ident()
        try:
            result = self._exporter.export(spans)
        finally:
            self._filter.thread = None
        if result is SpanExportResult.SUCCESS:
            self._filter.has_passed = False
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        self._logger.removeFilter(self._filter)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class _Once(logging.Filter):
    """Passes the first warning of one thread, and all that others say."""

    def __init__(self) -> None:
        super().__init__()
        self.thread: int | None = None
        """Which is sending just now; spans of one server are sent by one at a time."""
        self.has_passed = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self.thread or record.levelno < logging.WARNING:
            return True
        passes, self.has_passed = not self.has_passed, True
        return passes
