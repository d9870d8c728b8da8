"""The catalog: which queues an account has (A12's shared knowledge, R6).

A queue is a name, an incarnation and settings. Deleting marks every lane's sequence before the name is free, so a
server with an old memory of the queue fails at its next put or receive and looks the name up again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.identities import Identities
from angelhair.engine.lives import LIVES
from angelhair.engine.ranks import PLAIN, Rank, differing, unlike_plain, worth_keeping
from angelhair.engine.settling import begun, change_one, change_settled, expect_decided, not_denied
from angelhair.engine.store import Applied, Change, ChangeOutcome, Refused, Row, RowChange, Slice, Span, Store, Values
from angelhair.errors import InvalidRequest, QueueExists, QueueNotFound, StoreError, Unavailable
from angelhair.model import QueueSettings

OPEN, SEALED, KEPT = "open", "sealed", "kept"
"""A lane takes puts; is read to its end; is only kept for its history."""

ACTIVE, DELETING = "active", "deleting"


@dataclass(frozen=True, slots=True)
class Queue:
    account: str
    name: str
    incarnation: str
    secret: bytes = field(repr=False)
    settings: QueueSettings
    lanes: Mapping[int, str]
    lanes_made: int
    """The number of the next lane: none is ever used twice, or late writes to an old lane would meet the new one."""
    version: int
    created_at_ms: int
    changed_at_ms: int
    status: str = ACTIVE
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What doors keep with a queue, such as tags and policies. The engine carries it along and reads none of it."""
    ranks: Mapping[int, Rank] = field(default_factory=dict)
    """Of lanes that are not plain ones."""

    @property
    def open_lanes(self) -> list[int]:
        return [lane for lane, status in self.lanes.items() if status == OPEN]

    @property
    def read_lanes(self) -> list[int]:
        """Those that are served first in front."""
        lanes = [lane for lane, status in self.lanes.items() if status != KEPT]
        return sorted(lanes, key=lambda lane: self.rank_of(lane).place) if self.ranks else lanes

    def rank_of(self, lane: int) -> Rank:
        return self.ranks.get(lane, PLAIN)

    def nearest(self, rank: Rank) -> Rank:
        """That of the queue: who asks for a priority that it does not have gets its highest."""
        highest = self.settings.priorities - 1
        return rank if rank.priority <= highest else rank._replace(priority=highest)

    def open_lanes_of(self, rank: Rank) -> list[int]:
        return [lane for lane in self.open_lanes if self.ranks.get(lane, PLAIN) == rank]


class Rewritten(NamedTuple):
    """What is to become of a queue: settings that change, and all of its notes."""

    changes: Mapping[str, Any]
    notes: Mapping[str, Any]


Rewrite = Callable[[Queue], Rewritten]
"""Made anew from the queue as it is, when somebody else changed it meanwhile."""


class Reading(Protocol):
    """As much of a store as it takes to look something up."""

    async def read(self, spans: Sequence[Span]) -> list[Slice]: ...


async def load(store: Reading, account: str, name: str) -> Queue | None:
    """The queue as the catalog has it, also while it is being deleted."""
    (found,) = await store.read([Span(places.account_queues(account), name, name)])
    return _queue_of(account, found.rows[0]) if found.rows else None


async def list_names(
    store: Store, account: str, prefix: str, after: str | None, most: int,
    wanted: Callable[[QueueSettings], bool] | None = None,
) -> tuple[list[str], bool]:
    """Names in order, from the one after `after` on, of those that are `wanted`; and whether there are more."""
    last = prefix + "\U0010ffff" if prefix else None
    names: list[str] = []
    more = True
    while more and len(names) <= most:
        first = max(prefix, after + "\x00" if after is not None else "") or None
        limit = most + 1 - len(names)
        (found,) = await store.read([Span(places.account_queues(account), first, last, limit)])
        names += [
            str(row.key)
            for row in found.rows
            if row.values.get("status") == ACTIVE
            and (wanted is None or wanted(QueueSettings.from_text(str(row.values["settings"]))))
        ]
        more = found.more
        after = str(found.rows[-1].key) if found.rows else after
    return names[:most], len(names) > most


