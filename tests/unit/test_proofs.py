"""What `make prove` keeps of a run that was cut off counts only while the code is the same: all of it is looked at."""

from __future__ import annotations

import pytest

from bench import here
from bench.parts import PARTS


@pytest.mark.parametrize("name", PARTS)
def test_what_a_part_rests_on_is_there(name: str) -> None:
    assert here.identity(PARTS[name].rests_on)


def test_a_place_without_code_is_no_ground_for_a_proof() -> None:
    for place in ("src/angelhair/nowhere", "src/angelhair/nowhere.py"):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            here.identity([place])
