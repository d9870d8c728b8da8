"""Ack: one conditional write settles a message for good (A3).

The receipt carries the number of its delivery; the write is conditioned on it. Acking again with the same receipt is
a success, with an older one it is stale, whatever the clock says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.examine import ERASED
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.making import maker
from angelhair.engine.receipts import Receipt
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, RowChange, Values
from angelhair.errors import AngelhairError, MessageGone, OutcomeUnknown, StaleReceipt, StoreError, Unavailable

ACKED = "acked"

AckOutcome = AngelhairError | None

_row_change = maker(RowChange)


async def ack(lane: Lane, group: Sequence[Receipt], now: Moment) -> list[AckOutcome]:
    """An outcome for each receipt; one conditional write per bucket."""
    settled: dict[Receipt, AckOutcome] = {}
    doubtful: set[Receipt] = set()
    """Their write is under way, for all that is known. That it was refused since does not end it: a message that was
    moving may be given back, and be as the write wants it once more."""
    pending: dict[int, set[Receipt]] = {}
    bucket_size = lane.settings.bucket_size
    for bucket, receipts in groupby(sorted(group), lambda receipt: receipt.number // bucket_size):
        pending[bucket] = set(receipts)
    for _ in range(limits.ACK_ROUNDS):
        if not pending:
            break
        batches = [(bucket, _batch(receipts)) for bucket, receipts in pending.items()]
        changes = [
            Change(lane.states(bucket), _rows(batch, now), expect_flags={"finished": None}) for bucket, batch in batches
        ]
        unsure: set[int] = set()
        outcomes = await change_settled(lane.store, changes, unsure)
        doubtful.update(receipt for index in unsure for receipt in batches[index][1])
        for (bucket, batch), outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, Applied):
                lane.view.count_acked(bucket, len(batch))
                if len(batch) == len(pending[bucket]):
                    settled.update(dict.fromkeys(batch))
                    del pending[bucket]
                    continue
            acked = {receipt.number: receipt.delivery for receipt in batch}
            for receipt in [receipt for receipt in pending[bucket] if receipt.number in acked]:
                if isinstance(outcome, Applied):
                    settled[receipt] = _judge({"settled": ACKED, "delivery": acked[receipt.number]}, receipt)
                elif isinstance(outcome, StoreError):
                    settled[receipt] = outcome
                elif not _free(found := outcome.rows.get(receipt.number, {}), receipt, outcome.flags):
                    settled[receipt] = _judge(found, receipt)
            pending[bucket] -= settled.keys()
            if not pending[bucket]:
                del pending[bucket]
    if pending:
        contended = Unavailable("too many servers change this bucket at once")
        settled.update(dict.fromkeys(chain(*pending.values()), contended))
    for receipt in doubtful:
        if isinstance(said := settled[receipt], Unavailable):
            settled[receipt] = OutcomeUnknown(str(said))
    return [settled[receipt] for receipt in group]


def _batch(receipts: set[Receipt]) -> list[Receipt]:
    """Receipts of different messages, as many as one write takes; of two for one message the newer goes first."""
    newest = {receipt.number: receipt for receipt in sorted(receipts)}
    return list(newest.values())[: limits.CHANGE_ROWS]


def _rows(batch: Sequence[Receipt], now: Moment) -> list[RowChange]:
    """What rows have in common is one object: stores tell by that which rows are alike."""
    values: Values = {"settled": ACKED, "settled_at": now.wall_ms}
    expected: dict[int, Values] = {}
    for _, _, delivery in batch:
        if delivery not in expected:
            expected[delivery] = {"delivery": delivery, "settled": None}
    return [_row_change((number, expected[delivery], values)) for _, number, delivery in batch]


def _free(found: Values, receipt: Receipt, flags: Values) -> bool:
    """Whether the row still meets the condition, so that another row of the group was the reason."""
    return found.get("delivery") == receipt.delivery and found.get("settled") is None and flags.get("finished") is None


def _judge(found: Values, receipt: Receipt) -> AckOutcome:
    if found.get("delivery") != receipt.delivery:
        if found.get("delivery") is None:
            return MessageGone("the message is gone: it was settled, and its bucket has been dropped")
        return StaleReceipt("the message has been delivered again since")
    settled = found.get("settled")
    if settled == ACKED:
        return None
    if settled is None:
        return StaleReceipt("the message expired or was purged")
    if settled == ERASED:
        return StaleReceipt("the message has been erased")
    return StaleReceipt("the message has been moved to another queue")
