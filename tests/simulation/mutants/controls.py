"""Mutants that must do no harm: what was taken away is for speed only, or another rule stands in for it."""

from tests.simulation.mutants.patching import Mutant, Patch

CONTROLS = (
    Mutant(
        "lease that everybody holds",
        "Every server believes that it was elected: every lane has many workers at once.",
        "A11",
        (
            Patch(
                "leases.Lease.keep",
                "    if self.held_fence is not None:",
                "    self.held_fence = self.held_fence or 1\n    return True\n    if self.held_fence is not None:",
            ),
        ),
        covered_by="Leases are for speed: every step of a worker is conditional, so two of them do no harm.",
    ),
    Mutant(
        "reader closes what it has not read",
        "A bucket is closed as soon as the sequence has passed it, whatever the reader has missed there.",
        "A5",
        (
            Patch(
                "bucketed.reader.close_passed",
                "if opened is None or opened.stale or reader in waiting or (opened.position < end):",
                "if opened is None:",
            ),
        ),
        covered_by="R1: a closed bucket is only a mark that moved; repair finds whatever was not handed out.",
    ),
    Mutant(
        "put below the floor",
        "A put does not compare its bucket with the floor.",
        "R14",
        (Patch("bucketed.put._confirm", "if bucket < marks.floor:", "if False:"),),
        covered_by="R1: a dropped bucket has lost its `final` flag, and an admission without it is refused.",
    ),
    Mutant(
        "index read once",
        "A server that receives reads the wake index once and never again.",
        "R3",
        (
            Patch(
                "bucketed.wake.look_for_due",
                "if now.monotonic_ms - view.index_read_ms < limits.WAKE_SLOT_MS:",
                "if True:",
            ),
        ),
        covered_by="R4: the elected worker visits what the index names, and tells the receives of its own server.",
    ),
    Mutant(
        "no new row for the unfinished",
        "The worker passes the wake rows of buckets that are not finished without giving them new ones.",
        "R3, R4",
        (Patch("bucketed.keep.keep_index", "    if again:", "    if False:"),),
        covered_by="R4: whoever opens a bucket, or finds something unsettled there, looks again by itself.",
    ),
    Mutant(
        "wake entry behind the mark",
        "A wake entry is written without a test that the index has not been read past it already.",
        "R3",
        (Patch("bucketed.wake._write_ahead", "raised = pointer_marks(pointers).wake_raised", "raised = -1"),),
        covered_by="R3: a bucket that was in the index once stays there, and whoever tries to claim arms a row first.",
    ),
    Mutant(
        "index read before the mark is raised",
        "The worker reads the wake rows first and raises the mark afterwards, over rows written in between.",
        "R3",
        (
            Patch(
                "bucketed.keep.keep_index",
                "        if target <= raised or",
                "        reached, rows = await wake.read_rows(lane, done + 1, target)\n        if target <= raised or",
            ),
            Patch(
                "bucketed.keep.keep_index",
                "    reached, rows = await wake.read_rows(lane, done + 1, raised)\n    reached, visits",
                "    if marks.wake_done != marks.wake_raised:\n"
                "        reached, rows = await wake.read_rows(lane, done + 1, raised)\n    reached, visits",
            ),
        ),
        covered_by="R3: a bucket that was in the index once stays there, and whoever tries to claim arms a row first.",
    ),
)
