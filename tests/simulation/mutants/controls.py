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
                "if opened is None or reader in waiting or opened.position < end:",
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
)
