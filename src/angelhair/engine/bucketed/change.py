"""Change: extend, release and rewrite a delivered message (A3, R13).

These read the row first and are conditioned on its revision, which the receipt does not carry: so a change whose
outcome was unknown and that lands late cannot undo a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.receipts import Receipt
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, Refused, RowChange, Span, Value, Values
from angelhair.errors import AngelhairError, OutcomeUnknown, StaleReceipt, StoreError, Unavailable

ChangeResult = AngelhairError | None


class Wanted(NamedTuple):
    """What is to change about a delivered message; None leaves it."""

    receipt: Receipt
    visibility_ms: int | None = None
    body: bytes | None = None


async def change(lane: Lane, group: Sequence[Wanted], attempt: str, now: Moment) -> list[ChangeResult]:
    """An outcome for each. Visibility counts from now and is not remembered for the next delivery."""
    timed = [item for item in group if item.visibility_ms is not None]
    await wake.arm(lane, [(item.visibility_ms or 0, lane.bucket_of(item.receipt.number)) for item in timed])
    outcomes: list[ChangeResult] = [None] * len(group)
    # One message may be named twice in a group: each of its changes is a conditional write of its own, in order.
    pending = dict(enumerate(group))
    unsure: set[int] = set()
    """Refused in an earlier round, perhaps because a first attempt of unknown outcome had landed."""
    for _ in range(limits.CLAIM_ROUNDS * len(group)):
        batch: dict[int, tuple[int, Wanted]] = {}
        for index, item in pending.items():
            batch.setdefault(item.receipt.number, (index, item))
        if not batch:
            break
        for index, outcome in (await _change_once(lane, list(batch.values()), attempt, now, unsure)).items():
            outcomes[index] = outcome
            del pending[index]
    for index in pending:
        outcomes[index] = Unavailable("the message kept changing")
    for index in unsure:
        if isinstance(said := outcomes[index], Unavailable):
            outcomes[index] = OutcomeUnknown(str(said))
    for item, outcome in zip(group, outcomes, strict=True):
        if outcome is None and item.visibility_ms is not None:
            lane.view.schedule(lane.bucket_of(item.receipt.number), now.monotonic_ms + item.visibility_ms)
    return outcomes


async def _change_once(
    lane: Lane, batch: list[tuple[int, Wanted]], attempt: str, now: Moment, unsure: set[int]
) -> dict[int, ChangeResult]:
    """One read and one conditional write per message; messages missing from the answer are to be tried again."""
    spans = [
        Span(
            lane.states(lane.bucket_of(item.receipt.number)),
            item.receipt.number,
            item.receipt.number,
            None,
            ("delivery", "revision", "settled", "claim"),
        )
        for _, item in batch
    ]
    try:
        found = await lane.store.read(spans)
    except StoreError as error:
        return {index: error for index, _ in batch}
    results: dict[int, ChangeResult] = {}
    changes: list[Change] = []
    changing: list[tuple[int, Wanted, int]] = []
    for (index, item), part in zip(batch, found, strict=True):
        row = part.rows[0].values if part.rows else {}
        revision = row.get("revision")
        if (
            row.get("delivery") != item.receipt.delivery
            or row.get("settled") is not None
            or not isinstance(revision, int)
        ):
            results[index] = StaleReceipt("the message has been delivered again, moved or settled since")
            continue
        changes.append(_change(lane, item, revision, f"{attempt}.{index}", now))
        changing.append((index, item, revision))
    for (index, item, revision), outcome in zip(changing, await change_settled(lane.store, changes), strict=True):
        if isinstance(outcome, StoreError):
            results[index] = outcome
        elif isinstance(outcome, Applied) or _is_ours(outcome, item, revision, f"{attempt}.{index}"):
            results[index] = None
        elif outcome.rows.get(item.receipt.number, {}).get("revision") != revision + 1:
            # One change would be another's. Of several the first may have been ours.
            unsure.add(index)
    return results


def _change(lane: Lane, item: Wanted, revision: int, attempt: str, now: Moment) -> Change:
    values: dict[str, Value] = {"revision": revision + 1, "claim": attempt}
    if item.visibility_ms is not None:
        values["visible_at"] = now.wall_ms + item.visibility_ms
        values["duration"] = item.visibility_ms
    if item.body is not None:
        values["body"] = item.body
    expect: Values = {"delivery": item.receipt.delivery, "revision": revision, "settled": None}
    row = RowChange(item.receipt.number, expect, values)
    return Change(lane.states(lane.bucket_of(item.receipt.number)), [row], expect_flags={"finished": None})


def _is_ours(outcome: Refused, item: Wanted, revision: int, attempt: str) -> bool:
    row = outcome.rows.get(item.receipt.number, {})
    return row.get("claim") == attempt and row.get("revision") == revision + 1
