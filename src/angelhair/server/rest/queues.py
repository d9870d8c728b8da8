"""Queues: list, make, show, change, delete, purge."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from angelhair import limits
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.errors import QueueExists, QueueNotFound, StoreError
from angelhair.model import BUCKETED, DATABAG, FIFO, FIFO_ENDING, NOT_OF_KIND, TIMELINE, QueueSettings
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, shapes
from angelhair.server.rest.decoding import decode_object
from angelhair.server.rest.errors import Refusal, invalid
from angelhair.server.rest.times import in_ms, in_seconds, rfc3339
from angelhair.server.service import Service

NO_CONTENT = Response(204, content_type=None)
NO_STORE = (("Cache-Control", "no-store"),)
"""What is read here is old a moment later, and what is received must never come out of a cache."""

DURATIONS = (
    "visibility_timeout", "repair_timeout", "delay", "retention", "history", "dedup_window", "producer_delay",
    "expire_after", "lock",
)
CHANGEABLE = shapes.Changes.__struct_fields__
ORDINARY_LANES = QueueSettings().lanes
FIXED = frozenset(shapes.NewQueue.__struct_fields__) - frozenset(CHANGEABLE)

LIST = query.parameters(
    query.part_of_name("prefix", "Only names that begin with this.", "ord"),
    query.part_of_name("after", "Only names after this one: `next` of the page before.", "invoices"),
    query.whole("limit", "At most so many names.", 1, limits.LIST_QUEUES, 100),
)

_new_decoder = msgspec.json.Decoder(shapes.NewQueue)
_change_decoder = msgspec.json.Decoder(shapes.Changes)


async def list_queues(service: Service, request: Request) -> Response:
    given = query.read(request.query, LIST)
    names, more = await service.engine.list_queues(
        request.account, given.get("prefix", ""), given.get("after"), given.get("limit", limits.LIST_QUEUES)
    )
    return json_response(200, shapes.QueueList(names, names[-1] if more else None), NO_STORE)


async def make_queue(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    wanted = decode_object(request, _new_decoder) if request.body else shapes.NewQueue()
    kind = _kind(queue, wanted)
    settings = QueueSettings(**{**_given(wanted, kind), "kind": kind})
    try:
        made, is_new = await service.create_queue(request.account, queue, settings)
    except QueueExists as error:
        if kind != TIMELINE:
            raise
        differing = ["shards" if name == "lanes" else name for name in error.differing]
        raise QueueExists(request.account, queue, tuple(differing)) from None
    return json_response(201 if is_new else 200, await _said(service, made))


def _kind(name: str, wanted: shapes.NewQueue) -> str:
    is_fifo = name.endswith(FIFO_ENDING)
    if wanted.kind is not UNSET and (wanted.kind == FIFO) != is_fifo:
        raise invalid("kind", f"a queue whose name ends with {FIFO_ENDING} is of the kind {FIFO!r}, and no other is")
    if is_fifo:
        return FIFO
    return BUCKETED if wanted.kind is UNSET else str(wanted.kind)


async def show_queue(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    found = await service.engine.find_queue(request.account, queue)
    statistics = _statistics(await service.engine.stats(request.account, queue))
    warnings = await _warnings(service, found)
    partitions = await _partitions(service, found)
    shown = shapes.QueueShown(**_fields(found), warnings=warnings, statistics=statistics, partitions=partitions)
    return json_response(200, shown, NO_STORE)


async def _partitions(service: Service, queue: Queue) -> shapes.Partitions | None:
    if queue.settings.kind != DATABAG:
        return None
    seen = await service.engine.partitions(queue.account, queue.name)
    return shapes.Partitions(
        count=seen.partitions, min_partitions=seen.min_partitions, max_partitions=seen.max_partitions,
        visibility_timeout=in_seconds(seen.visibility_timeout_ms), sync=in_seconds(seen.sync_ms), locked=seen.locked,
        epochs=seen.epochs, duplicates=seen.duplicates,
    )


async def _warnings(service: Service, queue: Queue) -> list[str]:
    settings = queue.settings
    dead_letters = settings.dead_letter_queue
    if dead_letters is None:
        return [] if settings.max_deliveries is None else ["max_deliveries does nothing without a dead_letter_queue"]
    if settings.max_deliveries is None:
        return ["dead_letter_queue does nothing without max_deliveries"]
    try:
        target = await service.engine.find_queue(queue.account, dead_letters)
    except QueueNotFound:
        missing = f"there is no queue {dead_letters}, the dead_letter_queue"
        return [f"{missing}: max_deliveries does nothing until it is made"]
    # A timeline's dead letters may go to another one too; fifo wants a group, and from a databag nothing is redriven.
    kinds = (BUCKETED, TIMELINE) if settings.kind == TIMELINE else (settings.kind,)
    if target.settings.kind not in kinds:
        return [f"{dead_letters}, the dead_letter_queue, is of the kind {target.settings.kind}: nothing is moved there"]
    if target.settings.kind == TIMELINE:
        target_is = f"{dead_letters}, the dead_letter_queue, is of the kind {TIMELINE}"
        return [f"{target_is}: no redrive moves messages from there"]
    return []


async def change_queue(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    try:
        wanted = decode_object(request, _change_decoder)
    except Refusal as error:
        if error.field in FIXED:
            raise invalid(error.field, "cannot change after the queue was made") from None
        raise
    changes = await _changes(service, request, queue, wanted)
    if changes:
        changed = await service.change_queue(request.account, queue, changes)
    else:
        # What asks for nothing changes nothing, the time of the last change neither.
        changed = await service.engine.find_queue(request.account, queue)
    return json_response(200, await _said(service, changed))


async def delete_queue(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    await service.delete_queue(request.account, queue)
    return NO_CONTENT


async def purge_queue(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    await service.purge(request.account, queue)
    return NO_CONTENT


async def _changes(service: Service, request: Request, queue: str, wanted: shapes.Changes) -> dict[str, Any]:
    if wanted.lanes is UNSET and wanted.shards is UNSET:
        return _given(wanted, None)
    return _given(wanted, (await service.engine.find_queue(request.account, queue)).settings.kind)


def _given(wanted: shapes.Changes, kind: str | None) -> dict[str, Any]:
    """The settings that were named, as the model has them. What a timeline calls shards are its lanes."""
    given: dict[str, Any] = {}
    shards = None if wanted.shards is UNSET else wanted.shards
    lanes: Any = wanted.lanes
    # What a kind does not have may be said all the same, with its default.
    if kind == TIMELINE:
        # Both, and the same, is what it says of itself: that can be sent back as it is.
        if lanes not in (UNSET, ORDINARY_LANES, shards):
            raise invalid("lanes", "a timeline has shards in their place")
        lanes = UNSET if shards is None else shards
    elif shards not in (None, limits.SHARDS):
        raise invalid("shards", f"a queue of the kind {kind!r} has no shards")
    if lanes is not UNSET:
        given["lanes"] = lanes
    for name in wanted.__struct_fields__:
        if name in ("shards", "lanes"):
            continue
        value = getattr(wanted, name)
        if value is UNSET:
            continue
        if name in DURATIONS:
            given[f"{name}_ms"] = None if value is None else in_ms(value)
        else:
            given[name] = value
    return given


def names_of(kind: str) -> list[str]:
    """The settings that a queue of this kind has, as this door calls them."""
    absent = {name.removesuffix("_ms") for name in NOT_OF_KIND[kind]}
    absent.add("lanes" if kind == TIMELINE else "shards")
    return [name for name in shapes.Settings.__struct_fields__ if name not in absent]


def value_of(settings: QueueSettings, name: str) -> Any:
    if name == "shards":
        return settings.lanes
    if name not in DURATIONS:
        return getattr(settings, name)
    duration_ms = getattr(settings, f"{name}_ms")
    return None if duration_ms is None else in_seconds(duration_ms)


def _fields(queue: Queue) -> dict[str, Any]:
    settings, names = queue.settings, names_of(queue.settings.kind)
    fixed = {name.removesuffix("_ms") for name in settings.fixed}
    return {
        "name": queue.name,
        "kind": settings.kind,
        "settings": shapes.Settings(**{name: value_of(settings, name) for name in names}),
        "changeable": [name for name in names if name in CHANGEABLE and name not in fixed],
        "fixed": [name for name in names if name not in CHANGEABLE or name in fixed],
        "created_at": rfc3339(queue.created_at_ms),
        "changed_at": rfc3339(queue.changed_at_ms),
    }


async def _said(service: Service, queue: Queue) -> shapes.QueueSaid:
    try:
        warnings = await _warnings(service, queue)
    except StoreError:
        # It is made or changed by now: that the other queue cannot be looked for must not say otherwise.
        warnings = []
    return shapes.QueueSaid(**_fields(queue), warnings=warnings)


def _statistics(stats: Stats) -> shapes.Statistics:
    age_ms = stats.oldest_age_ms
    return shapes.Statistics(
        stats.visible,
        stats.in_flight,
        stats.delayed,
        stats.dead,
        # Clocks of servers differ a little: a message put through another may seem to come from the future.
        None if age_ms is None else in_seconds(max(0, age_ms)),
        stats.exact,
    )
