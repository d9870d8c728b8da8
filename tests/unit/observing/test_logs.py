"""Logs: the shape of a line, what clients cannot do with it, and a reader that does not read."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import threading
import warnings
from io import StringIO
from pathlib import Path

import httpx
import pytest

from angelhair import limits
from angelhair.errors import InvalidRequest
from angelhair.server.http import Request
from angelhair.server.observing.logs import Logs, current_request, now_handling
from angelhair.server.runtime import AsyncioRuntime
from tests.aws.listener import listening
from tests.wire.observing.world import lines_of, logging_to

ROOT = Path(__file__).resolve().parents[3]
TIME = re.compile(r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")

log = logging.getLogger("angelhair.tests")


def request(body: bytes = b"") -> Request:
    return Request("GET", "/", "", {}, body, "abc-1", "", False, True)


def test_a13_a_line_has_logstashs_names_and_the_application() -> None:
    with logging_to(application="Küche 7") as (_, stream):
        log.warning("the %s is %d degrees", "soup", 90, extra={"queue": "jobs", "tries": 3})
    (line,) = lines_of(stream)
    assert TIME.match(line.pop("@timestamp"))
    assert line == {
        "@version": "1", "level": "WARNING", "application": "Küche 7", "logger": "angelhair.tests",
        "message": "the soup is 90 degrees", "queue": "jobs", "tries": 3,
    }


def test_whatever_is_logged_stays_on_one_line_of_ascii() -> None:
    """A terminal without UTF-8 would otherwise write escapes that JSON does not know."""
    with logging_to() as (_, stream):
        log.info("two\nlines, \x1b[2J, \u2028, half a pair \ud83d, a path \udcff", extra={"odd": object()})
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.isascii()
    assert json.loads(text)["message"].startswith("two\nlines")


def test_a_text_line_cannot_be_forged_by_what_clients_send() -> None:
    with logging_to("text") as (_, stream):
        log.info("name: %s", "x\n2026-01-01T00:00:00.000Z ERROR all is lost\x1b[31m\r\x9b")
    assert stream.getvalue().count("\n") == 1
    assert not set(stream.getvalue()[:-1]) & {"\x1b", "\r", "\x9b", "\n"}
    assert stream.getvalue().endswith(r"all is lost\x1b[31m\r\x9b" + "\n")


def test_a_text_stack_has_its_lines() -> None:
    with logging_to("text") as (_, stream):
        try:
            raise ValueError("bad\x1b")
        except ValueError:
            log.exception("it met an error")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("ERROR   angelhair.tests: it met an error")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == r"ValueError: bad\x1b"


def test_levels_are_ours_and_libraries_do_not_chatter() -> None:
    with logging_to(level="debug") as (_, stream):
        log.debug("ours")
        logging.getLogger("somebodys.driver").debug("theirs, with what passes through it")
        logging.getLogger("somebodys.driver").info("theirs, of interest")
    assert [line["message"] for line in lines_of(stream)] == ["ours", "theirs, of interest"]
    with logging_to(level="warning") as (_, stream):
        log.info("ours")
        logging.getLogger("somebodys.driver").info("theirs")
        log.warning("a warning")
    assert [line["message"] for line in lines_of(stream)] == ["a warning"]


def test_the_address_of_what_is_posted_is_not_written() -> None:
    """The path and the query of an endpoint may be all that keeps others from posting there."""
    with listening() as endpoint, logging_to(level="debug") as (_, stream):
        assert httpx.post(f"{endpoint.url}&token=s3cret", content=b"x").status_code == 200
        assert endpoint.next().path.endswith("token=s3cret")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("level", "form", "field"), [("loud", "json", "log_level"), ("info", "xml", "log_format")])
def test_a_wrong_setting_is_named(level: str, form: str, field: str) -> None:
    before = logging.getLogger().handlers[:]
    with pytest.raises(InvalidRequest, match=field):
        Logs(level, form, "kitchen")
    assert logging.getLogger().handlers == before


def test_everything_is_put_back() -> None:
    root, own = logging.getLogger(), logging.getLogger("angelhair")
    levels = [root, own, logging.getLogger("httpx")]
    before = (root.handlers[:], [each.level for each in levels], sys.excepthook, threading.excepthook,
              warnings.showwarning)
    with logging_to():
        assert root.handlers != before[0]
    after = (root.handlers[:], [each.level for each in levels], sys.excepthook, threading.excepthook,
             warnings.showwarning)
    assert before == after


class DeafStream(StringIO):
    """A pipe that nobody reads, until somebody does."""

    def __init__(self) -> None:
        super().__init__()
        self.met = threading.Event()
        self.reading = threading.Event()

    def write(self, text: str) -> int:
        self.met.set()
        self.reading.wait()
        return super().write(text)


def test_a_reader_that_does_not_read_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_LINES_WAITING", 10)
    stream = DeafStream()
    logs = Logs("info", "json", "kitchen", stream)
    try:
        log.info("first")
        stream.met.wait()  # the thread holds it, and is held up
        for number in range(25):
            log.info("line %d", number)
        assert logs.left_out == 15
        stream.reading.set()
        logs._handing.queue.join()
        log.info("at last")
    finally:
        stream.reading.set()
        logs.stop()
    said = [line["message"] for line in lines_of(stream)]
    assert said[:11] == ["first", *(f"line {number}" for number in range(10))]
    assert said[11:] == ["at last", "15 log lines were left out: whatever reads stderr was too slow"]


def test_a_reader_that_never_reads_does_not_keep_the_server_from_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_STOP_SECONDS", 0.01)
    stream = DeafStream()
    logs = Logs("info", "json", "kitchen", stream)
    log.info("first")
    stream.met.wait()
    logs.stop()
    assert stream.getvalue() == ""
    stream.reading.set()


def test_work_that_may_outlive_a_request_does_not_speak_for_it() -> None:
    async def other() -> Request | None:
        return current_request()

    async def main() -> None:
        assert current_request() is None
        wanted = request()
        now_handling(wanted)
        assert current_request() is wanted
        assert await other() is wanted
        assert await asyncio.to_thread(current_request) is wanted

        said: asyncio.Future[Request | None] = asyncio.get_running_loop().create_future()

        async def group() -> None:
            said.set_result(current_request())

        AsyncioRuntime().spawn(group())
        assert await said is None

    asyncio.run(main())
    assert current_request() is None


def test_errors_that_end_nowhere_become_lines() -> None:
    async def main(logs: Logs) -> None:
        loop = asyncio.get_running_loop()
        logs.watch(loop)
        done = asyncio.Event()

        def broken() -> None:
            loop.call_soon(done.set)
            raise ValueError("in a callback")

        loop.call_soon(broken)
        await done.wait()
        loop.call_exception_handler({"message": "something odd", "handle": "SECRET"})

    def in_thread() -> None:
        raise ValueError("in a thread")

    with logging_to() as (logs, stream):
        asyncio.run(main(logs))
        thread = threading.Thread(target=in_thread, name="helper")
        thread.start()
        thread.join()
    in_callback, odd, in_a_thread = lines_of(stream)
    assert "ValueError: in a callback" in in_callback["stack_trace"]
    assert odd["message"] == "something odd"
    assert "SECRET" not in stream.getvalue()
    assert in_a_thread["message"] == "an error ended helper"
    assert "ValueError: in a thread" in in_a_thread["stack_trace"]


def test_what_ends_a_process_is_one_line() -> None:
    program = (
        "from angelhair.server.observing.logs import Logs\n"
        "import atexit\n"
        "logs = Logs('info', 'json', 'kitchen')\n"
        "atexit.register(logs.stop)\n"
        "raise RuntimeError('the kitchen\\nis on fire')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    said = json.loads(line)
    assert (said["level"], said["message"]) == ("CRITICAL", "an error ended the process")
    assert said["stack_trace"].endswith("RuntimeError: the kitchen\nis on fire")


def test_warnings_become_lines() -> None:
    with logging_to() as (_, stream), warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("this will change", FutureWarning, stacklevel=1)
    (line,) = lines_of(stream)
    assert line["logger"] == "py.warnings"
    assert "this will change" in line["message"]
