"""`angelhair simulate`: plays seeds of the simulated world, or replays one with every step told."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from angelhair.simulation.campaign import Campaign, play, replay_line
from angelhair.simulation.run import run_seed

DEFAULT_SEEDS = 200
SHOWN_VIOLATIONS = 5


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "simulate",
        help="run the engine in a seeded, hostile world",
        description="Plays seeds of the simulated world: servers that crash, pause and have wrong clocks, a store that "
        "answers late or not at all. Ends with one line; exits with 1 when a promise was broken.",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help=f"how many seeds to play (default: {DEFAULT_SEEDS})")
    parser.add_argument("--first", type=int, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--processes", type=int, metavar="N", help="how many at once (default: all cores)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play one seed and print every step")
    parser.add_argument("--quiet", action="store_true", help="with --replay: only the verdict")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.replay is not None:
        for option in ("seeds", "first", "processes"):
            if getattr(arguments, option) is not None:
                return _refuse(f"--replay plays one seed; --{option} does not go with it")
        return replay(arguments.replay, arguments.quiet)
    if arguments.quiet:
        return _refuse("--quiet goes with --replay only")
    count = DEFAULT_SEEDS if arguments.seeds is None else arguments.seeds
    if count < 1:
        return _refuse("--seeds must be at least 1")
    if arguments.processes is not None and arguments.processes < 1:
        return _refuse("--processes must be at least 1")
    first = arguments.first or 0
    seeds = range(first, first + count)
    campaign = play(seeds, arguments.processes, _Progress(len(seeds)) if sys.stderr.isatty() else None)
    for seed, violations in sorted(campaign.failed.items()):
        for violation in violations[:SHOWN_VIOLATIONS]:
            print(f"seed {seed}: {violation}")
        print(f"  replay: {replay_line(seed)}")
    print(campaign.closing_line())
    return 1 if campaign.failed else 0


def replay(seed: int, quiet: bool) -> int:
    judged = run_seed(seed, trace=None if quiet else print)
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