async def create(
    store: Store, account: str, name: str, settings: QueueSettings, notes: Mapping[str, Any], identities: Identities,
    now: Moment,
) -> tuple[Queue, bool]:
    """The queue, and whether it was made now. An existing one with the same settings is returned as it is."""
    _check(name, settings, notes)
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.PUT_ROUNDS):
            existing = await load(store, account, name)
            if existing is not None and existing.status == DELETING:
                await finish_deleting(store, existing)
                existing = None
            if existing is not None and not await lives(store, existing):
                # A late copy of an earlier creation, landed after the queue was deleted: a name without a queue.
                await finish_deleting(store, existing)
                existing = None
            if existing is not None:
                return _same_or_raise(existing, settings), False
            ranks, _ = differing({}, settings, None)
            lanes = dict.fromkeys(range(len(ranks)), OPEN)
            queue = Queue(
                account, name, identities.fresh(), identities.secret(), settings, lanes, len(ranks), 1, now.wall_ms,
                now.wall_ms, notes=notes, ranks=unlike_plain(enumerate(ranks)),
            )
            if not await make_lanes(store, queue.incarnation, list(queue.lanes), settings.kind):
                await drop_lanes(store, queue.incarnation, list(queue.lanes), settings.kind)
                continue
            row = RowChange(name, {"incarnation": None}, _values_of(queue))
            (outcome,) = await change_settled(store, [Change(places.account_queues(account), [row])], unsure)
            if isinstance(expect_decided(outcome), Applied) or _incarnation_in(outcome, name) == queue.incarnation:
                return queue, True
            await drop_lanes(store, queue.incarnation, list(queue.lanes), settings.kind)
        raise Unavailable("the queue's name is being taken and freed by others all the time")


async def lives(store: Store, queue: Queue) -> bool:
    """Whether the catalog's word for it is true: a late copy of its creation can put a deleted queue back there."""
    lane = min(queue.open_lanes)
    (sequence,) = await store.read([Span(places.sequence(queue.incarnation, lane))])
    return bool(sequence.rows) and sequence.rows[0].values.get("deleted") is None


async def change(store: Store, queue: Queue, rewrite: Rewrite, now: Moment, added: Rank | None = None) -> Queue:
    """New settings, lanes included: more lanes are made, fewer means that the last ones are sealed (R11). `added`: a
    rank that is to have lanes too."""
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.PUT_ROUNDS):
            changes, notes = rewrite(queue)
            settings = queue.settings.changed(changes)
            _check(queue.name, settings, notes)
            opened = {lane: queue.rank_of(lane) for lane in queue.open_lanes}
            missing, surplus = differing(opened, settings, added)
            new = list(range(queue.lanes_made, queue.lanes_made + len(missing)))
            made = queue.lanes_made + len(new)
            if new and not await make_lanes(store, queue.incarnation, new, settings.kind):
                # These numbers are spent: a copy of their making may land at any time.
                spent = await replace_queue(store, queue, replace(queue, lanes_made=made), now)
                queue = spent or await _again(store, queue)
                continue
            lanes = {**queue.lanes, **dict.fromkeys(new, OPEN), **dict.fromkeys(surplus, SEALED)}
            ranks = {**queue.ranks, **unlike_plain(zip(new, missing, strict=True))}
            wanted = replace(queue, settings=settings, lanes=lanes, lanes_made=made, notes=notes, ranks=ranks)
            changed = await replace_queue(store, queue, wanted, now, unsure)
            if changed is not None:
                with begun():
                    await _seal(store, changed)
                return changed
            queue = await _again(store, queue)
        raise Unavailable("the queue's settings are being changed by others all the time")


