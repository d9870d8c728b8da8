"""docs/running-a-queue.md: its program runs as it stands and prints what the page shows; every setting is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from angelhair.engine.counts import Stats
from angelhair.model import QueueSettings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "running-a-queue.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_program_prints_what_the_page_shows(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("python")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, block("output"), "")


def test_every_setting_and_figure_is_explained() -> None:
    names = [field.name for field in (*fields(QueueSettings), *fields(Stats))]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
