"""Which lanes are served before which (R11). Messages of a higher priority, and those of a tenant that floods a queue,
lie in lanes of their own: whoever receives chooses among lanes, and skips nothing inside of one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from angelhair import limits
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

NO_LANE = Rank(-1)
"""Of messages that are to wait in the delay line: no lane has it."""


def differing(
    opened: Mapping[int, Rank], settings: QueueSettings, added: Rank | None
) -> tuple[list[Rank], list[int]]:
    """Of a queue with these open lanes: the ranks of lanes that are to be made, and the lanes that take no more puts.

    Lanes for noisy tenants are not made before there is one, which is what `added` says, and then stay.
    """
    lanes = min(settings.lanes, settings.lanes_maximum // settings.priorities)
    wanted = {Rank(priority): lanes for priority in range(settings.priorities)}
    for rank in (*opened.values(), *(() if added is None else (added,))):
        if rank.noisy and settings.fair and rank.priority < settings.priorities:
            wanted[rank] = lanes
    surplus = []
    for lane, rank in opened.items():
        if wanted.get(rank, 0):
            wanted[rank] -= 1
        else:
            surplus.append(lane)
    return [rank for rank, count in wanted.items() for _ in range(count)], surplus


def unlike_plain(ranks: Iterable[tuple[int, Rank]]) -> dict[int, Rank]:
    return {lane: rank for lane, rank in ranks if rank != PLAIN}


def worth_keeping(
    ranks: Mapping[int, Rank], lanes: Collection[int], settings: QueueSettings
) -> list[tuple[int, Rank]]:
    """Those of the lanes that are there; and of those that are gone, the urgent ones that were made last: a dead letter
    that came from one is as urgent again when it comes back."""
    kept = [
        (lane, rank) for lane, rank in ranks.items() if lane in lanes or (rank.priority and settings.priorities > 1)
    ]
    forgotten = set(sorted(lane for lane, _ in kept if lane not in lanes)[: -limits.RANKS_REMEMBERED])
    return [(lane, rank) for lane, rank in kept if lane not in forgotten]
