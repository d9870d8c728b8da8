"""Logs: one line per event on stderr, as JSON in Logstash's shape or as text for people, written beside the loop.

A line is formatted where it is logged, while what it speaks of is still as it was, and handed to a thread: a terminal
that scrolls or a pipe that nobody reads does not hold a request up. When too many lines wait, further ones are left out
and their number is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue
from types import TracebackType
from typing import Any, TextIO

from angelhair import limits
from angelhair.errors import InvalidRequest
from angelhair.server.http.messages import Request
from angelhair.server.observing.hiding import without_body, without_receipts

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FORMATS = ("json", "text")

_OWN = "angelhair"
_POSTING = logging.getLogger("httpx")
_RECORD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_IN_MESSAGE = frozenset(("method", "route", "status"))
"""What an access line says in its message already."""

_CONTROLS = {number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160))} | {9: "\\t", 10: "\\n", 13: "\\r"}

_log = logging.getLogger(__name__)
_access = logging.getLogger(f"{_OWN}.access")
"""By a name that people can set levels for; where the file lies is nobody's business."""

_handling: ContextVar[Request | None] = ContextVar("handling", default=None)


def now_handling(request: Request) -> None:
    """From now on what this task logs is about this request. Work that it starts and that may outlive it, or serve
    others too, runs in a context of its own (`server/runtime.py`)."""
    _handling.set(request)


def current_request() -> Request | None:
    """The request that the running task handles."""
    return _handling.get()


class JsonFormatter(logging.Formatter):
    """Logstash's names, so that its inputs take the lines as they are."""

    def __init__(self, application: str) -> None:
        super().__init__()
        self._application = application

    def format(self, record: logging.LogRecord) -> str:
        request = current_request()
        fields: dict[str, Any] = {
            "@timestamp": _time(record),
            "@version": "1",
            "level": record.levelname,
            "application": self._application,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request is not None:
            fields["request_id"] = request.id
        for name, value in vars(record).items():
            if name not in _RECORD_FIELDS and name not in fields:
                fields[name] = value
        if record.exc_info:
            fields["stack_trace"] = self.formatException(record.exc_info)
            if request is not None:
                fields["message"] = without_body(fields["message"], request)
                fields["stack_trace"] = without_body(fields["stack_trace"], request)
        return without_receipts(json.dumps(fields, default=str))


class TextFormatter(logging.Formatter):
    """For people at a terminal. What clients sent cannot start a line of its own or steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        request = current_request()
        message = record.getMessage()
        stack = self.formatException(record.exc_info) if record.exc_info else ""
        if stack and request is not None:
            message, stack = without_body(message, request), without_body(stack, request)
        beside = "".join(
            f" {name}={value}" for name, value in vars(record).items()
            if name not in _RECORD_FIELDS and name not in _IN_MESSAGE and value is not None
        )
        about = "" if request is None else f" [{request.id}]"
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {(message + beside).translate(_CONTROLS)}{about}"
        if stack:
            line = "\n".join([line, *(part.translate(_CONTROLS) for part in stack.splitlines())])
        return without_receipts(line)


class _Handing(QueueHandler):
    """Hands finished lines over. What finds no room is counted."""

    queue: Queue[Any]

    def __init__(self, lines: Queue[Any], formatter: logging.Formatter) -> None:
        super().__init__(lines)
        self.setFormatter(formatter)
        self.left_out = 0
        self._said = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        line = self.format(record)
        return logging.makeLogRecord({"msg": line, "levelno": record.levelno, "levelname": record.levelname})

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except Full:
            self.left_out += 1
            return
        if self.left_out > self._said and self.queue.qsize() < limits.LOG_LINES_WAITING // 2:
            missing, self._said = self.left_out - self._said, self.left_out
            _log.warning("%d log lines were left out: whatever reads stderr was too slow", missing)


class Logs:
    """Logging as it is set up; `stop` puts back what was there before."""

    def __init__(self, level: str, form: str, application: str, stream: TextIO | None = None) -> None:
        if level not in LEVELS:
            raise InvalidRequest("log_level", f"must be one of {', '.join(LEVELS)}, not {level!r}")
        if form not in FORMATS:
            raise InvalidRequest("log_format", f"must be one of {', '.join(FORMATS)}, not {form!r}")
        formatter = JsonFormatter(application) if form == "json" else TextFormatter()
        # Not a QueueListener's own end: that would wait for ever for a reader that is gone.
        self._handing = _Handing(Queue(limits.LOG_LINES_WAITING), formatter)
        output = logging.StreamHandler(stream or sys.stderr)
        output.setFormatter(logging.Formatter("%(message)s"))
        self._listener = _PatientListener(self._handing.queue, output)
        root, own = logging.getLogger(), logging.getLogger(_OWN)
        self._before = (root.handlers[:], root.level, own.level, _POSTING.level, sys.excepthook, threading.excepthook)
        root.handlers[:] = [self._handing]
        own.setLevel(LEVELS[level])
        # What libraries write at DEBUG is theirs, and may quote what passes through them.
        root.setLevel(max(LEVELS[level], logging.INFO))
        # It would write a line for every message that is posted, with the path and the query, which may be secret.
        _POSTING.setLevel(logging.WARNING)
        logging.captureWarnings(True)
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_thread
        self._listener.start()

    @property
    def left_out(self) -> int:
        return self._handing.left_out

    def stop(self) -> None:
        root, own = logging.getLogger(), logging.getLogger(_OWN)
        handlers, root_level, own_level, posting_level, sys.excepthook, threading.excepthook = self._before
        root.handlers[:] = handlers
        root.setLevel(root_level)
        own.setLevel(own_level)
        _POSTING.setLevel(posting_level)
        logging.captureWarnings(False)
        self._listener.stop()
        self._handing.close()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Errors that end nowhere, in callbacks and in tasks that nobody awaits, become lines too."""
        loop.set_exception_handler(_uncaught_in_loop)


class _PatientListener(QueueListener):
    """Waits for its last lines, but not for ever: nobody may be reading them."""

    queue: Queue[Any]

    def stop(self) -> None:
        thread: threading.Thread | None = self._thread
        if thread is None:
            return
        with contextlib.suppress(Full):
            self.queue.put(None, timeout=limits.LOG_STOP_SECONDS)
        thread.join(limits.LOG_STOP_SECONDS)
        self._thread = None


def access(request: Request, status: int, seconds: float, log: Callable[..., None] = _access.info) -> None:
    """One line per request, for those who want it. The path has receipts in it; the route has not."""
    known = {} if request.key is None else {"account": request.account, "key": request.key}
    log(
        "%s %s %d", request.method, request.route or "(no route)", status,
        extra={
            "method": request.method, "route": request.route, "queue": request.queue, "status": status,
            "milliseconds": round(seconds * 1000, 3), "peer": request.peer, "body_bytes": len(request.body), **known,
        },
    )


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    _log.critical("an error ended the process", exc_info=(kind, error, trace))


def _uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is None or issubclass(arguments.exc_type, SystemExit):
        return
    name = arguments.thread.name if arguments.thread is not None else "a thread"
    _log.error("an error ended %s", name, exc_info=(arguments.exc_type, arguments.exc_value, arguments.exc_traceback))


def _uncaught_in_loop(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    # The context's other members are reprs of tasks and handles, which quote their arguments.
    _log.error("%s", context["message"], exc_info=error if isinstance(error, BaseException) else None)
