"""docs/tutorial.md, from its first line to its last, with fewer messages."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, PATIENCE_SECONDS, Angelhair, environment

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = 5_000
STEP = re.compile(r"^```(sh|python)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The first command of the tutorial, at a port that is free."""
    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--data", str(tmp_path / "angelhair-data")], env=environment(),
        stdout=subprocess.PIPE, text=True,
    ) as running:
        assert running.stdout is not None
        yield running.stdout.readline().split()[2]
        running.send_signal(signal.SIGTERM)
        running.stdout.read()
        assert running.wait(PATIENCE_SECONDS) == 0


def test_the_tutorial(
    served: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANGELHAIR_SERVER", served)
    angelhair = Angelhair(served)
    said: dict[str, str] = {}
    for kind, name, text in STEP.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")):
        if kind == "python":
            # The session of the tests was started elsewhere: for it these would be other folders.
            for folder in ("angelhair-data", "lake"):
                text = text.replace(f'"{folder}"', f'"{tmp_path}/{folder}"')
            Path(name).write_text(text)
            continue
        for line in text.strip().splitlines():
            words = re.findall(r'"[^"]*"|\S+', line.replace("1000000", str(MESSAGES)))
            words = [word.strip('"') for word in words]
            if words[:2] == ["angelhair", "serve"]:
                continue
            if words[0] == "python":
                capsys.readouterr()
                monkeypatch.setattr(sys, "argv", words[1:])
                exec(compile(Path(words[1]).read_text(), words[1], "exec"), {"__name__": "__main__"})
                said[words[1]] = capsys.readouterr().out
            elif words[:2] == ["angelhair", "pipeline"]:
                said[words[2]] = _pipeline(command, words[2:])
            else:
                said[" ".join(words[1:])] = angelhair(*words[1:]).out
    assert said["work.py"] == f"{MESSAGES} orders done\n"
    assert f"all {MESSAGES:,} ids are accounted for" in said["audit"]
    assert re.search(rf"NO\W+{MESSAGES // 2}\W+5\b", said["ask.py"]), said["ask.py"]
    assert re.search(rf"acked\W+{MESSAGES}\b", said["read.py"])
    assert said["replay"].startswith("5 messages of orders went to again")
    assert re.search(r"^visible\t5\t", said["queue show again"], re.MULTILINE)
    page = Path("orders.html").read_text()
    assert "country" in page and "NO" in page
    assert "retire" in said["run"]


def _pipeline(command: Command, words: list[str]) -> str:
    """The server needs a moment until it has seen that buckets are finished: a person reads on meanwhile."""
    end = time.monotonic() + PATIENCE_SECONDS
    told = ""
    while True:
        ran = command(*words)
        assert ran.returncode == 0, ran.stderr
        told += ran.stdout
        came = sum(int(number.replace(",", "")) for number in re.findall(r"^([\d,]+) messages in", told, re.MULTILINE))
        if words[0] != "archive" or came == MESSAGES:
            return told
        assert time.monotonic() < end, told
        time.sleep(0.5)
