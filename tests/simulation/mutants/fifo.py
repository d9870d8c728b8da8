"""Mutants of fifo queues: their log, the keys in it, the states of groups and their epochs, moves."""

from angelhair.model import FIFO
from tests.simulation.mutants.patching import Mutant, Patch

ORDERED = (
    Mutant(
        "fifo put without looking where the log ends",
        "Two servers that put at once write over each other, and know nothing of each other's keys.",
        "R12",
        (Patch("fifo.put.append", "'next': first, 'deleted': None", "'deleted': None"),),
        ("total_queue", "dedup", "unique_receipts", "group_order", "drains"),
        kind=FIFO,
    ),
    Mutant(
        "fifo keys of the last bucket only",
        "A server that starts reads no more of the window than the log's last bucket.",
        "R10",
        (Patch("fifo.log._read_back", "while bucket > 0 and (not", "while False and (not"),),
        ("dedup",),
        kind=FIFO,
    ),
    Mutant(
        "fifo put of unknown outcome denied",
        "A put that may have landed is said not to have happened, because the log could not be read again.",
        "R12",
        (Patch("fifo.put._Putting.give_up", "unknown if index in self._doubtful else error", "error"),),
        ("total_queue",),
        kind=FIFO,
    ),
    Mutant(
        "fifo message in flight holds nobody up",
        "Those behind a message in flight are delivered before it is settled.",
        "R12",
        (
            Patch(
                "fifo.judge.judge",
                "judged.remaining_ms = remaining_ms\n                    break",
                "judged.remaining_ms = remaining_ms\n                    continue",
            ),
        ),
        ("group_order",),
        kind=FIFO,
    ),
    Mutant(
        "fifo states changed without condition",
        "A group's state is changed without a test that it is still the one that was seen.",
        "R12, A3",
        (Patch("fifo.edit._send", "{'revision': state.revision}", "{}"),),
        ("unique_receipts", "one_winner", "ack_finality", "true_acks", "visibility", "group_order"),
        kind=FIFO,
    ),
    Mutant(
        "fifo states changed in a sealed epoch",
        "A claim or an ack lands in a partition whose rows have been copied already.",
        "R14",
        (Patch("fifo.edit._send", "'sealed': None, ", ""),),
        ("unique_receipts", "one_winner", "ack_finality", "true_acks", "visibility", "group_order"),
        kind=FIFO,
    ),
    Mutant(
        "fifo rows left behind look new",
        "A message whose group's row was not carried over is taken for one that was never delivered.",
        "R14",
        (Patch("fifo.state.State.settled_below", "if self.done >= first:", "if True:"),),
        ("dead_letters", "ack_finality", "unique_receipts", "total_queue", "drains"),
        kind=FIFO,
    ),
    Mutant(
        "fifo watch that begins too early",
        "What a refusal shows is watched as if it had been seen before the claim was sent.",
        "R5",
        (Patch("fifo.receive._serve", "at.later(lane.clock.now())", "at"),),
        ("visibility",),
        kind=FIFO,
    ),
    Mutant(
        "fifo bucket finished though not settled",
        "The mark passes a bucket in which messages wait.",
        "R3",
        (Patch("fifo.finish.finish_low", "if unsettled or index.end < end:", "if index.end < end:"),),
        ("total_queue", "drains"),
        kind=FIFO,
    ),
    Mutant(
        "fifo last bucket finished",
        "The log's last bucket is dropped when it is full, and with it the place where the next put begins.",
        "R12, R14",
        (Patch("fifo.finish.finish_low", "bucket >= lane.view.last_bucket", "bucket > lane.view.last_bucket"),),
        ("drains", "total_queue", "marks"),
        kind=FIFO,
    ),
    Mutant(
        "fifo move that does not look whether it arrived",
        "A message that has arrived in the other queue is moved there once more.",
        "R7",
        (Patch("fifo.moves._look", "there if arrived_at else missing", "missing"),),
        ("dead_letters",),
        kind=FIFO,
    ),
)
