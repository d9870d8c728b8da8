"""Mutants of claiming, acking and finding again what has become visible."""

from tests.simulation.mutants.attack import death_with_a_claim, extended_while_it_is_moved
from tests.simulation.mutants.patching import Mutant, Patch

DELIVERIES = (
    Mutant(
        "ack without the delivery number",
        "A receipt that has gone stale settles the message as if it were the newest one.",
        "A3",
        (Patch("bucketed.ack._rows", "{'delivery': delivery, 'settled': None}", "{'settled': None}"),),
        ("one_winner",),
    ),
    Mutant(
        "ack of what is being moved",
        "An ack settles a message although its move to another queue has begun.",
        "R7",
        (
            Patch(
                "bucketed.ack._rows",
                "{'delivery': delivery, 'settled': None}",
                "{'delivery': delivery}",
            ),
        ),
        ("dead_letters",),
    ),
    Mutant(
        "stale ack answered with success",
        "Whoever acks a message that is settled hears that it was his ack that did it.",
        "A3",
        (
            Patch(
                "bucketed.ack._judge",
                "if found.get('delivery') != receipt.delivery:",
                "if found.get('delivery') is None:",
            ),
        ),
        ("one_winner",),
    ),
    Mutant(
        "claim without condition",
        "A message is claimed again without a test that nobody else has claimed it since it was seen.",
        "A2, A3",
        (
            Patch(
                "bucketed.claim._expect_and_values",
                "{'revision': candidate.revision, 'settled': None}",
                "{'settled': None}",
            ),
        ),
        ("unique_receipts", "visibility"),
    ),
    Mutant(
        "claim of what is settled",
        "A message is claimed again although its ack came in since it was seen.",
        "A3",
        (
            Patch(
                "bucketed.claim._expect_and_values",
                "{'revision': candidate.revision, 'settled': None}",
                "{'revision': candidate.revision}",
            ),
            Patch("bucketed.claim._expect_and_values", "'claim': token", "'claim': token, 'settled': None"),
        ),
        ("ack_finality", "unique_receipts"),
    ),
    Mutant(
        "first claim without condition",
        "A message that seems new is claimed without a test that nobody has claimed it before.",
        "A3",
        (Patch("bucketed.claim._expect_and_values", "expect = {'delivery': None}", "expect = {}"),),
        ("unique_receipts", "ack_finality", "visibility"),
    ),
    Mutant(
        "somebody else's claim taken for ours",
        "A refused claim whose row shows the next delivery is believed to be our own, whoever made it.",
        "A3",
        (Patch("bucketed.claim._is_ours", "row.get('claim') == token and ", ""),),
        ("unique_receipts",),
    ),
    Mutant(
        "first claim in a dropped bucket",
        "A server that slept through the end of a bucket delivers from memory what was settled long ago.",
        "R14",
        (Patch("bucketed.claim._flags_for", "{'opened': opened, 'final': None,", "{'final': None,"),),
        ("ack_finality", "unique_receipts"),
    ),
    Mutant(
        "invisible messages served",
        "A message is delivered again although its time-out has not passed.",
        "A2",
        (Patch("bucketed.examine.remaining_ms", "by_wall = visible_at - now.wall_ms", "by_wall = 0"),),
        ("visibility",),
    ),
    Mutant(
        "only the wall clock is believed",
        "A message that a fast clock hid for a year stays hidden for a year.",
        "R5",
        (
            Patch(
                "bucketed.examine.remaining_ms",
                "return min(by_wall, max(0, duration - lane.view.watch(number, revision, now)))",
                "return by_wall",
            ),
        ),
        ("drains", "total_queue"),
    ),
    Mutant(
        "expiry by a wrong clock",
        "A server that never compared its clock with the store's lets messages expire by it.",
        "R5",
        (Patch("memory.Memory.clock_is_good", "    check = self._clock", "    return True\n    check = self._clock"),),
        ("total_queue", "drains"),
    ),
    Mutant(
        "delay ignored",
        "A message that was put with a delay is delivered at once.",
        "A10",
        (
            Patch(
                "bucketed.reader._take_in",
                "if isinstance(visible_from, int) and visible_from > now.wall_ms:",
                "if False:",
            ),
        ),
        ("visibility",),
    ),
    Mutant(
        "nothing there, for ever",
        "A bucket in which a look finds nothing to do is remembered as finished, although it is not.",
        "R4",
        (
            Patch(
                "bucketed.receive._look_into",
                "if findings.flags.get('finished') is not None:",
                "if findings.flags.get('finished') is not None or not findings.unsettled:",
            ),
        ),
        ("marks", "total_queue", "drains"),
    ),
    Mutant(
        "extension confirmed and not written",
        "A consumer who asked for more time hears that it has it; the message comes back when it would have anyway.",
        "A2, R13",
        (Patch("bucketed.change._change", "if wish.visibility_ms is not None:", "if wish.visibility_ms == 0:"),),
        ("visibility",),
    ),
    Mutant(
        "gaps never looked for again",
        "An id that was not there when its bucket was first read is not looked for again, and the bucket stays open.",
        "A9, R4",
        (
            Patch("bucketed.reader._spans", "if opened.gaps and", "if False and"),
            Patch("bucketed.reader.close_passed", "if opened.gaps and (", "if opened.gaps and (True or "),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "marks move without condition",
        "A server that slept puts a mark back to where it saw it before.",
        "R3",
        (
            Patch(
                "marks.raise_mark",
                "RowChange(name, {'value': old}, {'value': new})",
                "RowChange(name, {}, {'value': new})",
            ),
        ),
        ("marks",),
    ),
)

RARE_DELIVERIES = (
    Mutant(
        "claim without a wake entry",
        "A message is claimed without a note of when to look for it again: if its server dies, nobody does.",
        "R3",
        (Patch("bucketed.receive._serve", "await wake.arm(", "(lambda *_: None)("),),
        attack=death_with_a_claim,
    ),
    Mutant(
        "move under an extension",
        "A message goes to the dead letters although its last delivery was extended since it was seen.",
        "R7, R13",
        (Patch("transfer._mark", "{'revision': candidate.revision, 'settled': None}", "{'settled': None}"),),
        attack=extended_while_it_is_moved,
    ),
)
