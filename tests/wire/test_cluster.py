"""Servers on one file that know each other: they come, stop, are killed and started again. docs/cluster.md, too."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from angelhair import limits
from tests.cli.command import COMMAND, environment
from tests.wire.processes import PATIENCE_SECONDS, several, until

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```output\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FIGURES = re.findall(r"(\d[\d,]*) ?s? \(`([A-Z_]+)`\)", PAGE)


class Running:
    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def members(self) -> list[dict[str, Any]]:
        answer = httpx.get(f"{self.url}/cluster", timeout=PATIENCE_SECONDS)
        assert answer.status_code == 200, answer.text
        members: list[dict[str, Any]] = answer.json()["members"]
        return members

    def sees(self) -> list[str]:
        return sorted(member["address"] for member in self.members())

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE_SECONDS) == 0


@contextmanager
def serving(folder: Path, port: str = "0") -> Iterator[Running]:
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", port, "--data", str(folder / "data"), "--log-format", "text"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            line = process.stdout.readline()
            assert line.startswith("angelhair serves http://127.0.0.1:"), line
            yield Running(process, line.split()[2])
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)


def test_two_servers_see_each_other_until_one_says_goodbye(tmp_path: Path) -> None:
    with serving(tmp_path) as first, serving(tmp_path) as second:
        both = sorted([first.url, second.url])
        until(lambda: first.sees() == both and second.sees() == both)
        assert first.members() == second.members(), "in the same order, too"
        known = {member["address"]: member for member in first.members()}
        assert known[first.url]["id"] != known[second.url]["id"]
        assert httpx.get(f"{first.url}/cluster").json()["server"] == known[first.url]["id"]
        assert known[first.url]["version"] == httpx.get(first.url).json()["version"]
        second.stop()
        assert first.sees() == [first.url], "at the first look"


def test_one_that_is_killed_falls_out(tmp_path: Path) -> None:
    """How soon, to the beat: tests/promises/test_members.py, whose clock does not depend on who else is at work."""
    with serving(tmp_path) as first, serving(tmp_path) as second:
        until(lambda: len(first.sees()) == 2)
        second.process.send_signal(signal.SIGKILL)
        second.process.wait(PATIENCE_SECONDS)
        until(lambda: first.sees() == [first.url])


def test_one_that_is_killed_and_started_again_at_its_place_is_there_once(tmp_path: Path) -> None:
    with serving(tmp_path) as first, serving(tmp_path) as second:
        until(lambda: len(first.sees()) == 2)
        (before,) = [member["id"] for member in first.members() if member["address"] == second.url]
        second.process.send_signal(signal.SIGKILL)
        second.process.wait(PATIENCE_SECONDS)
        with serving(tmp_path, second.url.rpartition(":")[2]) as again:
            until(lambda: before not in {member["id"] for member in again.members()})
            assert first.sees() == again.sees() == sorted([first.url, second.url])


def test_every_process_is_a_member_and_its_replacement_takes_its_place(tmp_path: Path) -> None:
    with several(tmp_path / "complaints", "--data", str(tmp_path / "data")) as server:
        looking = Running(server.process, server.url)
        until(lambda: [member["process"] for member in _by_process(looking)] == [0, 1])
        before = {member["id"] for member in looking.members()}
        os.kill(min(server.workers), signal.SIGKILL)
        seen: list[list[dict[str, Any]]] = []

        def replaced() -> bool:
            seen.append(_by_process(looking))
            return {member["id"] for member in seen[-1]} != before

        until(replaced)
        assert all([member["process"] for member in found] == [0, 1] for found in seen), "never two at one place"
        assert len({member["id"] for member in seen[-1]} & before) == 1


def _by_process(looking: Running) -> list[dict[str, Any]]:
    """Asked again of a process that died with the question."""
    while True:
        try:
            return sorted(looking.members(), key=lambda member: member["process"])
        except httpx.TransportError:
            continue


def test_the_page(tmp_path: Path) -> None:
    ((program, output),) = PROGRAMS
    with several(tmp_path / "complaints", "--data", str(tmp_path / "data")) as server:
        until(lambda: len(Running(server.process, server.url).members()) == 2)
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", program.replace("http://127.0.0.1:9324", server.url)],
            env=environment(), capture_output=True, text=True, check=False,
        )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, output, "")


def test_the_pages_figures_are_the_codes() -> None:
    assert len(FIGURES) >= 6
    for said, name in FIGURES:
        value = getattr(limits, name)
        assert int(said.replace(",", "")) == (value / 1000 if name.endswith("_MS") else value), name
