"""The words of an audit: what an id can be, and what can be wrong with it."""

from __future__ import annotations

ACCOUNT, FINDING, FACT = "account", "finding", "fact"
"""Kinds of lines: each id has one word of the account; a finding says what is wrong; a fact is worth knowing."""

VOID, UNWRITTEN, DROPPED, LOST, UNCLEAR = "void", "unwritten", "dropped", "lost", "lost or void"
"""Words for ids that are nowhere. Those that are somewhere have the word of their state."""

MISSING_IN_QUEUE = "missing in the queue"
MISSING_IN_LAKE = "missing in the lake"
DUPLICATED = "duplicated"
ARCHIVED_TWICE = "archived twice"
CORRUPTED = "corrupted"
REDELIVERED = "redelivered too often"
PASSED_OVER = "passed over"
BEYOND = "beyond the sequence"

FINDINGS = {
    LOST: "it was put, and its body is neither in the queue nor in the lake",
    UNCLEAR: "its file in the lake has fewer rows than the table says; this id is one of those, or was never written",
    MISSING_IN_QUEUE: "its bucket is still in the queue and its state is there, but its body is only in the lake",
    MISSING_IN_LAKE: "the lake says that it has this bucket, and has not this message",
    DUPLICATED: "there is more than one row of it",
    ARCHIVED_TWICE: "more than one file of the lake holds it",
    CORRUPTED: "its body in the lake is not the body that was archived",
    REDELIVERED: "it was delivered more often than the queue's max_deliveries, and there is a dead-letter queue",
    PASSED_OVER: "its bucket is finished, and it was neither acked nor moved, nor has it expired or been purged",
    BEYOND: "the lake has it, and the queue has not given out this id yet: was the store put back to an older state?",
}
"""Everything that an audit can find, with what it means."""

DELIVERED, IN_QUEUE, IN_LAKE = "delivered", "in the queue", "in the lake"
"""Facts."""
