"""Change: extend, release and rewrite a delivered message (A3, R13).

These read the row first and are conditioned on its revision, which the receipt does not carry: so a change whose
outcome was unknown and that lands late cannot undo a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.receipts import Receipt
from angelhair.engine.schema import STATE_DATES
from angelhair.engine.settling import change_settled
from angelhair.engine.store import Applied, Change, Refused, RowChange, Span, Value, Values
from angelhair.errors import AngelhairError, NotInFlight, OutcomeUnknown, StaleReceipt, StoreError, Unavailable
from angelhair.model import WantedChange

ChangeResult = AngelhairError | None
Wanted = tuple[Receipt, WantedChange]


async def change(lane: Lane, group: Sequence[Wanted], attempt: str, now: Moment) -> list[ChangeResult]:
    """An outcome for each. Visibility counts from now and is not remembered for the next delivery."""
    timed = [(wish.visibility_ms, lane.bucket_of(receipt.number)) for receipt, wish in group]
    await wake.arm(lane, [(visibility_ms, bucket) for visibility_ms, bucket in timed if visibility_ms is not None])
    outcomes: list[ChangeResult] = [None] * len(group)
    # One message may be named twice in a group: each of its changes is a conditional write of its own, in order.
    pending = dict(enumerate(group))
    unsure: set[int] = set()
    """Refused after a first attempt of unknown outcome, which may have landed and been overtaken since."""
    for _ in range(limits.CLAIM_ROUNDS * len(group)):
        batch: dict[int, tuple[int, Wanted]] = {}
        for index, item in pending.items():
            batch.setdefault(item[0].number, (index, item))
        if not batch:
            break
        for index, outcome in (await _change_once(lane, list(batch.values()), attempt, now, unsure)).items():
            outcomes[index] = outcome
            del pending[index]
    for index in pending:
        outcomes[index] = Unavailable("the message kept changing")
    for index in unsure:
        if isinstance(said := outcomes[index], Unavailable | StaleReceipt):
            outcomes[index] = OutcomeUnknown(str(said))
    for (visibility_ms, bucket), outcome in zip(timed, outcomes, strict=True):
        if outcome is None and visibility_ms is not None:
            lane.view.schedule(bucket, now.monotonic_ms + visibility_ms)
    return outcomes


async def _change_once(
    lane: Lane, batch: list[tuple[int, Wanted]], attempt: str, now: Moment, unsure: set[int]
) -> dict[int, ChangeResult]:
    """One read and one conditional write per message; messages missing from the answer are to be tried again."""
    spans = [
        Span(
            lane.states(lane.bucket_of(receipt.number)),
            receipt.number,
            receipt.number,
            None,
            (*STATE_DATES, "claim"),
        )
        for _, (receipt, _) in batch
    ]
    try:
        found = await lane.store.read(spans)
    except StoreError as error:
        return {index: error for index, _ in batch}
    results: dict[int, ChangeResult] = {}
    changes: list[Change] = []
    changing: list[tuple[int, Wanted, int]] = []
    for (index, item), part in zip(batch, found, strict=True):
        receipt, wish = item
        row = part.rows[0].values if part.rows else {}
        revision = row.get("revision")
        if row.get("delivery") != receipt.delivery or row.get("settled") is not None or not isinstance(revision, int):
            results[index] = StaleReceipt("the message has been delivered again, moved or settled since")
            continue
        if wish.in_flight and row.get("claim") != f"{attempt}.{index}" and not _hidden(row, now):
            results[index] = NotInFlight("the time-out of this delivery has passed")
            continue
        changes.append(_change(lane, item, revision, f"{attempt}.{index}", now))
        changing.append((index, item, revision))
    repeated: set[int] = set()
    outcomes = await change_settled(lane.store, changes, repeated)
    for place, ((index, item, revision), outcome) in enumerate(zip(changing, outcomes, strict=True)):
        if isinstance(outcome, StoreError):
            results[index] = outcome
        elif isinstance(outcome, Applied) or _is_ours(outcome, item, revision, f"{attempt}.{index}"):
            results[index] = None
        elif place in repeated and outcome.rows.get(item[0].number, {}).get("revision") not in (revision, revision + 1):
            # No change, or one, was another's if any. Of several the first may have been ours.
            unsure.add(index)
    return results


def _hidden(row: Values, now: Moment) -> bool:
    visible_at = row.get("visible_at")
    return isinstance(visible_at, int) and visible_at > now.wall_ms


def _change(lane: Lane, item: Wanted, revision: int, attempt: str, now: Moment) -> Change:
    receipt, wish = item
    values: dict[str, Value] = {"revision": revision + 1, "claim": attempt}
    if wish.visibility_ms is not None:
        values["visible_at"] = now.wall_ms + wish.visibility_ms
        values["duration"] = wish.visibility_ms
    if wish.body is not None:
        values["body"] = wish.body
    expect: Values = {"delivery": receipt.delivery, "revision": revision, "settled": None}
    row = RowChange(receipt.number, expect, values)
    return Change(lane.states(lane.bucket_of(receipt.number)), [row], expect_flags={"finished": None})


def _is_ours(outcome: Refused, item: Wanted, revision: int, attempt: str) -> bool:
    row = outcome.rows.get(item[0].number, {})
    return row.get("claim") == attempt and row.get("revision") == revision + 1
