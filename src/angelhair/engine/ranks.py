"""Which lanes are served before which (R11). Messages of a higher priority, and those of a tenant that floods a queue,
lie in lanes of their own: whoever receives chooses among lanes, and skips nothing inside of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from angelhair.model import QueueSettings


class Rank(NamedTuple):
    """What the messages of a lane have in common."""

    priority: int = 0
    """The highest is served first."""
    noisy: bool = False
    """Of tenants that flood the queue: served after the quiet ones of the same priority."""

    @property
    def place(self) -> tuple[int, bool]:
        """Sorts by who is served first."""
        return -self.priority, self.noisy


PLAIN = Rank()
"""Of a message that says nothing, and of every lane of a queue that nobody asked for more."""


def lanes_wanted(settings: QueueSettings, opened: Iterable[Rank], added: Rank | None) -> dict[Rank, int]:
    """How many lanes take puts, by rank. Those for noisy tenants are not made before there is one, and then stay."""
    wanted = {Rank(priority): settings.lanes for priority in range(settings.priorities)}
    for rank in (*opened, *(() if added is None else (added,))):
        if rank.noisy and settings.fair and rank.priority < settings.priorities:
            wanted[rank] = settings.lanes
    return wanted
