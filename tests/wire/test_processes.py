"""Several processes of one server on one file. On Cassandra: tests/cluster/test_processes.py."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.cli.command import COMMAND, environment, without_the_mode
from tests.wire.processes import PATIENCE_SECONDS, children, play, several, until


def test_one_dies_and_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    complaints = tmp_path / "complaints"
    with several(complaints, "--data", str(tmp_path / "data")) as server:
        play(server, complaints)
    assert len(without_the_mode(complaints.read_text()).splitlines()) == 1


def test_nobody_else_is_there_before_all_is_prepared(tmp_path: Path) -> None:
    """A store that cannot be opened is one line, not one for each process."""
    (tmp_path / "data").write_text("a file")
    ran = subprocess.run(
        [*COMMAND, "serve", "--port", "0", "--workers", "3", "--data", str(tmp_path / "data")],
        env=environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )
    said = f"angelhair serve: data wants a directory, and {tmp_path / 'data'} is a file\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", said)


def test_without_their_parent_they_end_and_leave_the_address_to_the_next(tmp_path: Path) -> None:
    command = [*COMMAND, "serve", "--workers", "2", "--data", str(tmp_path / "data"), "--port"]
    port = "0"
    for _ in range(2):
        process = subprocess.Popen([*command, port], env=environment(), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline()
            assert line.startswith("angelhair serves "), line
            port = line.split()[2].rpartition(":")[2]
            workers = children(process.pid)
            process.kill()
            process.wait(PATIENCE_SECONDS)
        assert len(workers) == 2
        until(lambda workers=workers: not any(Path(f"/proc/{worker}").exists() for worker in workers))  # type: ignore[misc]


def test_a_signal_during_the_start_stops_it(tmp_path: Path) -> None:
    """From the first child on, whatever it finds: the preparation, no process yet, or some."""
    for _ in range(5):
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", "--workers", "2", "--data", str(tmp_path / "data")],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        until(lambda process=process: bool(children(process.pid)))  # type: ignore[misc]
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, without_the_mode(complaints)) == (0, "")
