"""`angelhair serve` before somebody's eyes: what it says once it is ready, and that a log is spared it."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, PATIENCE_SECONDS, environment
from tests.wire.test_readme import called


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_on_a_terminal_it_says_what_to_try(host: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "serve", "--host", host, "--open", "--port", "0", "--data", str(tmp_path)], env=environment(),
        stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL,
    ) as running:
        os.close(theirs)
        said = b""
        while b"Ctrl-C" not in said:
            said += os.read(ours, 65536)
        ready, *lines = said.decode().splitlines()
        found = re.match(rf"angelhair serves http://{re.escape(host)}:(\d+) from ", ready)
        assert found is not None, ready
        (by_aws,) = (line for line in lines if " aws --endpoint-url " in line)
        listed = subprocess.run(
            by_aws, shell=True, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
            env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        )
        calls = [line.strip() for line in lines if line.startswith("  curl ")]
        answers = [called(call, "") for call in calls]
        running.send_signal(signal.SIGTERM)
        running.wait(PATIENCE_SECONDS)
    os.close(ours)
    assert [answer.status_code for answer in answers] == [201, 201, 200]
    assert listed.stderr == "", "as it is printed, on a machine that knows no region and no key"
    (message,) = answers[-1].json()["messages"]
    assert (message["body"], message["content_type"]) == ("hello", "text/plain")
    assert all(f"http://127.0.0.1:{found.group(1)}/" in line for line in [*calls, lines[-1]])


def test_elsewhere_it_says_one_line_and_what_is_unsafe(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--data", str(tmp_path)], env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.readline().startswith("angelhair serves ")
        assert running.stderr.readline() == (
            "angelhair serve: no access keys: any signature passes, and everybody on this machine may do everything. "
            f"The first key ends that: angelhair key create --data {tmp_path}\n"
        )
        running.send_signal(signal.SIGTERM)
        assert running.stdout.read() == ""


def test_asked_for_hints_it_gives_them_there_too(tmp_path: Path) -> None:
    """As `make serve` does, whose output may go to a file."""
    with subprocess.Popen(
        [*COMMAND, "serve", "--hints", "--port", "0", "--data", str(tmp_path)], env=environment(),
        stdout=subprocess.PIPE, text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("angelhair serves ")
        assert running.stdout.readline() == "To try it, in another terminal:\n"
        running.send_signal(signal.SIGTERM)
        assert "Ctrl-C" in running.stdout.read()
