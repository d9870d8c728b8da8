"""The messages of a run (see ledger.py): bare bodies, and those with keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from angelhair.clock import Moment
from angelhair.engine import dedup
from angelhair.engine.bucketed import put, wake
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.keys import COMMITTED, PENDING, key_partition
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.puts import Reservation, ReserveAgain
from angelhair.engine.settling import read_surely
from angelhair.engine.store import Span
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueNotFound
from angelhair.model import NewMessage


class Bodies(Sequence[NewMessage]):
    """Messages that are nothing but their bodies. One is made when somebody asks for it, which mostly nobody does."""

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self.bodies = bodies

    def __len__(self) -> int:
        return len(self.bodies)

    @overload
    def __getitem__(self, index: int) -> NewMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Bodies: ...
    def __getitem__(self, index: int | slice) -> NewMessage | Bodies:
        return Bodies(self.bodies[index]) if isinstance(index, slice) else NewMessage(self.bodies[index])


def doubles_in(messages: Sequence[NewMessage]) -> set[int]:
    """Messages whose key one before them in the run has: whatever becomes of that one, they are left out."""
    if isinstance(messages, Bodies):
        return set()
    first: dict[str, int] = {}
    return {
        offset for offset, message in enumerate(messages)
        if message.key is not None and first.setdefault(message.key, offset) != offset
    }


def key_of(messages: Sequence[NewMessage], offset: int) -> str | None:
    return None if isinstance(messages, Bodies) else messages[offset].key


async def put_keyed(
    memory: Memory, reserved: Reservation, placed: Sequence[put.Placed], tokens: Sequence[str],
    reserve_again: ReserveAgain, resuming: bool,
) -> list[bool]:
    """Messages of a run that have keys: each by its key, as any other put, and under ids that no earlier try has used.
    Which of them have a key that stands for another message. By its token a try knows what an earlier one has put."""
    lane, queue = reserved.lane, reserved.queue
    now_ms = await wake.index_time_ms(lane)
    items = [
        dedup.Keyed(
            lane, put.dated(item, now_ms, lane.settings), str(item.message.key), memory.put_elsewhere(queue), now_ms,
            token,
        )
        for item, token in zip(placed, tokens, strict=True)
    ]

    def lane_of(number: int) -> Lane:
        return memory.lane(queue, number)

    try:
        there = await _put_before(items, lane_of, memory.clock.now()) if resuming else set()
        left = [item for item in items if item.key not in there]
        answers = await dedup.put_keyed(left, lane_of, memory.identities.fresh(), memory.clock.now(), reserve_again)
    except (QueueGone, LaneSealed, QueueNotFound) as error:
        memory.distrust(queue.account, queue.name)
        raise OutcomeUnknown("the queue or its lanes changed while the messages were being put") from error
    for answer in answers:
        if isinstance(answer.outcome, AngelhairError):
            raise OutcomeUnknown(str(answer.outcome))
    known = {item.key for item, answer in zip(left, answers, strict=True) if not answer.ours}
    return [item.key in known for item in items]


async def _put_before(items: Sequence[dedup.Keyed], lane_of: Callable[[int], Lane], now: Moment) -> set[str]:
    """Keys whose message an earlier try with the same token has put, though the key stands for another by now: whoever
    took the row, when its window was over, set it aside under its token."""
    if not items:
        return set()
    spans = [Span(key_partition(item.lane.incarnation, item.key), item.token, item.token) for item in items]
    found = {
        item.key: part.rows[0].values
        for item, part in zip(items, await read_surely(items[0].lane.store, spans), strict=True)
        if part.rows
    }
    ids = {key: dedup.named_in(row) for key, row in found.items()}
    pending = [ids[key] for key, row in found.items() if row.get("status") == PENDING]
    late = await dedup.void_all(pending, lane_of, now)
    return {key for key, row in found.items() if row.get("status") == COMMITTED or ids[key] in late}
