"""Peek: see what could be received, without receiving it."""

from __future__ import annotations

from typing import NamedTuple

from angelhair import limits
from angelhair.engine.bucketed.examine import examine
from angelhair.engine.bucketed.first import split_origin
from angelhair.engine.bucketed.lane import Candidate, Lane, read_marks
from angelhair.engine.bucketed.opening import open_buckets
from angelhair.engine.bucketed.stretches import stretches
from angelhair.engine.schema import BODY_DATES
from angelhair.engine.store import Span
from angelhair.model import MessageId, Peeked


class Seen(NamedTuple):
    candidates: list[tuple[int, Candidate]]
    """Each with its bucket."""
    following: int | None
    """From which id on to look for more; None when there is nothing behind it."""


async def visible_candidates(
    lane: Lane, most: int, expiring: bool, opening: bool = False, first: int = 0
) -> Seen:
    """Up to `most` messages that could be received now, the lowest ids from `first` on, from a bounded number of
    buckets.

    With `opening`, buckets are opened, so that what was never delivered can be moved.
    """
    marks = await read_marks(lane)
    if marks.next_id == 0:
        return Seen([], None)
    found: list[tuple[int, Candidate]] = []
    looked = 0
    for bucket in range(max(marks.repair, lane.bucket_of(first)), lane.bucket_of(marks.next_id - 1) + 1):
        if bucket in lane.view.finished:
            continue
        if len(found) >= most or looked >= limits.PEEK_BUCKETS:
            following = bucket * lane.settings.bucket_size
            break
        looked += 1
        findings = await examine(lane, marks, bucket, expiring)
        if opening and findings.new:
            if not await open_buckets(lane, {bucket: findings.flags}):
                continue
            findings = await examine(lane, marks, bucket, expiring)
        if findings.flags.get("finished") is not None:
            # Remembered, so that the next look gets further.
            lane.view.remember_finished(bucket)
        else:
            found.extend((bucket, candidate) for candidate in sorted(findings.visible) if candidate.number >= first)
    else:
        following = None
    if len(found) > most:
        following = found[most][1].number
    return Seen(found[:most], following)


async def peek(lane: Lane, most: int, expiring: bool) -> list[Peeked]:
    found, _ = await visible_candidates(lane, most, expiring)
    by_bucket: dict[int, list[Candidate]] = {}
    for bucket, candidate in found:
        by_bucket.setdefault(bucket, []).append(candidate)
    peeked: list[Peeked] = []
    for bucket, candidates in by_bucket.items():
        near = stretches(lane, [candidate.number for candidate in candidates])
        bodies = await lane.store.read([Span(lane.bodies(bucket), first, last) for first, last in near])
        # After the bodies: who erases a message settles it first.
        states = await lane.store.read(
            [Span(lane.states(bucket), first, last, None, ("body", "delivery", "settled")) for first, last in near]
        )
        told = [row for part in states for row in part.rows]
        settled = {row.key for row in told if row.values.get("settled") is not None}
        born = {row.key: row.values for part in bodies for row in part.rows if row.key not in settled}
        changed = {row.key: row.values.get("body") for row in told}
        for candidate in candidates:
            values = born.get(candidate.number)
            if values is None:
                continue
            body = changed.get(candidate.number)
            body = values.get("body") if body is None else body
            if not isinstance(body, bytes):
                continue  # a part of a put that nobody has confirmed yet
            attributes, text = values.get("attributes"), values.get("origin")
            origin, at_first = split_origin(text if isinstance(text, str) else None)
            shown, enqueued_at = at_first or (MessageId(lane.number, candidate.number), candidate.enqueued_at)
            peeked.append(
                Peeked(
                    shown,
                    body,
                    attributes if isinstance(attributes, str) else None,
                    candidate.delivery or 0,
                    enqueued_at,
                    origin,
                    priority=lane.rank.priority,
                )
            )
    return peeked


async def origins(lane: Lane, bucket: int, candidates: list[Candidate]) -> dict[int, str]:
    """Where messages were moved here from, for those that were."""
    first, last = candidates[0].number, candidates[-1].number
    (bodies,) = await lane.store.read([Span(lane.bodies(bucket), first, last, None, (*BODY_DATES, "origin"))])
    texts = {int(row.key): text for row in bodies.rows if isinstance(text := row.values.get("origin"), str)}
    return {number: origin for number, text in texts.items() if (origin := split_origin(text)[0]) is not None}
