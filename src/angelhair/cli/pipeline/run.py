"""`angelhair pipeline run`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from angelhair.cli.exits import DONE, FAILED
from angelhair.cli.output import Column, Room, print_json, print_table
from angelhair.cli.pipeline.jobs import Job, add_job, working
from angelhair.identities import RandomIdentities

if TYPE_CHECKING:
    from angelhair.spark.pipelines.run import Ran, Work

# As the pipeline knows them; written here too, so that the help is printed without importing Spark.
STAGES = ("archive", "audit", "insight", "retire")


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "run", "archive, audit, insight and retire, one after the other",
        "Runs the whole pipeline, each job from where it was left: what is finished goes to the lake, every id is "
        "accounted for, the tables and the page are brought up to date, and what the lake has is dropped. If the audit "
        "finds something wrong, nothing is dropped and it exits with 1. A report of each run is left under LAKE/_runs.",
        """
        angelhair pipeline run --queue orders --lake ./lake --data ./angelhair-data
        angelhair pipeline run --queue orders --lake ./lake --data ./angelhair-data --dry-run
        angelhair pipeline run --queue orders --lake ./lake --contact-points 10.0.0.1 --only archive,audit --json""",
        run,
    )
    parser.add_argument("--dry-run", action="store_true", help="change nothing, say what would be done")
    parser.add_argument(
        "--only", default=",".join(STAGES), metavar="JOBS", type=_stages, help=f"some of {','.join(STAGES)}"
    )


def _stages(text: str) -> tuple[str, ...]:
    chosen = [name.strip() for name in text.split(",")]
    for name in chosen:
        if name not in STAGES:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(STAGES)}")
    return tuple(name for name in STAGES if name in chosen)


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.run import run as run_all

    with working(arguments) as job:
        works = _rehearsed(job) if arguments.dry_run else _works(job)
        done = run_all(job.queue, job.lake, works, job.tell, arguments.only, arguments.dry_run)
    if arguments.json:
        print_json(done.as_json())
    else:
        _print(done)
    return DONE if done.clean else FAILED


def _works(job: Job) -> dict[str, Work]:
    from angelhair.spark.pipelines.archive import archive
    from angelhair.spark.pipelines.audit import audit
    from angelhair.spark.pipelines.insight import Wanted, insight
    from angelhair.spark.pipelines.retire import retire

    common = (job.spark, job.place, job.account, job.queue, job.lake)
    return {
        "archive": lambda: archive(*common, RandomIdentities(), job.tell),
        "audit": lambda: audit(*common, job.tell),
        "insight": lambda: insight(*common, job.tell, Wanted()),
        "retire": lambda: retire(job.place, job.account, job.queue, RandomIdentities()),
    }


def _rehearsed(job: Job) -> dict[str, Work]:
    """What can be said without doing it; the audit changes nothing anyway, and takes as long."""
    from angelhair.spark.pipelines.archive import rehearsed
    from angelhair.spark.pipelines.insight import Wanted, insight
    from angelhair.spark.pipelines.retire import retire

    common = (job.spark, job.place, job.account, job.queue, job.lake)
    return {
        "archive": lambda: rehearsed(job.place, job.account, job.queue, job.lake),
        "insight": lambda: insight(*common, job.tell, Wanted(dry_run=True)),
        "retire": lambda: retire(job.place, job.account, job.queue, RandomIdentities(), dry_run=True),
    }


def _print(done: Ran) -> None:
    columns = [Column("job"), Column("status"), Column("seconds", numeric=True), Column("what", room=Room.WRAPPED)]
    print_table(columns, [(stage.name, stage.status, stage.seconds, _told(stage.report)) for stage in done.stages])
    if done.report is not None:
        print(f"the report is {done.report}")


def _told(report: dict[str, Any]) -> str:
    """Figures and short words; lists are for --json."""
    told = [
        f"{name} {value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{name} {value}"
        for name, value in report.items()
        if name not in ("queue", "lake") and isinstance(value, int | str | bool) and value not in ("", None)
    ]
    return ", ".join(told)
