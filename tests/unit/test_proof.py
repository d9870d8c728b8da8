"""The long proofs can begin: what each part rests on is there, and the report knows its bar."""

from __future__ import annotations

import pytest

from bench.here import ROOT, identity
from bench.keeping import Kept
from bench.parts import PARTS
from bench.report import REACHED, verdict


@pytest.mark.parametrize("name", PARTS)
def test_what_a_part_rests_on_is_there(name: str) -> None:
    """A folder that was renamed would count as unchanged for ever, and a file that was stops every part."""
    part = PARTS[name]
    assert all((ROOT / place).exists() for place in part.rests_on)
    assert len(identity(part.rests_on)) == 64
    assert part.run.__doc__


def test_a_place_without_code_is_no_ground_for_a_proof() -> None:
    for place in ("src/angelhair/nowhere", "src/angelhair/nowhere.py"):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            identity([place])


def test_every_part_has_a_bar_and_a_line_in_the_page() -> None:
    assert REACHED.keys() == PARTS.keys()
    page = (ROOT / "docs" / "proof" / "README.md").read_text()
    assert [name for name in PARTS if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", PARTS)
def test_a_part_holds_when_its_bar_is_reached_and_nothing_failed(name: str) -> None:
    figure, bar = REACHED[name]
    kept = Kept(name, "", {figure: bar}, finished="today")
    assert verdict(kept) == "holds"
    kept.figures[figure] = bar - 1
    assert verdict(kept).startswith("nothing failed, but the bar is")
    kept.failures.append("one was lost")
    assert verdict(kept) == "FAILED"
