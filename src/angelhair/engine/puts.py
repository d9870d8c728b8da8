"""Reserved puts: messages with and without keys, and those that have to go again under new ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import dedup
from angelhair.engine.bucketed import put, wake
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.bucketed.put import Placed, PutOutcome, Written
from angelhair.engine.catalog import Queue
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.store import JoiningStore
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueNotFound, StoreError, Unavailable
from angelhair.model import NewMessage


class Reservation(NamedTuple):
    """Ids taken for puts that are about to be written."""

    queue: Queue
    lane: Lane
    first: int


ReserveAgain = Callable[[int], Awaitable[Reservation]]


async def put_reserved(
    memory: Memory, reservation: Reservation, messages: Sequence[NewMessage], reserve_again: ReserveAgain
) -> list[PutOutcome]:
    """Writes messages under the ids reserved for them; an outcome for each."""
    queue = reservation.queue
    begin_ms = await wake.index_time_ms(reservation.lane)
    placed = put.place(reservation.first, messages, begin_ms)
    outcomes: dict[int, PutOutcome] = {}
    keyed = {
        index: dedup.Keyed(
            reservation.lane, item, item.message.key, memory.put_elsewhere(queue), item.enqueued_at
        )
        for index, item in enumerate(placed)
        if item.message.key is not None
    }
    if keyed:
        outcomes.update(zip(keyed, await put_keyed(memory, queue, list(keyed.values()), reserve_again), strict=True))
    plain = [(index, item) for index, item in enumerate(placed) if item.message.key is None]
    await _put_plain(reservation.lane, plain, outcomes, reserve_again)
    return [outcomes[index] for index in range(len(messages))]


async def put_keyed(
    memory: Memory, queue: Queue, keyed: Sequence[dedup.Keyed], reserve_again: ReserveAgain
) -> list[PutOutcome]:
    try:
        answers = await dedup.put_keyed(
            keyed, lambda number: memory.lane(queue, number), memory.identities.fresh(), memory.clock.now(),
            reserve_again,
        )
        return [answer.outcome for answer in answers]
    except StoreError as error:
        return [OutcomeUnknown(str(error))] * len(keyed)
    except (QueueGone, LaneSealed, QueueNotFound):
        # The keys stand, and their messages may be completed by later puts with the same keys.
        memory.distrust(queue.account, queue.name)
        return [OutcomeUnknown("the queue or its lanes changed while the message was being put")] * len(keyed)


async def put_together(
    memory: Memory, queue: Queue, store: JoiningStore, messages: Sequence[NewMessage], reserve_again: ReserveAgain,
    rank: Rank = PLAIN,
) -> list[PutOutcome] | Reservation | None:
    """The whole put in one step, or as far as it went: see `bucketed.put.write_together`."""
    # Before a lane is chosen: each choice is the next one's turn, and one that is not used would always skip the same.
    if not all(put.is_plain(queue.settings, message) for message in messages):
        return None
    lane, attempt = memory.lane_for_put(queue, memory.clock.now(), rank), memory.identities.fresh()
    begin_ms = await wake.index_time_ms(lane)
    written = await put.write_together(lane, store, messages, attempt, begin_ms, lane.clock.now())
    if not isinstance(written, Written):
        return None if written is None else Reservation(queue, lane, written)
    first = min([*written.outcomes, *(item.number for item in written.again)])
    outcomes = {number - first: outcome for number, outcome in written.outcomes.items()}
    again = [(item.number - first, item) for item in written.again]
    await _put_plain(lane, again, outcomes, reserve_again, written)
    return [outcomes[index] for index in range(len(messages))]


async def perhaps_landed(writing: Awaitable[list[PutOutcome]]) -> list[PutOutcome]:
    """What becomes of messages that may have been written before: of none can it be said that it did not happen."""
    try:
        outcomes = await writing
    except Unavailable as error:
        raise OutcomeUnknown(str(error)) from error
    return [OutcomeUnknown(str(outcome)) if isinstance(outcome, Unavailable) else outcome for outcome in outcomes]


async def _put_plain(
    lane: Lane,
    items: list[tuple[int, Placed]],
    outcomes: dict[int, PutOutcome],
    reserve_again: ReserveAgain,
    written: Written | None = None,
) -> None:
    """Writes placed messages; those that met a finished bucket go again under new ids. `written` is the first round, if
    that is done already."""
    for round_number in range(limits.PUT_ROUNDS):
        if not items:
            return
        if round_number or written is None:
            try:
                written = await put.write(lane, [item for _, item in items], lane.clock.now())
            except StoreError as error:
                # Said of these alone: others of their group may have been put already.
                said = OutcomeUnknown(str(error)) if round_number else error
                outcomes.update((index, said) for index, _ in items)
                return
        again = {item.number for item in written.again}
        outcomes.update((index, written.outcomes[item.number]) for index, item in items if item.number not in again)
        if round_number:
            for index, _ in items:
                if isinstance(outcome := outcomes.get(index), Unavailable):
                    outcomes[index] = OutcomeUnknown(str(outcome))
        items = [(index, item) for index, item in items if item.number in again]
        if items:
            try:
                fresh = await reserve_again(len(items))
            except AngelhairError as error:
                # A bucket that was dropped may have taken the message along after its delivery: nobody knows.
                outcomes.update((index, OutcomeUnknown(str(error))) for index, _ in items)
                return
            lane = fresh.lane
            try:
                now_ms = await wake.index_time_ms(lane)
            except StoreError as error:
                outcomes.update((index, OutcomeUnknown(str(error))) for index, _ in items)
                return
            items = [
                (index, put.dated(item, now_ms, lane.settings)._replace(number=fresh.first + offset))
                for offset, (index, item) in enumerate(items)
            ]
    unfit = OutcomeUnknown("every bucket that the message was written to had been finished")
    outcomes.update((index, unfit) for index, _ in items)
