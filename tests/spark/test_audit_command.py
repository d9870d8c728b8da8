"""`angelhair pipeline audit`, `insight` and `run`: what they print, and how they end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from angelhair.engine import places
from angelhair.engine.store import Change, RowChange, Span
from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from tests.spark.live import QUICK, on_file

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_audit_ends_with_1_when_it_finds_something_and_insight_says_what_it_would_count(
    command: Command, tmp_path: Path
) -> None:
    data, lake = tmp_path / "data", tmp_path / "lake"
    data.mkdir()
    with on_file(data) as live:
        queue = live.create(**QUICK)
        live.put(queue, [NewMessage(b'{"n": 1}') for _ in range(45)])
        live.drain(queue, 45)
        live.work_until(queue, "repair", 4)
        (found,) = live.run(live.store.read([Span(places.account_queues(ACCOUNT), queue, queue)]))
        states = places.states(str(found.rows[0].values["incarnation"]), 0, 1)
        live.run(live.store.change([Change(states, [RowChange(17, {}, {"settled": None, "visible_at": 0})])]))
    where = ("--queue", queue, "--lake", str(lake), "--data", str(data))

    ran = command("audit", *where)
    assert ran.returncode == 1, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines == [
        "0\tacked\t44\t0-0..0-16, 0-18..0-44", "0\twaiting\t1\t0-17", "passed over: 1 message of lane 0: 0-17",
    ]
    assert not lake.exists()

    ran = command("insight", *where, "--field", "n", "--dry-run")
    assert (ran.returncode, ran.stdout) == (0, "would count buckets 0 to 3 of lane 0\n"), ran.stderr
    assert not lake.exists()


def test_the_whole_pipeline_runs_and_stops_before_it_drops_what_is_damaged(command: Command, tmp_path: Path) -> None:
    data, lake = tmp_path / "data", tmp_path / "lake"
    data.mkdir()
    with on_file(data) as live:
        queue = live.create(**QUICK, archive=True, history_ms=0)
        live.put(queue, [NewMessage(b"%d" % number) for number in range(45)])
        live.drain(queue, 45)
        live.work_until(queue, "repair", 4)
    where = ("--queue", queue, "--lake", str(lake), "--data", str(data), "--json")

    ran = command("run", *where, "--dry-run")
    assert ran.returncode == 0, ran.stderr
    told = {stage["name"]: stage for stage in json.loads(ran.stdout)["stages"]}
    assert {stage["status"] for stage in told.values()} == {"planned"}
    assert told["archive"]["report"]["buckets"] == {"0": 4}
    assert not lake.exists()

    ran = command("run", *where)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    told = {stage["name"]: stage["report"] for stage in report["stages"]}
    assert list(told) == ["archive", "audit", "insight", "retire"]
    assert (told["archive"]["messages"], told["insight"]["messages"], told["retire"]["went"]) == (40, 40, {"0": 4})
    assert json.loads(Path(report["report"]).read_text())["clean"]

    # One file of the lake is gone: nothing more is dropped.
    next(lake.rglob(f"{queue}/lane=0/*.parquet")).unlink()
    with on_file(data) as live:
        live.put(queue, [NewMessage(b"%d" % number) for number in range(10)])
        live.drain(queue, 10)
        live.work_until(queue, "repair", 5)
    ran = command("run", *where, "--only", "archive,audit,retire")
    assert ran.returncode == 1, ran.stderr
    stages = [(stage["name"], stage["status"]) for stage in json.loads(ran.stdout)["stages"]]
    assert stages == [("archive", "done"), ("audit", "found"), ("retire", "skipped")]
    with on_file(data) as live:
        assert live.run(live.engine.marks(ACCOUNT, queue))[0].floor == 4
