"""Runs of a fifo queue: many messages that are put once, however often it is tried (R10), in their order (R12); see
ledger.py.

They are put as any others are, each by its key; those without one have a key that every try gives them. So who goes on
with a run finds by the keys what is in the log already, wherever the earlier try ended; and tries that are at it at the
same time put nothing twice, as each put expects the log to end where its server knows it to.

That holds for as long as the queue's window keeps the keys, and so does the run: from its beginning on, which is before
any of its messages. Their dates and ours may each be wrong by the clocks' error, which `Keys` allows for. What was not
sent by then is not sent any more, also by who slept in between.

The ledger's row says where the log of each lane ended when the run was begun. A key that is found below is another
message's. At or above it is the run's own, from whichever try, unless other things are said there under it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from angelhair.engine import ledger
from angelhair.engine.fifo.lane import Lane, tail_of
from angelhair.engine.fifo.put import Deadline, PutOutcome, in_lanes, put
from angelhair.engine.fifo.read import bodies_of
from angelhair.engine.keys import COMMITTED, PENDING
from angelhair.engine.ledger import Accept, Entry, Run
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import read_surely
from angelhair.engine.store import Span
from angelhair.errors import AngelhairError, OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage, validate_fifo_message


async def begin(lanes: Sequence[Lane], run: Run) -> Entry | None:
    """The ledger's row; None when the run is in the queue already. Raises `QueueGone` when what we remember is old."""
    first = lanes[0]
    found = await ledger.read(first.store, first.incarnation, run)
    # Also of a run that is found: the queue may have been deleted and made again since we remembered it (R6).
    ends = await _ends(lanes)
    if found is not None:
        return await _resumed(first, run, found)
    begun_at = await first.time_ms()
    entry = Entry(
        PENDING, first.number, ends[0], run.messages, run.digest, first.identities.fresh(), begun_at,
        begun_at + min(run.window_ms, first.settings.dedup_window_ms), begun_at, None, "+".join(map(str, ends)),
    )
    stands = await ledger.enter(first.store, first.incarnation, run, entry)
    if stands == entry:
        return entry
    return await _resumed(first, run, stands)


async def _ends(lanes: Sequence[Lane]) -> list[int]:
    """Where the log of each lane ends, as it stands now and not as it is remembered. Raises `QueueGone`."""
    store = lanes[0].store
    sequences = await read_surely(store, [Span(lane.sequence) for lane in lanes])
    tails = [tail_of(lane, sequence) for lane, sequence in zip(lanes, sequences, strict=True)]
    spans = [Span(lane.log(tail.bucket), -1, -1) for lane, tail in zip(lanes, tails, strict=True)]
    ends = []
    for lane, found in zip(lanes, await read_surely(store, spans), strict=True):
        end = found.flags.get("next")
        if not isinstance(end, int):
            raise QueueGone(lane.queue)
        ends.append(end)
    return ends


async def _resumed(lane: Lane, run: Run, entry: Entry) -> Entry | None:
    # The window may have become a shorter one since.
    lapses_at = min(entry.lapses_at, entry.begun_at + lane.settings.dedup_window_ms)
    left = ledger.resumed(run, replace(entry, lapses_at=lapses_at))
    if left is not None:
        ledger.in_time(run, left, await lane.time_ms())
    return left


async def finish(
    lanes: Sequence[Lane], run: Run, entry: Entry, messages: Sequence[NewMessage], accept: Accept
) -> set[int]:
    """Returns when all of it is in the queue: which of the messages, by their place in the run, have a key under which
    another message was there before. Raises `OutcomeUnknown` when it is not sure: try again. `QueueGone` as `put`."""
    named = [_named(run, offset, message) for offset, message in enumerate(messages)]
    for message in named:
        validate_fifo_message(message)
    try:
        return await _finish(lanes, run, entry, messages, named, accept)
    except Unavailable as error:
        # Of one step; others may have happened.
        raise OutcomeUnknown(str(error)) from error


async def _finish(
    lanes: Sequence[Lane], run: Run, entry: Entry, messages: Sequence[NewMessage], named: Sequence[NewMessage],
    accept: Accept,
) -> set[int]:
    found: set[int] = set()
    too_late = ledger.lapsed(run, entry)
    there = in_lanes(lanes.__getitem__, len(lanes), enumerate(named))
    ids = _all_there(await put(there, Deadline(entry.lapses_at, too_late), found), too_late)
    # A key that we gave is nobody else's, and need not be looked at.
    found = {offset for offset in found if messages[offset].key is not None}
    known = await _known(lanes, entry, messages, ids, found)
    accept(known)
    stands = await ledger.commit(lanes[0].store, lanes[0].incarnation, run, entry)
    if stands.status != COMMITTED:
        raise OutcomeUnknown("the ledger's row has lapsed meanwhile, and another one is there")
    return known


def _named(run: Run, offset: int, message: NewMessage) -> NewMessage:
    if message.key is not None:
        return message
    return message._replace(key=f"{ledger.name_of(run)}.{run.block}.{offset}")


def _all_there(outcomes: dict[int, PutOutcome], too_late: AngelhairError) -> dict[int, MessageId]:
    ids = {offset: outcome for offset, outcome in outcomes.items() if isinstance(outcome, MessageId)}
    errors = [outcome for outcome in outcomes.values() if not isinstance(outcome, MessageId)]
    for error in errors:
        if error is not too_late:
            raise OutcomeUnknown(str(error)) from error
    if errors:
        raise too_late
    return ids


async def _known(
    lanes: Sequence[Lane], entry: Entry, messages: Sequence[NewMessage], ids: dict[int, MessageId], found: set[int]
) -> set[int]:
    """Which of the messages are left out, as their key stands for another one."""
    known: set[int] = set()
    numbers: list[list[int]] = [[] for _ in lanes]
    taken: set[MessageId] = set()
    for offset in range(len(messages)):
        id_ = ids[offset]
        if id_ in taken or (offset in found and id_.number < entry.ends[id_.lane]):
            known.add(offset)
        elif offset in found:
            numbers[id_.lane].append(id_.number)
        taken.add(id_)
    rows = [await bodies_of(lane, wanted) for lane, wanted in zip(lanes, numbers, strict=True)]
    for offset in found - known:
        row = rows[ids[offset].lane].get(ids[offset].number)
        message = messages[offset]
        said = (message.body, message.attributes, message.group)
        # Of one that was dropped meanwhile it cannot be told, and it was there.
        if row is not None and (row.get("body"), row.get("attributes"), row.get("message_group")) != said:
            known.add(offset)
    return known
