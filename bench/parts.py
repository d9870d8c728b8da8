"""The parts of the proof. Each does what is still missing, adds its figures to what is kept, and names each failure."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from angelhair.model import BUCKETED
from angelhair.simulation import campaign
from bench.here import ROOT
from bench.keeping import Kept, Portion, Progress
from bench.processes import embedded
from tests.aws.celery_app.running import mark_and_kill
from tests.costs import passing_bags
from tests.costs.clocks import StillClock
from tests.costs.passing import EARLY, WINDOW, differences, in_memory, in_sqlite, pass_through
from tests.killed.lives import live_and_die
from tests.unit.sqlite.killing import kill_repeatedly
from tests.unit.sqlite.power_loss import lose_power

SEEDS_PORTION = 1_000
KILLS_PORTION = 50
STATES_PORTION = 1_000
"""What is lost at most when a run is cut off: a few minutes."""

MUTATIONS_PORTION = 10_000

SHOWN_FAILURES = 20

MUTANT_TESTS = ("tests/simulation", "-k", "mutant")
"""One test for each mutant, wherever in the folder."""

ENGINE = tuple(
    f"src/angelhair/{each}"
    for each in (
        "engine", "batching", "stores", "simulation", "limits", "clock.py", "errors.py", "identities.py", "model",
    )
)
SERVED = (*ENGINE, "src/angelhair/server")
"""What a proof of the engine rests on; a change of the pipeline on Spark leaves it as true as it was."""

CELERY_WORKERS = 4

CELERY_PATIENCE_SECONDS = 1_800
"""Minutes are what it takes."""

FLAT_TOLERATED = 0.05
"""The bar: within 5 %."""


@dataclass(frozen=True)
class Amounts:
    """How much is to be proved; the defaults are the bars."""

    seeds: int = 20_000
    kills: int = 500
    power_losses: int = 20_000
    cluster_kills: int = 10
    celery: int = 10_000
    """Tasks."""
    timelines: int = 100_000
    """Messages, due over a minute."""
    databags: int = 200_000
    """Messages, each time."""
    flat: int = 1_000_000
    databag_flat: int = 1_000_000
    """Messages that pass; half as many wait then."""
    spark_kills: int = 24
    """In all; every stage has the same share."""
    spark_scale: int = 10_000_000
    """Messages; a tenth and three tenths of them come first."""
    mutations: int = 100_000
    processes: int | None = None
    """At once, for what can be done beside each other; None takes all cores."""


class Part(NamedTuple):
    run: Callable[[Kept, Amounts, Progress], None]
    rests_on: tuple[str, ...]
    """Folders and files: what was kept counts as long as nothing in them has changed."""


def seeds_part(kind: str) -> str:
    """What the part is called that plays this kind."""
    return "seeds" if kind == BUCKETED else f"{kind}-seeds"


def seeds_of(kind: str) -> Callable[[Kept, Amounts, Progress], None]:
    def part(kept: Kept, amounts: Amounts, progress: Progress) -> None:
        _seeds(kind, kept, amounts, progress)

    part.__doc__ = f"Simulated worlds full of faults, kind {kind}; no promise may be broken in any of them."
    return part


def _seeds(kind: str, kept: Kept, amounts: Amounts, progress: Progress) -> None:
    wanted = campaign.share(kind, amounts.seeds)
    while (first := kept.figures.get("seeds", 0)) < wanted:
        portion = range(first, min(wanted, first + SEEDS_PORTION))

        def tell(played: campaign.Campaign, first: int = first) -> None:
            failed = len(kept.failures) + len(played.failed)
            progress(f"{first + played.seeds} of {wanted} seeds, {failed} failed")

        with Portion(kept):
            played = campaign.play(portion, amounts.processes, tell, kind)
            for name in ("seeds", "operations", "faults", "steps"):
                kept.add(name, getattr(played, name))
            kept.figures["kinds of faults"] = sorted({*kept.figures.get("kinds of faults", []), *played.kinds})
            for name in ("operations", "faults"):
                kept.figures[f"{name} a seed"] = round(kept.figures[name] / kept.figures["seeds"], 1)
            kept.failures += [
                f"{campaign.replay_line(seed, kind)}: {violations[0]}"
                for seed, violations in sorted(played.failed.items())
            ]


def mutants(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """The engine broken on purpose, in every way that is known; each must be caught."""
    if "mutants" in kept.figures:
        return
    from tests.simulation.mutants import MUTANTS

    progress(f"{len(MUTANTS)} mutants")
    with Portion(kept), tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "mutants.xml"
        processes = str(amounts.processes or os.cpu_count() or 1)
        command = [sys.executable, "-m", "pytest", "--quiet", f"--junitxml={results}", "-n", processes, *MUTANT_TESTS]
        said = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        cases = list(xml.etree.ElementTree.parse(results).iter("testcase")) if results.exists() else []
        missed = [case.get("name", "?") for case in cases if any(part.tag in ("failure", "error") for part in case)]
        kept.figures["mutants"] = sorted(mutant.name for mutant in MUTANTS)
        kept.figures["tests passed"] = len(cases) - len(missed)
        kept.failures += [f"not caught: {name}" for name in missed]
        if (said.returncode != 0 and not missed) or len(cases) < len(MUTANTS):
            kept.failures.append(f"the mutants were not all run: {(said.stdout + said.stderr).strip()[-500:]}")


def sqlite_kills(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """kill -9 of a process that works on a SQLite file: the bare store, and a whole server under load."""
    while (done := kept.figures.get("kills of the store", 0)) < amounts.kills:
        progress(f"the store, {done} of {amounts.kills} kills, {len(kept.failures)} failures")
        with Portion(kept), tempfile.TemporaryDirectory() as folder:
            store = kill_repeatedly(Path(folder), min(KILLS_PORTION, amounts.kills - done), seed=done)
            kept.add("kills of the store", store.rounds)
            kept.add("of them at work", store.killed_at_work)
            kept.add("writes confirmed", store.confirmed)
            kept.failures += store.broken[:SHOWN_FAILURES]
    while (done := kept.figures.get("kills of a server", 0)) < amounts.kills:
        progress(f"a server under load, {done} of {amounts.kills} kills, {len(kept.failures)} failures")
        with Portion(kept), tempfile.TemporaryDirectory() as folder:
            server = live_and_die(Path(folder) / "killed.db", min(KILLS_PORTION, amounts.kills - done), seed=done)
            kept.add("kills of a server", server.lives)
            kept.add("of them under load", server.killed_at_work)
            kept.add("puts confirmed", server.account.confirmed)
            kept.add("puts of unknown outcome", server.account.unknown)
            kept.add("messages delivered", server.account.delivered)
            kept.add("delivered again", server.account.duplicates)
            kept.add("messages acked", server.account.acked)
            kept.add("messages lost", len(server.account.lost))
            kept.failures += server.account.broken[:SHOWN_FAILURES]


def power_loss(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """The SQLite file as it may look after the power failed; and the control without syncs, which must lose."""
    while (done := kept.figures.get("states rebuilt", 0)) < amounts.power_losses:
        progress(f"{done} of {amounts.power_losses} states, {len(kept.failures)} failures")
        with Portion(kept), tempfile.TemporaryDirectory() as folder:
            lost = lose_power(Path(folder), min(STATES_PORTION, amounts.power_losses - done), seed=done)
            kept.add("states rebuilt", lost.states)
            kept.add("confirmations checked", lost.confirmed)
            kept.add("states with a loss", lost.broken_states)
            kept.failures += lost.complaints[:SHOWN_FAILURES]
    if "control: states rebuilt with synchronous=NORMAL" not in kept.figures:
        progress("the control")
        with Portion(kept), tempfile.TemporaryDirectory() as folder:
            control = lose_power(Path(folder), min(STATES_PORTION, amounts.power_losses), durability="normal")
            kept.figures["control: states rebuilt with synchronous=NORMAL"] = control.states
            kept.figures["control: states with a loss"] = control.broken_states
            if not control.broken_states:
                kept.failures.append("the control lost nothing: the experiment shows nothing")


def cluster_kills(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """All three nodes killed -9 at once; with the periodic commit log as the control, which must lose."""
    from bench import cluster_kills as killing

    for stage in killing.STAGES:
        if kept.figures.get(f"{stage.title}: kills of all nodes", 0) < (1 if stage.control else amounts.cluster_kills):
            progress(stage.title)
            with Portion(kept):
                figures = stage.run(amounts.cluster_kills, progress)
                kept.figures.update({f"{stage.title}: {name}": figure for name, figure in figures.items()})
                broken = figures["lost"] + figures.get("other complaints", 0)
                if bool(broken) != stage.control:
                    kept.failures.append(
                        f"{stage.title}: nothing was lost, so the experiment shows nothing"
                        if stage.control
                        else f"{stage.title}: {broken} promises broken"
                    )


def celery(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """Celery with this server as its SQS: four workers, of which one is killed -9 at work; every task must be done."""
    if kept.figures.get("tasks done", 0) >= amounts.celery:
        return
    progress(f"{amounts.celery} tasks")
    with Portion(kept), tempfile.TemporaryDirectory() as folder:
        (place := Path(folder) / "celery").mkdir()
        with embedded(folder) as server:
            marks = mark_and_kill(
                server.url, "prove-", place, amounts.celery, CELERY_WORKERS, CELERY_PATIENCE_SECONDS
            )
        kept.figures["tasks asked for"] = marks.asked
        kept.figures["tasks done"] = marks.done
        kept.figures["workers"] = CELERY_WORKERS
        kept.figures["done when one was killed"] = marks.done_when_killed
        kept.figures["tasks a second"] = round(marks.done / marks.seconds, 1)
        if marks.done < marks.asked:
            kept.failures.append(f"{marks.asked - marks.done} tasks were never done")


def timelines(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """Six workers for six shards of a timeline on Cassandra, one killed -9 and one stopped for longer than its lock."""
    from bench import timelines as playing

    if kept.figures.get("messages processed", 0) >= amounts.timelines:
        return
    progress(f"{amounts.timelines} messages")
    with Portion(kept):
        kept.figures["messages asked for"] = amounts.timelines
        try:
            report = playing.play(amounts.timelines)
        except AssertionError as error:
            # What was waited for did not come.
            kept.failures.append(str(error))
        else:
            kept.figures.update(playing.figures(report))
            kept.failures += report.complaints


def databags(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """A databag on Cassandra, three servers, eight consumers; the second time one is killed -9 and one added."""
    from bench import databags as playing

    if kept.figures.get("messages delivered, each time at least", 0) >= amounts.databags:
        return
    progress(f"{amounts.databags} messages, twice")
    with Portion(kept):
        kept.figures["messages asked for"] = amounts.databags
        try:
            reports = playing.play(amounts.databags, progress)
        except AssertionError as error:
            kept.failures.append(str(error))
        else:
            kept.figures.update(playing.figures(*reports))
            kept.failures += [complaint for report in reports for complaint in report.complaints]


def flat(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """Very many messages through one queue; the late ones must cost what the early ones did."""
    for name, opening in (("memory", in_memory), ("SQLite", in_sqlite)):
        if f"{name}: messages passed" in kept.figures:
            continue

        async def let_pass(name: str = name, opening: Callable[..., object] = opening) -> None:
            clock = StillClock()
            with tempfile.TemporaryDirectory() as folder:
                async with opening(clock, Path(folder)) as store:  # type: ignore[attr-defined]
                    costs = await pass_through(
                        store, clock, [EARLY, amounts.flat],
                        lambda passed: progress(f"on {name}, {passed} of {amounts.flat + WINDOW} messages"),
                    )
            early, late = costs[EARLY], costs[amounts.flat]
            kept.figures[f"{name}: messages passed"] = amounts.flat
            kept.figures[f"{name}: a message after {EARLY}"] = str(early)
            kept.figures[f"{name}: a message after {amounts.flat}"] = str(late)
            kept.failures += [f"on {name}, {text}" for text in differences(early, late, FLAT_TOLERATED)]

        with Portion(kept):
            asyncio.run(let_pass())


def databag_flat(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """Very many messages through one databag; late ones must cost what early ones did, and so while very many wait."""
    if kept.figures.get("messages passed", 0) >= amounts.databag_flat:
        return
    waiting = amounts.databag_flat // 2

    async def let_pass() -> passing_bags.Costs:
        clock = StillClock()
        async with in_memory(clock, Path()) as store:
            return await passing_bags.pass_through(
                store, clock, amounts.databag_flat, waiting, lambda passed: progress(f"{passed} messages")
            )

    with Portion(kept):
        costs = asyncio.run(let_pass())
        kept.figures["messages passed"] = amounts.databag_flat
        kept.figures["messages waiting"] = waiting
        for when, cost in zip(("early", "late", "while so many wait"), costs, strict=True):
            kept.figures[f"a message {when}"] = str(cost)
        kept.failures += costs.complaints()


def spark_kills(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """Drivers and tasks of Spark killed -9 in the archive, a batch and a stream that write; each is run again."""
    from bench import spark_kills as killing

    share = -(-amounts.spark_kills // len(killing.STAGES))
    for store, opening in killing.STORES.items():
        missing = [
            stage for stage in killing.STAGES
            if stage.store == store and kept.figures.get(f"{stage.title}: kills", 0) < share
        ]
        if not missing:
            continue
        progress(f"{store} is opened")
        with opening() as world:
            for stage in missing:
                with Portion(kept):
                    toll = stage.run(world, share, progress)
                    kept.figures.update({f"{stage.title}: {name}": figure for name, figure in toll.figures().items()})
                    kept.figures["kills"] = sum(kept.figures.get(f"{one.title}: kills", 0) for one in killing.STAGES)
                    kept.failures += [f"{stage.title}: {complaint}" for complaint in toll.complaints]


def spark_scale(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """Audit and insight of more and more messages: memory must be bounded, and time must grow as messages do."""
    from bench import spark_scale as scaling

    sizes = kept.notes.setdefault(f"up to {amounts.spark_scale}", [])
    with scaling.growing(progress) as queue:
        for messages in scaling.sizes(amounts.spark_scale)[len(sizes) :]:
            with Portion(kept):
                sizes.append(queue.looked_at(messages).as_json())
    found = scaling.Scale.of(sizes)
    kept.figures, kept.failures, kept.charts = found.figures(), found.complaints(), found.charts()


def signatures(kept: Kept, amounts: Amounts, progress: Progress) -> None:
    """Signed requests spoiled in one or several parts; not one may be accepted, and each original has to be."""
    from angelhair.server.auth import SigningKeys
    from tests.wire.signing import test_mutations as spoiling

    while (done := kept.figures.get("mutations", 0)) < amounts.mutations:
        progress(f"{done} of {amounts.mutations} mutations, {len(kept.failures)} accepted")
        with Portion(kept):
            signing_keys = SigningKeys()
            count = min(MUTATIONS_PORTION, amounts.mutations - done)
            # As many seeds as portions: each makes other mixtures.
            spoiled = list(spoiling.mutations(spoiling.SEED + done, count))
            accepted = [name for name, sent in spoiled if spoiling.accepted(sent, signing_keys)]
            kept.add("mutations", count)
            kept.add("accepted", len(accepted))
            kept.failures += [f"accepted: {name}" for name in accepted[:SHOWN_FAILURES]]
    if "originals accepted" not in kept.figures:
        with Portion(kept):
            originals = [spoiling.accepted(sent, SigningKeys()) for sent in spoiling.originals()]
            kept.figures["originals accepted"] = sum(originals)
            kept.figures["kinds of mutations"] = len(spoiling.KINDS)
            if not all(originals):
                kept.failures.append("an original was refused: the experiment shows nothing")


PARTS = {
    **{seeds_part(kind): Part(seeds_of(kind), ENGINE) for kind in campaign.KINDS},
    "mutants": Part(mutants, (*ENGINE, "tests/simulation")),
    "sqlite-kills": Part(sqlite_kills, (*SERVED, "tests/killed", "tests/unit/sqlite")),
    "power-loss": Part(power_loss, (*SERVED, "tests/unit/sqlite")),
    "cluster-kills": Part(cluster_kills, (*SERVED, "cluster", "tests/killed", "tests/cluster")),
    "celery": Part(celery, (*SERVED, "tests/aws/celery_app")),
    "timelines": Part(timelines, (*SERVED, "src/angelhair/client", "cluster", "tests/killed")),
    "databags": Part(databags, (*SERVED, "src/angelhair/client", "cluster", "tests/cluster")),
    "flat": Part(flat, (*SERVED, "tests/costs")),
    "databag-flat": Part(databag_flat, (*ENGINE, "tests/costs")),
    "signatures": Part(signatures, ("src/angelhair/server/auth", "src/angelhair/limits", "tests/wire/signing")),
    "spark-kills": Part(spark_kills, ("src", "cluster")),
    "spark-scale": Part(spark_scale, ("src",)),
}
