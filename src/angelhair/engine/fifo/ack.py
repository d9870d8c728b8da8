"""Ack: one conditional write settles messages of any number of groups (A3).

The receipt carries the number of its delivery, and the state must have it. Acking again with the same receipt is a
success as long as the group remembers; later it is `MessageGone`, which says as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from angelhair.engine.fifo.edit import Edit, EditOutcome, edit
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.state import ACKED, Entry, State
from angelhair.engine.receipts import Receipt
from angelhair.engine.schema import LOG_LIGHT
from angelhair.engine.store import Span
from angelhair.errors import AngelhairError, MessageGone, NotInFlight, StaleReceipt, StoreError

AckOutcome = AngelhairError | None


async def ack(lane: Lane, group: Sequence[Receipt], in_flight: bool) -> list[AckOutcome]:
    """An outcome for each receipt. `in_flight`: only while its message is hidden."""
    now_ms = await lane.time_ms()
    by_group = await sorted_by_group(lane, group)
    results: dict[Receipt, AckOutcome] = {}
    edits: dict[str, Edit] = {
        name: partial(_acked, receipts, now_ms if in_flight else None, results) for name, receipts in by_group.items()
    }
    outcomes = await edit(lane, edits)
    return [_answer(lane, receipt, by_group, outcomes, results) for receipt in group]


def _answer(
    lane: Lane,
    receipt: Receipt,
    by_group: Mapping[str, Sequence[Receipt]],
    outcomes: Mapping[str, EditOutcome],
    results: Mapping[Receipt, AckOutcome],
) -> AckOutcome:
    group = next((name for name, receipts in by_group.items() if receipt in receipts), None)
    if group is None:
        return MessageGone("the message is gone: it was settled, and its bucket has been dropped")
    outcome = outcomes[group]
    # What the state did not allow was not part of what was sent: it is so whatever became of that.
    if isinstance(outcome, StoreError) and results.get(receipt) is None:
        return outcome
    return results[receipt]


def _acked(
    receipts: Sequence[Receipt], visible_before: int | None, results: dict[Receipt, AckOutcome], state: State
) -> State | None:
    entries: dict[int, Entry] = {}
    for receipt in sorted(receipts, reverse=True):
        entry = entries.get(receipt.number) or state.touched.get(receipt.number)
        results[receipt] = _judge(state, entry, receipt)
        if results[receipt] is None and entry is not None and entry.settled is None:
            if visible_before is not None and entry.visible_at <= visible_before:
                results[receipt] = NotInFlight("the time-out of this delivery has passed")
            else:
                entries[receipt.number] = entry._replace(settled=ACKED)
    if not entries:
        return None
    attempts = {entry.attempt for entry in entries.values() if entry.attempt is not None}
    others = {
        number: entry._replace(attempt=None)
        for number, entry in state.touched.items()
        if entry.attempt in attempts and number not in entries
    }
    acked = tuple((number, entries[number].delivery) for number in sorted(entries, reverse=True))
    return state.changed(entries | others, acked=acked)


def _judge(state: State, entry: Entry | None, receipt: Receipt) -> AckOutcome:
    """What is wrong with a receipt, given its message; None when it is good, or was."""
    if (receipt.number, receipt.delivery) in state.acked:
        return None
    if entry is None:
        if receipt.number < state.done:
            return MessageGone("the message was settled, perhaps by this very receipt")
        return StaleReceipt("the message expired or was purged")
    if entry.delivery != receipt.delivery:
        return StaleReceipt("the message has been delivered again since")
    if entry.settled is None or entry.settled == ACKED:
        return None
    return StaleReceipt("the message has been moved to another queue")


async def sorted_by_group(lane: Lane, receipts: Sequence[Receipt]) -> dict[str, list[Receipt]]:
    """By the group of their messages, which a receipt does not name. Those that are missing have been dropped."""
    index = lane.view.index
    groups = {receipt.number: index.group_of(receipt.number) for receipt in receipts}
    unknown = [number for number, group in groups.items() if group is None]
    if unknown:
        spans = [
            Span(lane.log(lane.bucket_of(number)), number, number, None, LOG_LIGHT) for number in unknown
        ]
        for number, found in zip(unknown, await lane.store.read(spans), strict=True):
            group = found.rows[0].values.get("message_group") if found.rows else None
            groups[number] = group if isinstance(group, str) else None
    by_group: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        group = groups[receipt.number]
        if group is not None:
            by_group.setdefault(group, []).append(receipt)
    return by_group
