"""The README's tour works line by line: its calls, its answers and its program, against a real `angelhair serve`."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:9324"
PATIENCE_SECONDS = 60
BLOCK = re.compile(r"^```(curl|answer|python|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

TAKING = re.compile(r"RECEIPT=\$\((curl .+?) \| tee /dev/stderr \| (sed .+)\)")
"""A call whose answer is shown, and whose receipt is kept."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(ROOT / "scripts" / "run.py"), "serve", "--port", str(port), "--data", str(tmp_path)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith(f"angelhair serves http://127.0.0.1:{port} from "), line
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0
        if server.stdout is not None:
            server.stdout.close()


def called(line: str, receipt: str) -> httpx.Response:
    """What curl would have asked. An option that is not known here is a mistake of the page or of this test."""
    words = shlex.split(line.replace("$RECEIPT", receipt))
    assert words.pop(0) == "curl"
    method, url, headers, data = "GET", "", {}, None
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word == "-s":
            continue
        elif word == "-w":
            words.pop(0)
        elif word == "-d":
            data = words.pop(0)
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        else:
            assert word.startswith("http"), word
            url = word
    return httpx.request(method, url, headers=headers, content=data, timeout=PATIENCE_SECONDS)


def piped(command: str, text: str) -> str:
    return subprocess.run(shlex.split(command), input=text, capture_output=True, text=True, check=True).stdout.strip()


def test_the_tour_of_the_readme(address: str) -> None:
    receipt = ""
    answers: list[httpx.Response] = []
    told = ""
    seen = set()
    for kind, text in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        seen.add(kind)
        text = text.replace(ADDRESS, address)
        if kind == "curl":
            lines = [TAKING.fullmatch(line) for line in text.splitlines()]
            answers = [called(line.group(1) if line else plain, receipt)
                       for line, plain in zip(lines, text.splitlines(), strict=True)]
            assert [answer.status_code // 100 for answer in answers] == [2] * len(answers)
            if lines[-1] is not None:
                (message,) = answers[-1].json()["messages"]
                assert message["body"] == "water the plants"
                receipt = piped(lines[-1].group(2), answers[-1].text)
                assert receipt == message["receipt"]
        elif kind == "answer":
            assert "".join(answer.text for answer in answers) == text
        elif kind == "python":
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            command = [sys.executable, "-W", "error", "-c", text]
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert (ran.returncode, ran.stderr) == (0, "")
            told = ran.stdout
        else:
            assert told == text
    assert seen == {"curl", "answer", "python", "output"}
    statistics = httpx.get(f"{address}/queues/chores").json()["statistics"]
    assert (statistics["visible"], statistics["in_flight"], statistics["delayed"]) == (0, 0, 1), json.dumps(statistics)
