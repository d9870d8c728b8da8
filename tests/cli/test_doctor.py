"""`angelhair doctor`: a verdict on each thing, and an exit code for all of them."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from angelhair.settings import DATABASE_NAME
from tests.cli.command import COMMAND, PATIENCE_SECONDS, Angelhair, Said, environment

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """`angelhair serve` on a directory of its own: where it is, and the directory."""
    data = tmp_path_factory.mktemp("served")
    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--data", str(data)], env=environment(), stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        ready = running.stdout.readline().split()
        yield ready[2], data
        running.send_signal(signal.SIGTERM)
        running.stdout.read()
        running.wait(PATIENCE_SECONDS)


@pytest.fixture
def data(served: tuple[str, Path], tmp_path: Path) -> Path:
    """A copy of a healthy file, to damage."""
    with sqlite3.connect(served[1] / DATABASE_NAME) as source, sqlite3.connect(tmp_path / DATABASE_NAME) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = wal")
    source.close()
    copy.close()
    return tmp_path


def verdicts(said: Said) -> dict[str, str]:
    return {name: verdict for verdict, name, _ in said.rows}


def found(said: Said, name: str) -> str:
    return next(text for _, check, text in said.rows if check == name)


def test_all_is_good(served: tuple[str, Path]) -> None:
    url, data = served
    said = Angelhair(url)("doctor", "--data", str(data))
    assert verdicts(said) == dict.fromkeys(
        ["server reachable", "server ready", "file", "schema version", "journal mode", "synchronous", "disk space"],
        "good",
    )
    shown = Angelhair(url)("doctor", "--json").json
    assert shown["good"] is True
    assert [each["check"] for each in shown["checks"]] == ["server reachable", "server ready"]
    assert set(shown["checks"][0]) == {"check", "verdict", "found"}


def test_no_server(data: Path) -> None:
    said = Angelhair(NOWHERE)("doctor", expect=1)
    assert verdicts(said) == {"server reachable": "wrong"}
    assert found(said, "server reachable") == (
        f"{NOWHERE}: ConnectError: [Errno 111] Connection refused; is a server running there? `angelhair serve` starts "
        "one; --no-server looks at a store only"
    )
    assert set(verdicts(Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(data))).values()) == {"good"}


def test_nothing_to_look_at_is_wrong_usage() -> None:
    assert "leaves nothing to check" in Angelhair(NOWHERE)("doctor", "--no-server", expect=2).err


def test_settings_that_are_wrong_are_could_not_look() -> None:
    said = Angelhair(NOWHERE)("doctor", "--data", "x", "--contact-points", "127.0.0.1", expect=2)
    assert said.out == ""
    assert said.err.startswith("angelhair doctor: ")


def test_a_directory_without_a_file_is_left_as_it_is(tmp_path: Path) -> None:
    said = Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(tmp_path), expect=1)
    assert verdicts(said)["file"] == "wrong"
    assert list(tmp_path.iterdir()) == []
    said = Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(tmp_path / "nothing"), expect=1)
    assert "there is no directory" in found(said, "file")


def test_a_file_of_somebody_else_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / DATABASE_NAME
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    before = file.read_bytes()
    said = Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(tmp_path), expect=1)
    assert "another application" in found(said, "file")
    assert file.read_bytes() == before
    file.write_bytes(b"not a database at all" * 100)
    assert verdicts(Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(tmp_path), expect=1))["file"] == "wrong"


def test_a_newer_schema(data: Path) -> None:
    connection = sqlite3.connect(data / DATABASE_NAME)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    said = Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(data), expect=1)
    assert "newer than this program's" in found(said, "schema version")


def test_a_journal_that_is_no_log(data: Path) -> None:
    connection = sqlite3.connect(data / DATABASE_NAME)
    connection.execute("PRAGMA journal_mode = delete")
    connection.close()
    said = Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(data), expect=1)
    assert found(said, "journal mode") == "delete, and must be wal"
    assert "synchronous" not in verdicts(said)


def test_something_else_in_the_files_place_is_wrong(data: Path) -> None:
    for left in data.iterdir():
        left.unlink()
    (data / DATABASE_NAME).mkdir()
    said = Angelhair(NOWHERE)("doctor", "--no-server", "--data", str(data), expect=1)
    assert verdicts(said)["file"] == "wrong"


def test_a_cassandra_that_is_not_there() -> None:
    said = Angelhair(NOWHERE)(
        "doctor", "--no-server", "--contact-points", "127.0.0.1", "--cassandra-port", "9", expect=1
    )
    assert verdicts(said) == {"cassandra reachable": "wrong"}
    assert "127.0.0.1 port 9" in found(said, "cassandra reachable")
