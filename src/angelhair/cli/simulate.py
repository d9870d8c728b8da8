"""`angelhair simulate`: plays seeds of the simulated world, or replays one with every step told."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from angelhair.cli.parsers import add_command, whole
from angelhair.model import BUCKETED
from angelhair.simulation.campaign import KINDS, Campaign, play, replay_line
from angelhair.simulation.run import run_seed

DEFAULT_SEEDS = 200
SHOWN_VIOLATIONS = 5


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "simulate", "run the engine in a seeded, hostile world",
        "Plays seeds of the simulated world: servers that crash, pause and have wrong clocks, a store that answers "
        "late or not at all. Ends with one line; exits with 1 when a promise was broken.",
        """
        angelhair simulate --seeds 2000
        angelhair simulate --kind topics
        angelhair simulate --replay 7""",
        run,
    )
    parser.add_argument("--seeds", type=whole(1), metavar="N", help=f"how many to play (default: {DEFAULT_SEEDS})")
    parser.add_argument("--first", type=whole(0), metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--processes", type=whole(1), metavar="N", help="how many at once (default: all cores)")
    parser.add_argument("--replay", type=whole(0), metavar="SEED", help="play one seed and print every step")
    parser.add_argument(
        "--kind", choices=KINDS, default=BUCKETED,
        help="of the queue; fair: a bucketed one with tenants and priorities; topics: over bucketed and "
        "fifo ones (default: %(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="with --replay: only the verdict")


def run(arguments: argparse.Namespace) -> int:
    if arguments.replay is not None:
        for option in ("seeds", "first", "processes"):
            if getattr(arguments, option) is not None:
                return _refuse(f"--replay plays one seed; --{option} does not go with it")
        return replay(arguments.replay, arguments.quiet, arguments.kind)
    if arguments.quiet:
        return _refuse("--quiet goes with --replay only")
    count = DEFAULT_SEEDS if arguments.seeds is None else arguments.seeds
    first = arguments.first or 0
    seeds = range(first, first + count)
    kind = arguments.kind
    campaign = play(seeds, arguments.processes, _Progress(len(seeds)) if sys.stderr.isatty() else None, kind)
    for seed, violations in sorted(campaign.failed.items()):
        for violation in violations[:SHOWN_VIOLATIONS]:
            print(f"seed {seed}: {violation}")
        print(f"  replay: {replay_line(seed, kind)}")
    print(campaign.closing_line())
    return 1 if campaign.failed else 0


def replay(seed: int, quiet: bool, kind: str = BUCKETED) -> int:
    judged = run_seed(seed, None if quiet else print, kind)
    for violation in judged.violations:
        print(f"seed {seed}: {violation}")
    print(
        f"replayed: seed {seed}, {judged.operations} operations, {judged.faults} faults, "
        f"{len(judged.violations)} violations"
    )
    return 1 if judged.violations else 0


def _refuse(why: str) -> int:
    print(f"angelhair simulate: {why}", file=sys.stderr)
    return 2


class _Progress:
    """A line on the terminal that is written over."""

    def __init__(self, total: int) -> None:
        self._total = total

    def __call__(self, campaign: Campaign) -> None:
        rate = campaign.seeds / campaign.seconds if campaign.seconds else 0.0
        end = "\n" if campaign.seeds == self._total else ""
        text = f"\r{campaign.seeds}/{self._total} seeds, {rate:.1f} a second, {len(campaign.failed)} failed "
        print(text, end=end, file=sys.stderr, flush=True)
