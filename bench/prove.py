"""`python -m bench.prove`: the long proofs, part by part; writes a report and exits with 1 when anything failed.

A run that is cut off goes on where it was, as long as the code is the same: every part keeps what it has done.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from bench import here
from bench.keeping import Kept, Progress
from bench.parts import PARTS, Amounts
from bench.report import verdict, write_report
from tests.costs.clients import CLIENTS
from tests.costs.passing import EARLY, WINDOW
from tests.costs.passing_bags import window

BARS = Amounts()


def main() -> int:
    options = _options()
    amounts = Amounts(**{each.name: getattr(options, each.name) for each in fields(Amounts)})
    identities = {name: here.identity(part.rests_on) for name, part in PARTS.items()}
    for name in options.only:
        kept = Kept(name, identities[name]) if options.anew else Kept.load(name, identities[name])
        progress = Progress(name)
        PARTS[name].run(kept, amounts, progress)
        kept.finish()
        progress.end(f"{verdict(kept)}, {kept.seconds:.0f} s")
        for failure in kept.failures:
            print(f"  {failure}", flush=True)
    done = [kept for name in PARTS if (kept := Kept.load(name, identities[name])).figures]
    print(f"report: {write_report(done, options.report_folder)}")
    return 1 if any(kept.failures for kept in done) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.prove", description=__doc__)
    parser.add_argument("--only", type=_names, default=list(PARTS), metavar="PART,...", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--anew", action="store_true", help="forget what was kept of the parts that are run")
    parser.add_argument("--seeds", type=int, default=BARS.seeds, metavar="N", help="of bucketed queues; and of others")
    parser.add_argument("--kills", type=int, default=BARS.kills, metavar="N", help="of SQLite, at each level")
    parser.add_argument("--power-losses", type=int, default=BARS.power_losses, metavar="N", help="states rebuilt")
    parser.add_argument("--cluster-kills", type=int, default=BARS.cluster_kills, metavar="N", help="at each level")
    parser.add_argument("--celery", type=int, default=BARS.celery, metavar="N", help="tasks")
    parser.add_argument("--timelines", type=int, default=BARS.timelines, metavar="N", help="messages of a timeline")
    parser.add_argument("--databags", type=int, default=BARS.databags, metavar="N", help="messages of a databag")
    parser.add_argument("--flat", type=int, default=BARS.flat, metavar="N", help="messages that pass first")
    parser.add_argument("--databag-flat", type=int, default=BARS.databag_flat, metavar="N", help="of a databag")
    parser.add_argument("--mutations", type=int, default=BARS.mutations, metavar="N", help="of signed requests")
    parser.add_argument("--spark-kills", type=int, default=BARS.spark_kills, metavar="N", help="of drivers and tasks")
    parser.add_argument("--spark-scale", type=int, default=BARS.spark_scale, metavar="N", help="messages at most")
    parser.add_argument("--processes", type=int, default=None, metavar="N", help="at once (default: all cores)")
    parser.add_argument("--report-folder", type=Path, default=here.ROOT / "docs" / "proof")
    options = parser.parse_args()
    if options.flat < EARLY + WINDOW + CLIENTS:
        parser.error(f"--flat must leave room for the early window: at least {EARLY + WINDOW + CLIENTS}")
    if options.databag_flat < 2 * window():
        parser.error(f"--databag-flat must leave room for the early window: at least {2 * window()}")
    return options


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(PARTS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
