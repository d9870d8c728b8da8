"""The pages for readers are true: examples run, excerpts are real, links lead somewhere, figures are measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from angelhair import limits
from angelhair.cli.tour_telling import EXAMPLE

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
# Proof reports are left out: they speak of the commit that they were written on.
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")])


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(arguments: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def test_the_example_at_the_end_of_the_tour_runs(tmp_path: Path) -> None:
    ran = run(["-W", "error", "-c", EXAMPLE], tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0-0 b'hello'\n", "")


def test_the_excerpt_of_the_tour_is_what_it_says(tmp_path: Path) -> None:
    """Every line of the excerpt is told, in that order; the page leaves sentences out."""
    (excerpt,) = blocks("tour")
    told = iter(run([str(ROOT / "scripts" / "run.py"), "tour", "--fast"], tmp_path).stdout.splitlines())
    for line in excerpt.splitlines():
        assert line in told, f"the tour does not say {line!r} there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert broken == []


PATH_IN_PROSE = re.compile(r"`((?:src|tests|docs|scripts|cluster|bench|requirements)/[\w./-]*\w/?)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    named = PATH_IN_PROSE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    records = {path.name for path in folder.glob("0*.md")}
    listed = re.findall(r"\]\((0[^)]+)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert listed == sorted(records), "the index names every record once, in order"


def test_the_page_of_limits_is_up_to_date(tmp_path: Path) -> None:
    ran = run([str(ROOT / "scripts" / "limits_page"), "--check"], tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_page_of_limits_names_every_bound() -> None:
    page = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    bounds = [name for name in vars(limits) if name.isupper()]
    assert len(bounds) > 40
    assert [name for name in bounds if f"`{name}`" not in page] == []


# --- the table of coverage ------------------------------------------------------------------------------------------


def summary(lines: int, covered_lines: int, branches: int, covered_branches: int) -> dict[str, dict[str, int]]:
    return {
        "summary": {
            "num_statements": lines, "covered_lines": covered_lines,
            "num_branches": branches, "covered_branches": covered_branches,
        }
    }


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    files = {
        "src/angelhair/engine/engine.py": summary(100, 100, 20, 19),
        "src/angelhair/engine/leases.py": summary(50, 49, 0, 0),
        "src/angelhair/engine/bucketed/put.py": summary(2_000, 1_999, 10, 10),
    }
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps({"files": files}))
    return path


TABLE = """\
| | lines | covered | branches | covered |
|---|---:|---:|---:|---:|
| `engine/` | 150 | 99.3 % | 20 | 95.0 % |
| `engine/bucketed/` | 2,000 | 99.9 % | 10 | 100.0 % |
| **together** | 2,150 | 99.9 % | 30 | 96.6 % |
"""


def test_coverage_is_added_up_by_folder_and_rounded_down(measured: Path, tmp_path: Path) -> None:
    ran = run([str(ROOT / "scripts" / "coverage_table"), str(measured)], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, TABLE)


def test_coverage_goes_between_the_markers_and_touches_nothing_else(measured: Path, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(README.read_text(encoding="utf-8"), encoding="utf-8")
    for _ in range(2):
        ran = run([str(ROOT / "scripts" / "coverage_table"), str(measured), "--write", "--readme", str(page)], tmp_path)
        assert (ran.returncode, ran.stderr) == (0, "")
    written = page.read_text(encoding="utf-8")
    assert f"<!-- coverage -->\n{TABLE}<!-- /coverage -->" in written
    table = re.compile(r"(?<=<!-- coverage -->).*(?=<!-- /coverage -->)", re.DOTALL)
    assert table.sub("", written) == table.sub("", README.read_text(encoding="utf-8"))


def test_a_page_without_a_place_for_coverage_is_left_alone(measured: Path, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("no place here\n")
    ran = run([str(ROOT / "scripts" / "coverage_table"), str(measured), "--write", "--readme", str(page)], tmp_path)
    assert ran.returncode != 0
    assert page.read_text() == "no place here\n"


@pytest.mark.parametrize(
    ("least", "said"),
    [("96", ""), ("97", "coverage: 96.6 % of the branches, at least 97 % is wanted\n")],
)
def test_branches_count_by_themselves_however_many_lines_are_covered(
    least: str, said: str, measured: Path, tmp_path: Path
) -> None:
    ran = run([str(ROOT / "scripts" / "coverage_table"), str(measured), "--at-least", least], tmp_path)
    assert (ran.returncode, ran.stderr) == (1 if said else 0, said)
    assert ran.stdout == TABLE
