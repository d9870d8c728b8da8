"""`angelhair pipeline audit`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from angelhair.cli.exits import DONE, FAILED
from angelhair.cli.output import Column, Room, counted, print_json, print_table
from angelhair.cli.pipeline.jobs import add_job, working

if TYPE_CHECKING:
    from angelhair.spark.pipelines.audit import Audited
    from angelhair.spark.pipelines.audit.lines import Said

SHOWN = 5
"""Runs of ids in a cell; --json names more, --out all."""


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "audit", "account for every id, across the queue and its lake",
        "Says of every id that the queue has given out what became of it, and names those that are lost, duplicated, "
        "archived twice, corrupted, passed over or delivered too often. Changes nothing. Exits with 0 when every id is "
        "accounted for and nothing is wrong, and with 1 otherwise.",
        """
        angelhair pipeline audit --queue orders --lake ./lake --data ./angelhair-data
        angelhair pipeline audit --queue orders --lake ./lake --data ./angelhair-data --out ./audit --json""",
        run,
    )
    parser.add_argument("--out", metavar="DIR", help="write every run of ids with its word there, as Parquet")


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.audit import audit

    with working(arguments) as job:
        found = audit(job.spark, job.place, job.account, job.queue, job.lake, job.tell, arguments.out)
    if arguments.json:
        print_json(found.as_json())
    else:
        _print(found)
    return DONE if found.clean else FAILED


def _print(found: Audited) -> None:
    columns = [
        Column("lane", numeric=True), Column("word"), Column("ids", numeric=True), Column("which", room=Room.WRAPPED)
    ]
    print_table(columns, [(line.lane, line.word, line.ids, _ranges(line)) for line in found.account])
    for line in found.findings:
        print(f"{line.word}: {counted(line.ids, 'message')} of lane {line.lane}: {_ranges(line)}")
    for damage in found.files:
        print(f"{damage.told.uri} {damage.problem}")
    if found.clean:
        print(f"all {found.ids:,} ids are accounted for")


def _ranges(line: Said) -> str:
    shown = line.ranges[:SHOWN]
    more = line.runs - len(shown)
    return ", ".join(shown) + (f", and {more:,} more runs" if more else "")
