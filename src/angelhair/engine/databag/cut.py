"""How the id space is cut into partitions, and which of them are a server's own (D2).

A run is slices of one block, and what is served and locked as one. Where there are at least as many partitions as
blocks, a partition is a run. Where there are fewer, one is several blocks, which are served one after the other, each
as a run: so a look and a lock concern one block, whatever the number.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from angelhair import limits
from angelhair.engine.databag.ids import BLOCK_SLICES, block_of


class Run(NamedTuple):
    """Slices of one block, both ends included."""

    first: int
    last: int

    @property
    def block(self) -> int:
        return block_of(self.first)


@lru_cache(64)
def cut(partitions: int) -> tuple[Run, ...]:
    """The runs of so many partitions, as even as it goes without crossing from block to block."""
    runs: list[Run] = []
    count = max(partitions, limits.BAG_BLOCKS)
    for block in range(limits.BAG_BLOCKS):
        parts = (block + 1) * count // limits.BAG_BLOCKS - block * count // limits.BAG_BLOCKS
        ends = [block * BLOCK_SLICES + part * BLOCK_SLICES // parts for part in range(parts + 1)]
        runs += [Run(ends[part], ends[part + 1] - 1) for part in range(parts)]
    return tuple(runs)


def share(count: int, place: int, servers: int) -> range:
    """Which of so many are those of the server at this place among the living."""
    return range(place * count // servers, (place + 1) * count // servers)
