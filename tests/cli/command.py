"""Runs the real command in a process of its own: through pipes, or on a terminal whose other end the test holds."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "angelhair"]
PATIENCE_SECONDS = 120
"""How long a test waits for a command that must end; on a machine with nothing else to do it takes half a second."""

MODE_WITHOUT_KEYS = "angelhair serve: no access keys: any signature passes, "

NOT_OURS = ("ANGELHAIR_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "CONTACT_POINTS", "HTTP_PROXY", "http_proxy")


def environment(**more: str) -> dict[str, str]:
    """Ours, without what the shell of whoever runs the tests may say to the command."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", "TERM": "xterm", **more}


def without_the_mode(written: str) -> str:
    """What a server said on standard error, but for the line that it has no access keys: see test_serve.py."""
    return "".join(line for line in written.splitlines(True) if not line.startswith(MODE_WITHOUT_KEYS))


@dataclass
class Said:
    code: int
    raw: bytes
    """Standard output; on a terminal also standard error."""
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


class Angelhair:
    """The command, told where its server is."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *arguments: str, given: bytes = b"", expect: int = 0, **variables: str) -> Said:
        ended = subprocess.run(
            [*COMMAND, *arguments], env=environment(ANGELHAIR_SERVER=self.url, **variables), input=given,
            capture_output=True, timeout=PATIENCE_SECONDS, check=False,
        )
        said = Said(ended.returncode, ended.stdout, ended.stderr.decode())
        assert said.code == expect, f"{arguments} ended with {said.code}: {said.err or said.out}"
        assert "Traceback" not in said.err
        return said

    def on_terminal(self, *arguments: str, typed: bytes = b"", columns: int = 100, expect: int = 0,
                    **variables: str) -> Said:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(ours, (40, columns))
        with subprocess.Popen(
            [*COMMAND, *arguments], env=environment(ANGELHAIR_SERVER=self.url, **variables),
            stdin=theirs, stdout=theirs, stderr=theirs,
        ) as running:
            os.close(theirs)
            os.write(ours, typed)
            said = b""
            try:
                while portion := os.read(ours, 65536):
                    said += portion
            except OSError:
                # How Linux says that the other side is closed.
                pass
            code = running.wait(PATIENCE_SECONDS)
        os.close(ours)
        assert code == expect, f"{arguments} ended with {code}: {said.decode()}"
        assert b"Traceback" not in said
        return Said(code, said, "")
