"""What a server says of itself at `/metrics`, as far as the benchmarks ask: groups, operations of its store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_SERIES = re.compile(r"^(angelhair_\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')

Operation = tuple[str, str]
"""What was asked of a store, and of which table."""


@dataclass
class Metrics:
    """Take one before and one after, and subtract; add up those of several servers."""

    operations: Counter[Operation] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """Conditional changes that lost to somebody else's, by table."""
    grouped: Counter[str] = field(default_factory=Counter)
    """Messages that went in groups, by verb."""
    groups: Counter[str] = field(default_factory=Counter)
    put: int = 0
    received: int = 0
    redelivered: int = 0
    acked: int = 0
    leases_held: int = 0
    depth: int | None = None
    """What the server itself last counted; only the one that holds the lane's lease does."""

    @classmethod
    def parsed(cls, text: str) -> Metrics:
        found = cls()
        for name, label_text, value_text in _SERIES.findall(text):
            labels = dict(_LABEL.findall(label_text))
            found._take(name, labels, float(value_text))
        return found

    def _take(self, name: str, labels: dict[str, str], value: float) -> None:
        count = int(value)
        match name:
            case "angelhair_store_operations_total":
                self.operations[labels["operation"], labels["table"]] += count
            case "angelhair_store_changes_refused_total":
                self.refused[labels["table"]] += count
            case "angelhair_group_messages_sum":
                self.grouped[labels["verb"]] += count
            case "angelhair_group_messages_count":
                self.groups[labels["verb"]] += count
            case "angelhair_messages_put_total":
                self.put += count
            case "angelhair_messages_received_total":
                self.received += count
            case "angelhair_messages_redelivered_total":
                self.redelivered += count
            case "angelhair_messages_acked_total":
                self.acked += count
            case "angelhair_leases_held":
                self.leases_held += count
            case "angelhair_queue_depth":
                self.depth = (self.depth or 0) + count

    def __add__(self, other: Metrics) -> Metrics:
        return self._with(other, 1)

    def __sub__(self, earlier: Metrics) -> Metrics:
        return self._with(earlier, -1)

    def _with(self, other: Metrics, sign: int) -> Metrics:
        def together(mine: Counter[str], theirs: Counter[str]) -> Counter[str]:
            return Counter({key: mine[key] + sign * theirs[key] for key in mine.keys() | theirs.keys()})

        operations = self.operations.keys() | other.operations.keys()
        return Metrics(
            Counter({key: self.operations[key] + sign * other.operations[key] for key in operations}),
            together(self.refused, other.refused),
            together(self.grouped, other.grouped),
            together(self.groups, other.groups),
            self.put + sign * other.put,
            self.received + sign * other.received,
            self.redelivered + sign * other.redelivered,
            self.acked + sign * other.acked,
            self.leases_held + sign * other.leases_held,
            self.depth,
        )

    @property
    def operations_in_all(self) -> int:
        return sum(self.operations.values())

    def group_size(self, verb: str) -> float:
        """Messages that shared one commit, on average."""
        return self.grouped[verb] / max(1, self.groups[verb])


def total(parts: Iterable[Metrics]) -> Metrics:
    return sum(parts, Metrics())
