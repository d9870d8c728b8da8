"""`angelhair pipeline`: one job as a process, others in the session of the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable

from angelhair.model import NewMessage
from tests.spark.live import QUICK, on_file

Command = Callable[..., subprocess.CompletedProcess[str]]


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "angelhair", "pipeline", *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )


def test_archive_from_the_command_line(command: Command, tmp_path: Path) -> None:
    data, lake = tmp_path / "data", tmp_path / "lake"
    data.mkdir()
    with on_file(data) as live:
        queue = live.create(**QUICK, archive=True)
        live.put(queue, [NewMessage(b"%d" % number) for number in range(45)])
        live.drain(queue, 45)
        live.work_until(queue, "repair", 4)
    ran = process("archive", "--queue", queue, "--lake", str(lake), "--data", str(data), "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "queue": queue, "lake": f"{lake}/{queue}", "messages": 40, "files": 2, "marks": {"0": 4}, "swept": 0,
        "bytes": sum(path.stat().st_size for path in lake.rglob("*.parquet")),
    }
    assert DeltaTable(str(lake / queue)).to_pyarrow_table().num_rows == 40
    again = command("archive", "--queue", queue, "--lake", str(lake), "--data", str(data))
    assert (again.returncode, again.stdout.split(" messages")[0]) == (0, "0")


def test_what_is_not_there_is_said(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = command("archive", "--queue", "q", "--lake", str(tmp_path / "lake"), "--data", str(tmp_path / "empty"))
    assert ran.returncode == 1
    assert "there is no" in ran.stderr and "angelhair.db" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    with on_file(tmp_path / "empty"):
        pass
    ran = command("archive", "--queue", "q", "--lake", str(tmp_path / "lake"), "--data", str(tmp_path / "empty"))
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("angelhair pipeline archive: ")
    assert "q" in ran.stderr.splitlines()[-1]


def test_load_and_retire_from_the_command_line(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with on_file(data) as live:
        queue = live.create(**QUICK, history_ms=0)
    (tmp_path / "rows.json").write_text("".join(json.dumps({"n": number, "who": "me"}) + "\n" for number in range(30)))
    load = (
        "load", "--queue", queue, "--data", str(data), "--from", str(tmp_path / "rows.json"), "--format", "json",
        "--column", "body=to_json(struct(*))", "--column", "key=cast(n as string)", "--name", "first", "--json",
    )
    for _ in range(2):
        ran = command(*load)
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == {"queue": queue, "name": "first", "rows": 30}
    with on_file(data) as live:
        taken = live.receive(queue, 100)
        assert sorted(json.loads(delivery.body)["n"] for delivery in taken) == list(range(30))
        live.ack(queue, taken)
        live.put(queue, [NewMessage(b"x")] * 10)
        live.drain(queue, 10)
    retire = ("retire", "--queue", queue, "--data", str(data), "--json")
    ran = command(*retire, "--dry-run")
    assert (ran.returncode, json.loads(ran.stdout)["went"]) == (0, {})
    ran = command(*retire)
    assert ran.returncode == 0, ran.stderr
    assert set(json.loads(ran.stdout)) == {"queue", "went", "kept", "archive"}
    wrong = command("load", "--queue", queue, "--data", str(data), "--from", "x", "--column", "body")
    assert wrong.returncode == 2
    assert "NAME=… is wanted" in wrong.stderr
