"""What SQS refuses whatever the queue, and a queue with wide limits takes: too late, too large."""

from __future__ import annotations

from typing import TypeVar

from angelhair.server.sqs.checked import Batch, OutgoingEntry, SendMessage
from angelhair.server.sqs.outputs import BatchResultErrorEntry

W = TypeVar("W")


def held_to_sqs(wanted: W) -> W:
    """What remains of a request to a queue that has SQS's limits. Raises what SQS answers."""
    if isinstance(wanted, SendMessage):
        if wanted.message.beyond is not None:
            raise wanted.message.beyond
    elif isinstance(wanted, Batch):
        if wanted.beyond is not None:
            raise wanted.beyond
        sending = [entry for entry in wanted.entries if isinstance(entry, OutgoingEntry)]
        for entry in sending:
            if entry.message.beyond is not None:
                wanted.failed.append(BatchResultErrorEntry.of(entry.id, entry.message.beyond))
                wanted.entries.remove(entry)
    return wanted
