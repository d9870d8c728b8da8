"""Mutants of repair and retirement: what is final, finished, passed and dropped."""

from tests.simulation.mutants.attack import late_put_meets_finish
from tests.simulation.mutants.patching import Mutant, Patch

FINISH_FLAGS = "expect_flags={'final': 1, 'finished': None, 'admitted': findings.flags.get('admitted')}"

REPAIRS = (
    Mutant(
        "one ack counted as two",
        "A server counts more messages of a bucket as settled than it has settled.",
        "A1",
        (Patch("bucketed.ack.ack", "count_acked(bucket, len(batch))", "count_acked(bucket, len(batch) + 1)"),),
        ("total_queue", "drains"),
    ),
    Mutant(
        "bucket finished with one message left",
        "Counting how far consumers are with a full bucket, repair counts one message too few.",
        "A1",
        (
            Patch(
                "bucketed.repair._look_into",
                "if findings.settled == size:",
                "if findings.settled >= size - 1:",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "no repair",
        "Nobody ever makes a closed bucket final: what came late stays there, and nothing is dropped.",
        "A6",
        (Patch("bucketed.repair.make_final", "if marks.reader not in", "return False\n    if marks.reader not in"),),
        ("total_queue", "drains"),
    ),
    Mutant(
        "repair admits nothing",
        "Buckets are made final and settled, but what was found in them late is not admitted.",
        "A6, R1",
        (
            Patch("bucketed.repair._admit_missing", "if arrivals:", "if False:"),
            Patch("bucketed.repair.visit", "and findings.unadmitted:", "and False:"),
            Patch(
                "bucketed.repair._is_done",
                "not findings.unsettled",
                "not (findings.visible or findings.waiting or findings.exhausted or findings.moving)",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "settled before it was looked into",
        "The mark `settled` passes buckets whose bodies were not read after `final` was raised.",
        "R1",
        (
            Patch("bucketed.repair.make_final", "for bucket in buckets:", "for bucket in ():"),
            Patch("bucketed.repair.visit", "and findings.unadmitted:", "and False:"),
            Patch(
                "bucketed.repair._is_done",
                "not findings.unsettled",
                "not (findings.visible or findings.waiting or findings.exhausted or findings.moving)",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "finish what is not settled",
        "A bucket is finished as soon as it is final, while messages in it are still to be delivered.",
        "A8",
        (Patch("bucketed.repair._is_done", "and (not findings.unsettled)", ""),),
        ("total_queue", "drains"),
    ),
    Mutant(
        "finish before settled",
        "A bucket is finished when nothing is left in it, although late puts into it were not looked for yet.",
        "R1",
        (
            Patch("bucketed.repair._is_done", "bucket < marks.settled and ", ""),
            Patch("bucketed.repair._finish_if_done", FINISH_FLAGS, "expect_flags={'finished': None}"),
        ),
        ("total_queue", "drains", "marks"),
    ),
    Mutant(
        "repair mark passes the unfinished",
        "The repair mark passes every settled bucket, finished or not.",
        "A8",
        (Patch("bucketed.repair._pass_finished", "if part.flags.get('finished') is not None:", "if True:"),),
        ("marks",),
    ),
    Mutant(
        "floor above the repair mark",
        "Settled buckets are dropped although messages in them are still to be delivered.",
        "R14",
        (
            Patch("bucketed.retire.retire", "last = marks.repair", "last = marks.settled"),
            Patch(
                "bucketed.retire._over",
                "if not isinstance(finished_at, int) or",
                "if isinstance(finished_at, int) and",
            ),
        ),
        ("marks", "total_queue", "drains"),
    ),
    Mutant(
        "drop before the floor",
        "Buckets are dropped first and the floor is raised afterwards, so that others still look into them.",
        "R14",
        (
            Patch(
                "bucketed.retire.retire",
                "    if not await raise_mark(",
                "    await _drop(lane, marks.dropped, floor)\n    if not await raise_mark(",
            ),
        ),
        ("marks", "total_queue", "drains"),
    ),
    Mutant(
        "move back below the floor",
        "The operator's move-back is not clamped, and the repair mark comes to stand among dropped buckets.",
        "A8",
        (
            Patch(
                "bucketed.operate.move_repair_back", "max(marks.floor, min(bucket, marks.repair))",
                "min(bucket, marks.repair)",
            ),
        ),
        ("marks", "drains"),
    ),
)

ADMISSIONS = (
    Mutant(
        "finish over an admission",
        "A bucket is finished although a message was admitted since its rows were read.",
        "R1",
        (Patch("bucketed.repair._finish_if_done", FINISH_FLAGS, "expect_flags={'final': 1, 'finished': None}"),),
        attack=late_put_meets_finish,
    ),
    Mutant(
        "admission leaves no trace",
        "An admission does not raise the flag that finishing a bucket is conditioned on.",
        "R1",
        (
            Patch(
                "bucketed.admit.admit",
                "set_flags={'admitted': (admitted if isinstance(admitted, int) else 0) + 1}",
                "set_flags={}",
            ),
        ),
        attack=late_put_meets_finish,
    ),
)
