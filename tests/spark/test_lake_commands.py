"""`angelhair pipeline` on a lake, from the words of a command to what it prints; in the session of the tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from angelhair.cli.pipeline import archive
from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.lakes import FORMATS, open_lake
from tests.spark.lakes import rows_in
from tests.spark.live import QUICK, on_file


def test_archive_compact_and_erase(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    data, lake = tmp_path / "data", tmp_path / "lake"
    data.mkdir()

    def run(job: str, *words: str, store: bool = True) -> tuple[int, str, str]:
        where = ["--data", str(data)] if store else []
        ran = command(job, "--queue", queue, "--lake", str(lake), *where, *words)
        return ran.returncode, ran.stdout, ran.stderr

    with on_file(data) as live:
        queue = live.create(**QUICK, archive=True)
        live.put(queue, [NewMessage(b"secret %d" % number, '{"name": "somebody"}') for number in range(45)])
        live.drain(queue, 45)
        live.work_until(queue, "repair", 4)
        code, _, complaint = run("compact", store=False)
        assert (code, complaint) == (1, f"angelhair pipeline compact: there is no lake at {lake}/{queue}\n")
        assert run("archive", "--format", "parquet")[0] == 0
        assert open_lake(f"{lake}/{queue}").format == "parquet"
        code, _, complaint = run("archive", "--format", "delta")
        assert code == 1 and "is of the format parquet, which --format delta does not change" in complaint

        code, out, _ = run("compact", "--vacuum-after", "0", "--json", store=False)
        told = json.loads(out)
        assert code == 0
        assert {name: told[name] for name in ("joined", "files", "messages", "vacuumed")} == {
            "joined": 2, "files": 1, "messages": 40, "vacuumed": 2,
        }
        code, out, _ = run("compact", store=False)
        assert (code, out) == (0, f"0 files with 0 messages became 0 in {lake}/{queue}; 0 that nobody needs went\n")

        code, out, _ = run("erase", "--id", "0-17", "--id", "0-3", "--json")
        told = json.loads(out)
        assert (code, told["in_queue"]) == (0, ["0-17", "0-3"])
        told = told["in_lake"]
        assert (told["erased"], told["files"], told["deleted"]) == (["0-3", "0-17"], 1, 1)
        code, out, _ = run("erase", "--id", "0-17")
        assert code == 0 and "0 messages erased from " in out and "1 had been before" in out
        # Not in the lake yet, and never when it is archived.
        code, out, _ = run("erase", "--id", "0-41", "--json")
        assert (code, json.loads(out)["in_queue"], json.loads(out)["in_lake"]) == (0, ["0-41"], None)
        audited = json.loads(run("audit", "--json")[1])
        assert audited["findings"] == []
        code, _, complaint = run("erase", "--id", "seventeen")
        assert code == 1 and "is not a message id such as '0-17'" in complaint
        # The lake outlives its queue, and so does the right to be forgotten.
        live.run(live.engine.delete_queue(ACCOUNT, queue))
        assert json.loads(run("erase", "--id", "0-20", "--json")[1])["in_lake"]["erased"] == ["0-20"]
    rows = {row["number"]: row for row in rows_in(f"{lake}/{queue}").to_pylist()}
    assert {number for number, row in rows.items() if row["body"] is None} == {3, 17, 20}


def test_the_formats_are_those_of_the_lake() -> None:
    assert tuple(FORMATS) == archive.FORMATS
