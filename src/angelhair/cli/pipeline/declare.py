"""`angelhair pipeline declare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import print_json
from angelhair.cli.pipeline.jobs import add_job, lake_of, place_of


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "declare", "write a spec for Spark's Declarative Pipelines",
        "Writes a folder in which `spark-pipelines run` makes the queue's tables: messages, states, minutes, poison, "
        "from the queue and its lake. Nothing is run, and secrets are not written: set them in the environment.",
        """
        angelhair pipeline declare --queue orders --lake ./lake --data ./angelhair-data --into ./orders-pipeline
        cd orders-pipeline && spark-pipelines run""",
        run, spark=False,
    )
    parser.add_argument("--into", required=True, metavar="DIR", help="the folder, which may be there or not")
    parser.add_argument("--group", metavar="ATTRIBUTE", help="count the values of an attribute")
    parser.add_argument(
        "--field", action="append", default=[], metavar="PATH", dest="fields",
        help="count the values of a field of JSON bodies; may be given several times",
    )


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.declared import write_spec

    told = {"queue": arguments.queue, "lake": lake_of(arguments)}
    told |= place_of(arguments).as_options()
    if arguments.group:
        told["group"] = arguments.group
    if arguments.fields:
        told["fields"] = ",".join(arguments.fields)
    written = [str(path) for path in write_spec(Path(arguments.into), arguments.queue, told)]
    if arguments.json:
        print_json({"queue": arguments.queue, "written": written})
    else:
        for path in written:
            print(path)
        print(f"now: cd {arguments.into} && spark-pipelines run")
    return DONE
