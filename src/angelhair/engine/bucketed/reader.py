"""The reader: finds messages that were never delivered, bucket by bucket, and closes what it has passed (A5, A9).

Producers write in any order, so a reader meets ids above ones that are not there yet. It goes on past such gaps,
comes back to them while their bucket is open, and when the sequence has left the bucket behind it closes the bucket
and leaves the gaps to repair. A closed bucket is only a mark that moved: repair finds whatever the reader missed.
"""

from __future__ import annotations

from zlib import crc32

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.examine import kept_since, over_before
from angelhair.engine.bucketed.lane import Candidate, Lane, OpenBucket
from angelhair.engine.bucketed.opening import open_buckets
from angelhair.engine.making import maker
from angelhair.engine.marks import Marks, raise_mark
from angelhair.engine.store import Slice, Span, Values
from angelhair.errors import StoreError

_made = maker(Candidate)


async def read_new(lane: Lane, marks: Marks, needed: int, now: Moment, expiring: bool) -> None:
    """Brings candidates from the open buckets into the view, ahead of demand if bodies are small."""
    view = lane.view
    await _open_buckets(lane, marks)
    ahead = min(limits.PREFETCH_MESSAGES, limits.PREFETCH_BYTES // (view.typical_body_bytes or limits.FIRST_BODY_BYTES))
    wanted = max(needed, ahead)
    for bucket, opened in _in_order(lane):
        while spans := _spans(lane, marks, bucket, opened, wanted, now):
            position = opened.position
            try:
                found = await lane.store.read(spans)
            except BaseException:
                view.reopen(bucket)
                raise
            seen = lane.clock.now()
            expiring = expiring and lane.trusts_clock(seen)
            if view.open.get(bucket) is not opened:
                # Another receive of this server found that others claim here, and reads it anew.
                break
            # Another receive of this server may have read on from there meanwhile, and got the very same messages.
            overtaken = opened.position != position
            for span, part in zip(spans, found, strict=True):
                if not (overtaken and span.first == position):
                    wanted -= _take_in(lane, marks, bucket, opened, span, part, seen, expiring)
            if not overtaken or len(view.fresh) >= needed:
                break
        if wanted <= 0:
            break


def _in_order(lane: Lane) -> list[tuple[int, OpenBucket]]:
    """The open buckets, lowest first. After a meeting with another server those come first that by their numbers are
    ours, and where it was comes last, so that each goes on by itself."""
    view = lane.view
    buckets = sorted(view.open.items())
    if not view.reads_aside:
        return buckets
    view.reads_aside -= 1
    place, servers = lane.place()
    if servers == 1:
        # There are others, of which we have not heard: some other place than theirs, most likely.
        place, servers = crc32(lane.server.encode()), limits.OPEN_BUCKETS
    return sorted(buckets, key=lambda item: (item[0] == view.met_in, (item[0] - place) % servers))


async def _open_buckets(lane: Lane, marks: Marks) -> None:
    """Buckets from the reader mark up to the newest id; what others delivered there before is passed over."""
    if marks.next_id == 0:
        return
    newest = lane.bucket_of(marks.next_id - 1)
    wanted = range(marks.reader, min(newest, marks.reader + limits.OPEN_BUCKETS - 1) + 1)
    known = lane.view.open
    unknown = {bucket: known.get(bucket) for bucket in wanted if bucket not in known or known[bucket].stale}
    if not unknown:
        return
    found = await lane.store.read([Span(lane.states(bucket), columns=("delivery",)) for bucket in unknown])
    tokens = await open_buckets(lane, {bucket: part.flags for bucket, part in zip(unknown, found, strict=True)})
    for (bucket, before), states in zip(unknown.items(), found, strict=True):
        if bucket not in tokens or lane.view.open.get(bucket) is not before:
            # Dropped; or another receive of this server was faster, and may have read on.
            continue
        opened = OpenBucket(tokens[bucket], lane.first_of(bucket))
        # Others may claim here all the time: the patience for what is missing is not to begin anew each time.
        opened.passed_since_ms = before.passed_since_ms if before is not None else None
        lane.view.open[bucket] = opened
        for row in states.rows:
            number = int(row.key)
            if number > opened.position:
                opened.gaps.append((opened.position, number - 1))
            opened.position = number + 1
        opened.gaps_looked_ms = -limits.GAP_LOOK_MS
        if states.rows:
            # Claimed by others, perhaps long ago: what they say of its visibility is watched from now on (R5).
            lane.view.schedule(bucket, lane.clock.now().monotonic_ms)


def _spans(lane: Lane, marks: Marks, bucket: int, opened: OpenBucket, wanted: int, now: Moment) -> list[Span]:
    """The runs of ids to look for now: gaps if it is time, then what has not been looked for."""
    last = min(marks.next_id, lane.first_of(bucket + 1)) - 1
    runs: list[tuple[int, int]] = []
    if opened.gaps and now.monotonic_ms - opened.gaps_looked_ms >= limits.GAP_LOOK_MS:
        runs = opened.gaps[: limits.GAP_RUNS]
        # The next look goes on with the runs behind these.
        opened.gaps = opened.gaps[limits.GAP_RUNS :]
        opened.gaps_looked_ms = now.monotonic_ms
    if opened.position <= last:
        runs = [*runs, (opened.position, last)]
    return [Span(lane.bodies(bucket), first, end, wanted) for first, end in runs]


def _take_in(
    lane: Lane,
    marks: Marks,
    bucket: int,
    opened: OpenBucket,
    span: Span,
    part: Slice,
    now: Moment,
    expiring: bool,
) -> int:
    """Notes what a span brought; returns how many candidates came of it."""
    assert isinstance(span.first, int) and isinstance(span.last, int)
    expected = reached = span.first
    view = lane.view
    before = len(view.fresh)
    over = over_before(lane, now, expiring)
    for number, values in part.rows:
        assert isinstance(number, int)
        enqueued_at, visible_from, body = values.get("enqueued_at"), values.get("visible_from"), values.get("body")
        reached = number + 1
        if not (isinstance(enqueued_at, int) and isinstance(body, bytes)):
            # A part of a put that nobody has confirmed yet: a gap as if nothing were there.
            continue
        if number > expected:
            opened.gaps.append((expected, number - 1))
        expected = number + 1
        if values.get("keyed") is None:
            opened.plain.add(number)
        if number < marks.purged or (over is not None and enqueued_at <= over and (kept_since(values) or 0) <= over):
            continue
        if len(body) != view.typical_body_bytes:
            view.note_size(len(body))
        if isinstance(visible_from, int) and visible_from > now.wall_ms:
            remaining = min(visible_from - now.wall_ms, visible_from - enqueued_at)
            view.watch(number, -1, now)
            view.schedule(bucket, now.monotonic_ms + remaining)
        else:
            view.fresh.append((bucket, _candidate(opened, number, values, enqueued_at, body)))
    # Without a limit in the way the rest of the span was looked for and is not there.
    end = reached if part.more else span.last + 1
    if end > expected:
        opened.gaps.append((expected, end - 1))
    if span.first >= opened.position:
        opened.position = end
    elif end <= span.last:
        opened.gaps.append((end, span.last))
    return len(view.fresh) - before


def _candidate(opened: OpenBucket, number: int, values: Values, enqueued_at: int, body: bytes) -> Candidate:
    attributes, origin = values.get("attributes"), values.get("origin")
    return _made(
        (
            number,
            None,
            None,
            None,
            body,
            attributes if isinstance(attributes, str) else None,
            enqueued_at,
            origin if isinstance(origin, str) else None,
            opened.token,
        )
    )


async def close_passed(lane: Lane, marks: Marks, now: Moment) -> None:
    """Moves the reader mark over buckets that are handed out. A failure leaves it for the next receive."""
    # A sealed lane's last bucket gets no more ids: it is passed although it is not full.
    newest = lane.bucket_of(marks.next_id + lane.settings.bucket_size - 1 if lane.sealed else marks.next_id)
    reader = marks.reader
    waiting = {bucket for bucket, _ in lane.view.fresh}.union(lane.view.claiming) if reader < newest else set()
    for bucket, passed in lane.view.open.items():
        if bucket < newest and passed.gaps and passed.passed_since_ms is None:
            passed.passed_since_ms = now.monotonic_ms
    while reader < newest:
        opened = lane.view.open.get(reader)
        end = min(lane.first_of(reader + 1), marks.next_id)
        if opened is None or opened.stale or reader in waiting or opened.position < end:
            break
        since_ms = opened.passed_since_ms
        if opened.gaps and (since_ms is None or now.monotonic_ms - since_ms < limits.CLOSE_PATIENCE_MS):
            break
        if len(opened.plain) == lane.settings.bucket_size:
            lane.view.remember_full(reader)
        reader += 1
    if reader == marks.reader:
        return
    try:
        if await raise_mark(lane, "reader", marks.reader, reader):
            lane.view.forget_below(marks._replace(reader=reader))
    except StoreError:
        # The messages in hand matter more than a hint; the mark moves with a later receive.
        return