async def delete(store: Store, account: str, name: str, now: Moment) -> Queue:
    """Frees the name. What the queue held is dropped later, by `bury`."""
    queue = await load(store, account, name)
    if queue is None:
        raise QueueNotFound(account, name)
    unsure: set[int] = set()
    marked = False
    with not_denied(unsure):
        for _ in range(limits.PUT_ROUNDS):
            if queue.status == DELETING:
                break
            await _dig_grave(store, queue, now.wall_ms)
            expect: Values = {"incarnation": queue.incarnation, "version": queue.version, "status": ACTIVE}
            mark = Change(places.account_queues(account), [RowChange(name, expect, {"status": DELETING})])
            (outcome,) = await change_settled(store, [mark], unsure)
            if marked := isinstance(expect_decided(outcome), Applied):
                break
            # What refused us may have been our own first attempt.
            with begun():
                again = await load(store, account, name)
            if again is None or again.incarnation != queue.incarnation:
                return queue
            queue = again
        if not marked and queue.status != DELETING:
            raise Unavailable("the queue is being changed by others all the time")
    with begun():
        await finish_deleting(store, queue)
    return queue


async def finish_deleting(store: Store, queue: Queue) -> None:
    """Anyone may go on with a deletion that its server did not live to finish."""
    # Once more: whoever marked it may have slept since, and its grave been taken for one that nobody needs.
    await _dig_grave(store, queue, await store.time_ms())
    changes = [
        Change(
            places.sequence(queue.incarnation, lane),
            [RowChange(places.SEQUENCE_ROW, {"deleted": None}, {"deleted": 1})],
        )
        for lane in queue.lanes
    ]
    for outcome in await change_settled(store, changes):
        expect_decided(outcome)
    for number in sorted(queue.lanes):
        await LIVES[queue.settings.kind].stop(store, queue.incarnation, number)
    row = RowChange(queue.name, {"incarnation": queue.incarnation}, None)
    expect_decided(await change_one(store, Change(places.account_queues(queue.account), [row])))


async def _dig_grave(store: Store, queue: Queue, now_ms: int) -> None:
    """Before anything is deleted it is written down what will have to be dropped."""
    values: Values = {
        "account": queue.account,
        "name": queue.name,
        "lanes": json.dumps(list(range(queue.lanes_made))),
        "bucket_size": queue.settings.bucket_size,
        "buried_at": now_ms,
        "kind": queue.settings.kind,
    }
    expect_decided(await change_one(store, Change(places.GRAVEYARD, [RowChange(queue.incarnation, {}, values)])))


async def _again(store: Store, queue: Queue) -> Queue:
    # What refused us may have been our own first attempt.
    with begun():
        again = await load(store, queue.account, queue.name)
    if again is None or again.status != ACTIVE or again.incarnation != queue.incarnation:
        raise QueueNotFound(queue.account, queue.name)
    return again


async def make_lanes(store: Store, incarnation: str, lanes: Sequence[int], kind: str) -> bool:
    """Sends the lanes' beginnings once. False when one may still be on its way: then nobody may use these lanes.

    A copy that landed after the lanes had been used and buried would bring them back, empty, for a server that still
    remembers them; and what that one put there nobody would read.
    """
    now_ms = await store.time_ms()
    changes = [change for lane in lanes for change in LIVES[kind].beginnings(incarnation, lane, now_ms)]
    outcomes = await store.change(changes)
    for outcome in outcomes:
        if isinstance(outcome, Unavailable):
            raise outcome
    return not any(isinstance(outcome, StoreError) for outcome in outcomes)


async def forget_lanes(store: Store, incarnation: str, lanes: Sequence[int]) -> bool:
    """As `drop_lanes`, but the mark that the lanes are deleted stays for a while, in the way of whatever comes late."""
    row = RowChange(places.SEQUENCE_ROW, {}, {"next": 0, "attempt": None, "deleted": 1, "sealed": None})
    changes = [
        Change(places.sequence(incarnation, lane), [row], ttl_seconds=limits.DELETED_MARK_SECONDS) for lane in lanes
    ]
    if any(isinstance(outcome, StoreError) for outcome in await change_settled(store, changes)):
        return False
    partitions = [partition(incarnation, lane) for lane in lanes for partition in (places.pointers, places.leases)]
    return all(outcome is None for outcome in await store.drop(partitions))


