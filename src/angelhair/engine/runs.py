"""The messages of a run (see ledger.py): bare bodies, and those with keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

from angelhair.engine import dedup
from angelhair.engine.bucketed import put, wake
from angelhair.engine.bucketed.given import given, voided
from angelhair.engine.bucketed.lane import Lane, LaneSealed, QueueGone
from angelhair.engine.catalog import Queue
from angelhair.engine.memory import Memory
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueNotFound
from angelhair.model import MessageId, NewMessage


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


class Found(NamedTuple):
    """What became of messages with keys, by their place in the run."""

    known: set[int]
    """Their key stands for another message."""
    unfit: dict[int, dedup.Unfit]
    """Their key names an id that takes them no more."""


async def put_keyed(
    memory: Memory, queue: Queue, lane: Lane, lapses_at: int, placed: dict[int, put.Placed], numbers: dict[int, int],
    before: dict[int, dedup.Unfit], resuming: bool,
) -> Found:
    """Each is put by its key, with the date of the run: a try that slept would bring that back. One that an earlier try
    has written is in the queue, too, if its key has lapsed since and stands for another message; unless it was voided
    there."""
    found = Found(set(), {})
    if not numbers:
        return found
    now_ms = await wake.index_time_ms(lane)
    if lapses_at <= now_ms:
        raise OutcomeUnknown("the run was begun too long ago: what was given out cannot be told any more")
    there_now = await put.written_among(lane, placed) if resuming else set()
    stands = await dedup.as_they_stand(lane, list(placed.values()), now_ms) if resuming else {}
    standing = {number: item for number, item in stands.items() if number in there_now and item is not None}
    late = {number for number, item in stands.items() if item is None}
    late |= {number for number, item in placed.items() if number not in stands and put.is_late(lane, item, now_ms)}
    # A key lives from now on, whenever the run was begun; its message's bucket as long as the run.
    items = {
        number: dedup.Keyed(
            lane, standing.get(number) or placed[number], str(placed[number].message.key), now_ms, before.get(offset)
        )
        for number, offset in numbers.items()
        if number not in late
    }
    try:
        answers = await dedup.put_keyed_here(
            list(items.values()), lambda number: memory.lane(queue, number), memory.identities.fresh(),
            memory.clock.now(),
        )
        known = {
            number for (number, item), answer in zip(items.items(), answers, strict=True)
            if isinstance(answer, MessageId) and answer not in (MessageId(lane.number, number), item.goes_on_from)
        }
        there = {number: standing[number] for number in known if number in standing}
        for number in await voided(lane, there) if there else ():
            del there[number]
        written = await put.write(lane, list(there.values()), memory.clock.now()) if there else put.Written({}, [])
        unfit = {*late, *(item.number for item in written.again)}
        unfit -= await given(lane, unfit) if unfit else set()
    except (QueueGone, LaneSealed, QueueNotFound) as error:
        memory.distrust(queue.account, queue.name)
        raise OutcomeUnknown("the queue or its lanes changed while the messages were being put") from error
    for outcome in [*answers, *written.outcomes.values()]:
        if isinstance(outcome, AngelhairError):
            raise OutcomeUnknown(str(outcome))
    # Their buckets are kept for as long as the run can be tried.
    found.unfit.update(
        (numbers[number], dedup.Unfit(MessageId(lane.number, number), lapses_at)) for number in unfit
    )
    for number, answer in zip(items, answers, strict=True):
        if isinstance(answer, dedup.Unfit):
            found.unfit[numbers[number]] = answer
    found.known.update(numbers[number] for number in known - there.keys())
    return found
