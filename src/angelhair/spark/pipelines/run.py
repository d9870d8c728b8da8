"""run: the whole pipeline, one job after the other, each from where it was left.

    archive → audit → insight → retire

Every job is incremental and may end anywhere, so the pipeline is resumed by running it again. What the audit finds
wrong stops it before anything is dropped. A report of each run is left beside the lake.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Protocol

from angelhair.spark.lakes import folder_of
from angelhair.spark.pipelines.archive import Step, quietly

STAGES = ("archive", "audit", "insight", "retire")

REPORTS = "_runs"

DONE, FOUND, SKIPPED, PLANNED = "done", "found", "skipped", "planned"
"""How a stage ended: well; with something wrong; not begun, for that; not to be begun, as this is a rehearsal."""


class Told(Protocol):
    """What a job says of itself."""

    def as_json(self) -> dict[str, Any]: ...


Work = Callable[[], Told]


@dataclass
class Stage:
    name: str
    status: str
    seconds: float = 0.0
    report: dict[str, Any] = field(default_factory=dict)


@dataclass
class Ran:
    queue: str
    lake: str
    started_at: str
    stages: list[Stage] = field(default_factory=list)
    report: str | None = None
    """Where this is written down; a rehearsal leaves nothing."""

    @property
    def clean(self) -> bool:
        return all(stage.status in (DONE, PLANNED) for stage in self.stages)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "clean": self.clean}


def run(
    queue: str, lake: str, works: Mapping[str, Work], step: Step = quietly, stages: Sequence[str] = STAGES,
    dry_run: bool = False,
) -> Ran:
    """`works`: how each stage is done; one that is not named is left out. Of a rehearsal, those that can say what they
    would do."""
    now = datetime.now(UTC)
    done = Ran(queue, lake, now.isoformat(timespec="seconds"))
    for name in stages:
        if not done.clean:
            done.stages.append(Stage(name, SKIPPED))
            continue
        if name not in works:
            done.stages.append(Stage(name, PLANNED))
            continue
        step(name)
        begun = monotonic()
        told = works[name]()
        wrong = not getattr(told, "clean", True)
        status = FOUND if wrong else PLANNED if dry_run else DONE
        done.stages.append(Stage(name, status, round(monotonic() - begun, 3), told.as_json()))
        step(f"{name} done")
    if not dry_run:
        done.report = _left(lake, queue, now, done)
    return done


def _left(lake: str, queue: str, now: datetime, done: Ran) -> str:
    filesystem, folder = folder_of(lake)
    path = posixpath.join(folder, REPORTS, queue, f"{now:%Y%m%dT%H%M%S%f}.json")
    filesystem.create_dir(posixpath.dirname(path), recursive=True)
    with filesystem.open_output_stream(path) as stream:
        stream.write(json.dumps(done.as_json(), indent=1).encode())
    return path