async def drop_lanes(store: Store, incarnation: str, lanes: Sequence[int], kind: str) -> bool:
    partitions = []
    for lane in lanes:
        partitions += [
            places.sequence(incarnation, lane),
            places.pointers(incarnation, lane),
            places.leases(incarnation, lane),
            *LIVES[kind].first_partitions(incarnation, lane),
        ]
    return all(outcome is None for outcome in await store.drop(partitions))


async def _seal(store: Store, queue: Queue) -> None:
    changes = [
        Change(
            places.sequence(queue.incarnation, lane), [RowChange(places.SEQUENCE_ROW, {"sealed": None}, {"sealed": 1})]
        )
        for lane, status in queue.lanes.items()
        if status == SEALED
    ]
    for outcome in await change_settled(store, changes):
        expect_decided(outcome)


async def replace_queue(
    store: Store, queue: Queue, wanted: Queue, now: Moment, unsure: set[int] | None = None
) -> Queue | None:
    """The queue as it is wanted; None when somebody else changed it first, or perhaps after us: `unsure` is not empty
    then."""
    changed = replace(wanted, version=queue.version + 1, changed_at_ms=now.wall_ms)
    expect: Values = {"incarnation": queue.incarnation, "version": queue.version, "status": ACTIVE}
    row = RowChange(queue.name, expect, _values_of(changed))
    (outcome,) = await change_settled(store, [Change(places.account_queues(queue.account), [row])], unsure)
    if isinstance(outcome, StoreError):
        raise outcome
    if isinstance(outcome, Applied):
        return changed
    found = outcome.rows.get(queue.name, {})
    same = all(found.get(name) == value for name, value in _values_of(changed).items())
    return changed if same else None


def _same_or_raise(existing: Queue, settings: QueueSettings) -> Queue:
    differing = tuple(
        setting.name
        for setting in fields(settings)
        if getattr(existing.settings, setting.name) != getattr(settings, setting.name)
    )
    if differing:
        raise QueueExists(existing.account, existing.name, differing)
    return existing


def _incarnation_in(outcome: ChangeOutcome, name: str) -> object:
    return outcome.rows.get(name, {}).get("incarnation") if isinstance(outcome, Refused) else None


def _values_of(queue: Queue) -> Values:
    return {
        "incarnation": queue.incarnation,
        "secret": queue.secret,
        "settings": _settings_text(queue),
        "lanes": json.dumps({str(lane): status for lane, status in sorted(queue.lanes.items())}),
        "lanes_made": queue.lanes_made,
        "status": queue.status,
        "created_at": queue.created_at_ms,
        "changed_at": queue.changed_at_ms,
        "version": queue.version,
    }


def _settings_text(queue: Queue) -> str:
    """Notes and ranks go among the settings, which readers of other versions pass over if they do not know them: to
    those, every lane is like the others."""
    ranks = {str(lane): rank for lane, rank in sorted(worth_keeping(queue.ranks, queue.lanes, queue.settings))}
    more = {name: value for name, value in (("notes", queue.notes), ("ranks", ranks)) if value}
    if not more:
        return queue.settings.to_text()
    return json.dumps({**json.loads(queue.settings.to_text()), **more}, sort_keys=True)


def _check(name: str, settings: QueueSettings, notes: Mapping[str, Any]) -> None:
    if settings.dead_letter_queue == name:
        raise InvalidRequest("dead_letter_queue", "cannot be the queue itself")
    size = len(json.dumps(notes)) if notes else 0
    if size > limits.NOTES_BYTES:
        raise InvalidRequest("notes", f"have {size} bytes; the limit is {limits.NOTES_BYTES}")


def _queue_of(account: str, row: Row) -> Queue:
    values: dict[str, Any] = dict(row.values)
    told = json.loads(values["settings"])
    return Queue(
        account,
        str(row.key),
        values["incarnation"],
        values["secret"],
        QueueSettings.from_text(values["settings"]),
        {int(lane): status for lane, status in json.loads(values["lanes"]).items()},
        values["lanes_made"],
        values["version"],
        values["created_at"],
        values["changed_at"],
        values["status"],
        told.get("notes", {}),
        {int(lane): Rank(*rank) for lane, rank in told.get("ranks", {}).items()},
    )
