"""docs/databags.md quotes the newest measurement of tuning, with charts that are there and well formed."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

from bench.chart import Panel, steps
from bench.databag_tuning import BY_PARTITIONS, BY_TIMEOUT, TITLE, Point, charts_of, settings

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "tuning_page"
MARKS = "<!-- tuning, from the newest report that has it -->\nold\n<!-- end of tuning -->\n"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def report(begun: str, says: str, title: str = TITLE) -> str:
    return (
        f"# Benchmarks\n\nWritten by `make bench`, begun on {begun} UTC.\n\n## {title}\n\n{says}\n\n"
        f"| a |\n|---|\n| 1 |\n\n![{title}](some-chart.svg)\n\n## Another\n\nnothing\n"
    )


def test_the_page_quotes_the_newest_report() -> None:
    ran = run("--check")
    assert ran.returncode == 0, ran.stderr
    page = (ROOT / "docs" / "databags.md").read_text()
    charts = re.findall(r"!\[.*\]\((.+\.svg)\)", page)
    assert [name for name in charts if not (ROOT / "docs" / name).is_file()] == []


def test_of_several_reports_the_newest_that_has_it_is_quoted(tmp_path: Path) -> None:
    (reports := tmp_path / "benchmarks").mkdir()
    (page := tmp_path / "page.md").write_text(f"before\n{MARKS}after\n")
    (reports / "b.md").write_text(report("2026-01-02 10:00", "The older."))
    (reports / "a.md").write_text(report("2026-01-02 11:00", "The newer."))
    (reports / "c.md").write_text(report("2026-01-03 11:00", "Something else.", "Embedded"))
    where = ("--reports", str(reports), "--page", str(page))
    assert run("--check", *where).returncode == 1
    assert run("--write", *where).returncode == 0
    text = page.read_text()
    assert "The newer." in text and "The older." not in text and "nothing" not in text and "| 1 |" not in text
    assert "](benchmarks/some-chart.svg)" in text and "(benchmarks/a.md)" in text
    assert text.startswith("before\n") and text.endswith("after\n")
    assert run("--check", *where).returncode == 0
    for place in reports.iterdir():
        place.unlink()
    assert run("--write", *where).returncode == 0
    assert "not measured yet" in page.read_text()


def test_every_point_is_drawn() -> None:
    by_partitions, by_timeout = (
        [Point(setting, 400.0, 20.0, 50.0, 0.0) for setting in some] for some in settings()
    )
    charts = charts_of(by_partitions, by_timeout)
    for name, points, panels in ((BY_PARTITIONS, by_partitions, 2), (BY_TIMEOUT, by_timeout, 3)):
        drawn = xml.etree.ElementTree.fromstring(charts[name])
        assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) == panels * len(points)


def test_a_curve_of_nothing_lies_on_the_ground_and_scales_are_round() -> None:
    panels = [Panel("zero", {"one": [0.0, 0.0]}), Panel("some", {"one": [3.0, 407.0]})]
    drawn = steps("a < b", ["1", "2"], "steps", panels)
    texts = [each.text for each in xml.etree.ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b" in texts and "500" in texts and "250" in texts
