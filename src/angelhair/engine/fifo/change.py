"""Change: extend and release a delivered message (A3, R13). The order of its group stays what it is."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.fifo.ack import sorted_by_group
from angelhair.engine.fifo.edit import Edit, edit
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.state import State
from angelhair.engine.receipts import Receipt
from angelhair.errors import (
    AngelhairError,
    InvalidRequest,
    MessageGone,
    NotInFlight,
    OutcomeUnknown,
    StaleReceipt,
    StoreError,
)
from angelhair.model import WantedChange

ChangeResult = AngelhairError | None
Wanted = tuple[Receipt, WantedChange]


async def change(lane: Lane, group: Sequence[Wanted]) -> list[ChangeResult]:
    """An outcome for each. Visibility counts from now and is not remembered for the next delivery."""
    now_ms = await lane.time_ms()
    outcomes: list[ChangeResult] = [None] * len(group)
    pending: dict[int, Wanted] = {}
    for index, (receipt, wish) in enumerate(group):
        if wish.body is not None:
            outcomes[index] = InvalidRequest("body", "cannot be changed in a fifo queue")
        else:
            pending[index] = (receipt, wish)
    # One message may be named twice in a group: each of its changes is a write of its own, in order.
    while pending:
        batch: dict[int, tuple[int, Wanted]] = {}
        for index, item in pending.items():
            batch.setdefault(item[0].number, (index, item))
        for index, outcome in (await _change_once(lane, list(batch.values()), now_ms)).items():
            outcomes[index] = outcome
            del pending[index]
    return outcomes


async def _change_once(lane: Lane, batch: list[tuple[int, Wanted]], now_ms: int) -> dict[int, ChangeResult]:
    by_group = await sorted_by_group(lane, [receipt for _, (receipt, _) in batch])
    named = {receipt: name for name, receipts in by_group.items() for receipt in receipts}
    results: dict[int, ChangeResult] = {
        index: MessageGone("the message is gone: it was settled, and its bucket has been dropped")
        for index, (receipt, _) in batch
        if receipt not in named
    }

    def changing(items: list[tuple[int, Wanted]]) -> Edit:
        def changed(state: State) -> State | None:
            entries = {}
            for index, (receipt, wish) in items:
                entry = state.touched.get(receipt.number)
                results[index] = None
                if entry is None or entry.delivery != receipt.delivery or entry.settled is not None:
                    results[index] = StaleReceipt("the message has been delivered again, moved or settled since")
                elif wish.in_flight and entry.visible_at <= now_ms:
                    results[index] = NotInFlight("the time-out of this delivery has passed")
                elif wish.visibility_ms is not None:
                    entries[receipt.number] = entry._replace(
                        visible_at=now_ms + wish.visibility_ms, duration=wish.visibility_ms, attempt=None
                    )
            return state.changed(entries) if entries else None

        return changed

    items = {
        name: [item for item in batch if named.get(item[1][0]) == name] for name in dict.fromkeys(named.values())
    }
    unsure: set[str] = set()
    outcomes = await edit(lane, {name: changing(group) for name, group in items.items()}, unsure=unsure)
    for name, outcome in outcomes.items():
        if isinstance(outcome, StoreError):
            results.update((index, outcome) for index, _ in items[name] if results.get(index) is None)
        elif name in unsure:
            # It may have been changed, and been delivered to another since then.
            results.update(
                (index, OutcomeUnknown(str(said))) for index, _ in items[name] if (said := results[index]) is not None
            )
    lane.view.due_ms = None if lane.view.due_ms is None else min(lane.view.due_ms, _soonest(lane, batch))
    return results


def _soonest(lane: Lane, batch: list[tuple[int, Wanted]]) -> int:
    return lane.clock.now().monotonic_ms + min(wish.visibility_ms or 0 for _, (_, wish) in batch)
