"""Mutants of putting: what is confirmed must be found by somebody, and an id belongs to one message."""

from tests.simulation.mutants.attack import (
    late_put_meets_drop,
    purged_between_look_and_claim,
    run_tried_again_after_it_was_given_out,
)
from tests.simulation.mutants.patching import Mutant, Patch

PUTS = (
    Mutant(
        "confirm without reading final",
        "A put is confirmed without a look at the marks, although its bucket may be settled, finished or dropped.",
        "R1",
        (
            Patch("bucketed.put._confirm", "if bucket < marks.floor:", "if False:"),
            Patch("bucketed.put._confirm", "if bucket >= marks.final:", "if True:"),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "read final before writing",
        "A put reads the marks before its rows are written, so that repair may settle the bucket in between.",
        "R1",
        (
            Patch(
                "bucketed.put.write",
                "results = await write_through(",
                "(outcomes[-1],) = await read_surely(lane.store, [Span(lane.pointers)])\n"
                "    results = await write_through(",
            ),
            Patch(
                "bucketed.put._confirm",
                "await read_surely(lane.store, [Span(lane.pointers)])",
                "[outcomes.pop(-1)]",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "put in one step believed without its ids",
        "A put that a store makes in one step is confirmed although its reservation was refused, and nothing written.",
        "A1",
        (
            Patch("bucketed.put.write_together", "if not _reserved(", "if None is _reserved("),
            Patch("bucketed.put.write_together", "now, slices[0])", "now, slices[0] if slices else None)"),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "admit into a finished bucket",
        "A late put inserts its state row although the bucket is finished, where nobody looks any more.",
        "R1",
        (
            Patch(
                "bucketed.admit.admit",
                "if flags.get('final') is None or flags.get('finished') is not None:",
                "if flags.get('final') is None:",
            ),
            Patch(
                "bucketed.admit.admit",
                "expect_flags={'final': 1, 'finished': None, 'admitted': admitted}",
                "expect_flags={'final': 1, 'admitted': admitted}",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "blind write of unknown outcome confirmed",
        "A write that may not have happened is taken for one that did.",
        "A1",
        (
            Patch(
                "settling.write_through",
                "return outcomes",
                "return [None if isinstance(outcome, OutcomeUnknown) else outcome for outcome in outcomes]",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "blind write of unknown outcome denied",
        "A put that may yet be delivered is answered as one that did not happen.",
        "A1",
        (
            Patch(
                "settling.write_through",
                "return outcomes",
                "return [Unavailable() if isinstance(outcome, OutcomeUnknown) else outcome for outcome in outcomes]",
            ),
        ),
        ("total_queue",),
    ),
    Mutant(
        "reservation of unknown outcome used",
        "Ids whose reservation may have failed are used all the same, and so by two messages.",
        "A4",
        (
            Patch(
                "bucketed.put.reserve_all",
                "await change_one(lane.store, _reservation(lane, next_id, wanted, attempt))",
                "(await lane.store.change([_reservation(lane, next_id, wanted, attempt)]))[0]",
            ),
            Patch(
                "bucketed.put._is_ours",
                "if isinstance(outcome, Applied):",
                "if isinstance(outcome, Applied | OutcomeUnknown):",
            ),
            Patch(
                "bucketed.put.reserve_all",
                "if isinstance(outcome, StoreError):",
                "if isinstance(outcome, Unavailable):",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "reservation without condition",
        "Ids are taken from a remembered sequence without a test that nobody else took them.",
        "A4",
        (Patch("bucketed.put._reservation", "expect = {'next': first, 'deleted': None", "expect = {'deleted': None"),),
        ("total_queue", "drains", "marks"),
    ),
    Mutant(
        "pending key taken for absent",
        "A put that finds its key pending writes the message again under its own id.",
        "R10",
        (
            Patch(
                "dedup._owns",
                "    if status == COMMITTED:",
                "    if status == PENDING:\n"
                "        one.expect = {'status': PENDING, 'lane': lane, 'id': number}\n"
                "        return False\n"
                "    if status == COMMITTED:",
            ),
        ),
        ("dedup",),
    ),
    Mutant(
        "key written after the message",
        "The message is written before its key is, so that two puts with one key both write it.",
        "R10",
        (
            Patch(
                "dedup._put_all",
                "for round_number in range(limits.PUT_ROUNDS):",
                "await put.write(items[0].lane, [one.placed for one in tries.values()], now)\n"
                "    for round_number in range(limits.PUT_ROUNDS):",
            ),
        ),
        ("dedup",),
    ),
    Mutant(
        "bucket dropped before its keys lapse",
        "A finished bucket goes although a key that was not committed may name an id in it.",
        "R10",
        (
            Patch("dedup._commit", "range(limits.SETTLE_ATTEMPTS)", "range(0)"),
            Patch("bucketed.retire._kept_until", "if not isinstance(keys_lapse, int):", "if True:"),
        ),
        ("dedup",),
    ),
)

RUNS = (
    Mutant(
        "run begun twice",
        "Who tries a run writes its own ids into the ledger, although another's stand there.",
        "R10",
        (
            Patch("runs.begin", "if found is not None:", "if False:"),
            Patch("ledger.enter", "{'status': None}", "{}"),
        ),
        ("dedup",),
    ),
    Mutant(
        "run committed before it is written",
        "The ledger says that a run is in the queue while it is still being written, and a repeated try believes it.",
        "R10",
        (Patch("runs.begin", "PENDING, lane.number", "COMMITTED, lane.number"),),
        ("total_queue", "drains"),
    ),
)

SLEEPERS = (
    Mutant(
        "id given up and not voided",
        "A message goes on to another id, although a server that sees it otherwise may still hand out the first one.",
        "R10",
        (Patch("bucketed.given.void", "if part.flags.get('finished') is None:", "if False:"),),
        attack=purged_between_look_and_claim,
    ),
    Mutant(
        "run gone on with as if nobody had been given any of it",
        "What can no longer be put at its id is put at another, although somebody was given it there.",
        "R10",
        (
            Patch("runs._finish", "for number in await given(lane, numbers):", "for number in ():"),
            Patch("runs._written", "left - await given(lane, left)", "left - set()"),
            Patch("runs._given_before", "await void(lane, numbers, memory.clock.now())", "set()"),
        ),
        attack=run_tried_again_after_it_was_given_out,
    ),
    Mutant(
        "admit into a dropped bucket",
        "A late put into a bucket that was dropped is admitted there, below everything that is ever read.",
        "R1, R14",
        (
            Patch("bucketed.put._confirm", "if bucket < marks.floor:", "if False:"),
            Patch("bucketed.put._admit_own", "if bucket < pointer_marks(pointers).floor:", "if False:"),
            Patch("bucketed.admit.admit", "if flags.get('final') is None or ", "if "),
            Patch("bucketed.admit.admit", "'final': 1, 'finished': None", "'finished': None"),
        ),
        attack=late_put_meets_drop,
    ),
)
