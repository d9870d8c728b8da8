"""What an audit says in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from angelhair.spark.pipelines.audit.accounting import LaneFacts
from angelhair.spark.pipelines.audit.files import Damage
from angelhair.spark.pipelines.audit.lines import Said
from angelhair.spark.pipelines.audit.subject import Subject
from angelhair.spark.pipelines.audit.words import ACCOUNT, FACT, FINDING, FINDINGS


@dataclass
class Audited:
    queue: str
    incarnation: str
    lake: str
    ids: int
    """That were given out, in all lanes."""
    lanes: dict[int, int]
    """By lane: the next id."""
    account: list[Said] = field(default_factory=list)
    facts: list[Said] = field(default_factory=list)
    findings: list[Said] = field(default_factory=list)
    files: list[Damage] = field(default_factory=list)

    @classmethod
    def of(
        cls, subject: Subject, lake: str, lanes: dict[int, LaneFacts], lines: list[Said], files: list[Damage]
    ) -> Audited:
        by_kind: dict[str, list[Said]] = {ACCOUNT: [], FACT: [], FINDING: []}
        for line in lines:
            by_kind[line.kind].append(line)
        ends = {lane.number: lane.next_id for lane in lanes.values()}
        return cls(
            subject.shape.name, subject.shape.incarnation, lake, sum(ends.values()), ends,
            by_kind[ACCOUNT], by_kind[FACT], by_kind[FINDING], files,
        )

    @property
    def clean(self) -> bool:
        """Whether every id is accounted for, and nothing is wrong with any."""
        return not self.findings and not self.files and sum(line.ids for line in self.account) == self.ids

    def as_json(self) -> dict[str, Any]:
        return {
            "queue": self.queue,
            "incarnation": self.incarnation,
            "lake": self.lake,
            "ids": self.ids,
            "clean": self.clean,
            "lanes": [self._lane(lane, end) for lane, end in self.lanes.items()],
            "findings": [
                {
                    "finding": line.word, "lane": line.lane, "ids": line.ids, "ranges": line.ranges,
                    "more_ranges": line.runs - len(line.named), "says": FINDINGS[line.word],
                }
                for line in self.findings
            ],
            "files": [damage.as_json() for damage in self.files],
        }

    def _lane(self, lane: int, end: int) -> dict[str, Any]:
        return {
            "lane": lane,
            "next_id": end,
            "account": {line.word: line.ids for line in self.account if line.lane == lane},
            "ranges": {line.word: line.ranges for line in self.account if line.lane == lane},
            **{line.word.replace(" ", "_"): line.ids for line in self.facts if line.lane == lane},
        }
