"""`angelhair pipeline`: what is done with a queue's history, on Spark. One file a job."""

from __future__ import annotations

from typing import Any

from angelhair.cli.parsers import add_group
from angelhair.cli.pipeline import archive, audit, compact, declare, erase, insight, load, replay, retire, run


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "pipeline", "work on a queue's history, on Spark",
        "Jobs on a queue's history. They read and write the store directly, beside the servers; each can be stopped at "
        "any point and run again.",
    )
    for job in (archive, audit, insight, replay, load, compact, erase, retire, run, declare):
        job.add_to(verbs)
