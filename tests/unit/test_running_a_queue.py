"""docs/running-a-queue.md: every setting is there, and every command is one; docs/embedding.md: its program runs as it
stands and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from angelhair.cli.main import build_parser
from angelhair.engine.counts import Stats
from angelhair.model import DATABAG, NOT_OF_KIND, TIMELINE, QueueSettings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "running-a-queue.md").read_text(encoding="utf-8")
EMBEDDING = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
COMMAND = re.compile("`angelhair ([^`]+)`")


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", EMBEDDING, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_program_prints_what_the_page_shows(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("python")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, block("output"), "")


def test_every_command_is_one() -> None:
    found = [line.replace("BUCKET", "7").split() for line in COMMAND.findall(PAGE) if re.search("[A-Z]", line)]
    assert len(found) > 5
    for words in found:
        assert build_parser({words[0]}).parse_args(words).command == words[0]


def test_every_setting_and_figure_is_explained() -> None:
    # As a setting of a timeline, in milliseconds; as a figure, as it is shown.
    names = [field.name for field in fields(QueueSettings)]
    names += [field.name.removesuffix("_ms") for field in fields(Stats)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_which_kind_has_which_setting() -> None:
    part = PAGE[PAGE.index("### Which kind has which") : PAGE.index("## What to watch")]
    head, _, *lines = [line for line in part.splitlines() if line.startswith("|")]
    kinds = re.findall("`(\\w+)`", head)
    assert kinds == list(NOT_OF_KIND), "a kind is a column"
    shown = {}
    for line in lines:
        name, *marks = [cell.strip(" `") for cell in line.strip("|").split("|")]
        shown[name] = [kind for kind, mark in zip(kinds, marks, strict=True) if mark == "yes"]
    names = [field.name for field in fields(QueueSettings) if field.name != "lanes"]
    true = {
        name.removesuffix("_ms"): [kind for kind in kinds if name not in NOT_OF_KIND[kind]] for name in names
    }
    # What a timeline calls its lanes.
    true |= {"lanes": [kind for kind in kinds if kind not in (TIMELINE, DATABAG)], "shards": [TIMELINE]}
    common = {name for name, having in true.items() if having == kinds}
    assert shown == {name: having for name, having in true.items() if name not in common}
    assert set(re.findall("`(\\w+)`", part[: part.index("|")])) == common
