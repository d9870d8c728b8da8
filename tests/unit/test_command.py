"""The command itself: its version, what it refuses, and how it ends when somebody stops it or stops reading."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from angelhair.cli.main import INTERRUPTED, NOBODY_READS, main
from angelhair.server import release

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "angelhair"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
BEYOND_PATIENCE = "1000000"
"""Seeds that would take hours: whoever comes to an end was stopped."""


def test_version_of_the_module() -> None:
    said = subprocess.run([*COMMAND, "--version"], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert said.stdout == f"angelhair {metadata.version('angelhair')}\n"


def test_a_checkout_that_is_not_installed_reads_its_own_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_installed)
    release.version.cache_clear()
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    release.version.cache_clear()
    assert ended.value.code == 0
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert capsys.readouterr().out == f"angelhair {project['version']}\n"
    assert release.checkout() == ROOT


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--replay", "7", "--seeds", "3"], "--replay plays one seed; --seeds does not go with it"),
        (["--replay", "7", "--first", "0"], "--replay plays one seed; --first does not go with it"),
        (["--replay", "7", "--processes", "1"], "--replay plays one seed; --processes does not go with it"),
        (["--quiet"], "--quiet goes with --replay only"),
    ],
)
def test_what_does_not_go_together_is_refused(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *arguments]) == 2
    assert capsys.readouterr() == ("", f"angelhair simulate: {why}\n")


def test_a_tour_into_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    assert main(["tour", "--fast", "--data", str(file)]) == 2
    assert capsys.readouterr() == ("", f"angelhair tour: --data wants a directory, and {file} is a file\n")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("arguments", [["simulate", "--replay", "7"], ["tour", "--fast"]], ids=["simulate", "tour"])
def test_a_reader_that_goes_away_ends_it_without_a_traceback(arguments: list[str]) -> None:
    with subprocess.Popen(
        [*COMMAND, *arguments], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (NOBODY_READS, b"")


def test_an_interrupted_tour_ends_without_a_traceback() -> None:
    with subprocess.Popen(
        [*COMMAND, "tour"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        while b"1. " not in running.stdout.readline():
            pass
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
    assert (running.returncode, said) == (INTERRUPTED, b"")


def test_an_interrupted_simulation_ends_without_a_traceback() -> None:
    """Its progress goes to a terminal only; one is made, and the first line on it says that the pool is at work."""
    terminal, side = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "simulate", "--seeds", BEYOND_PATIENCE, "--processes", "1"],
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=side,
    ) as running:
        os.close(side)
        said = b""
        while b" seeds, " not in said:
            said += os.read(terminal, 4096)
        running.send_signal(signal.SIGINT)
        said += until_hung_up(terminal)
        assert running.stdout is not None
        assert running.stdout.read() == b""
    os.close(terminal)
    assert running.returncode == INTERRUPTED
    assert b"Traceback" not in said


def until_hung_up(terminal: int) -> bytes:
    """What comes until the other side is closed, which Linux reports as an error and others as an end."""
    read = b""
    while True:
        try:
            portion = os.read(terminal, 4096)
        except OSError:
            return read
        if not portion:
            return read
        read += portion
