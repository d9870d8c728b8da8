"""The index that skips empty time (R9): which parts of a shard hold messages, in two levels.

The upper level has a row for each span of parts, the lower one a row for each part. Both are durable before the put
that needs them is confirmed, and remembered, so that one row serves many puts. A row's key ends with when it expires,
rounded up: a longer life is another row, and none is ever written again with a shorter one.
"""

from __future__ import annotations

from typing import NamedTuple

from angelhair import limits
from angelhair.engine.store import Partition, Row, Span, Write
from angelhair.engine.timeline.lane import Line

FOREVER = 0
"""In a row's key: it does not expire."""


class Needed(NamedTuple):
    """A row of the index that is to be there before a put is confirmed."""

    group: str
    """Those of it are remembered together, a bit for each: a month of minutes would be many names."""
    bit: int
    write: Write

    @property
    def name(self) -> str:
        return f"{self.group}/{self.bit}"


def longest_ms(line: Line) -> int:
    """For how long a part's messages can be kept from now on: the index must outlive them, rounded up twice."""
    return limits.TTL_MAXIMUM_SECONDS * 1_000 - 2 * _span_unit(line)


def latest_ms(line: Line) -> int:
    """Until when they can be kept, however soon they are put."""
    return limits.TTL_LATEST_MS - 2 * _span_unit(line)


def needed(line: Line, lane: int, part: int, until_ms: int | None, now_ms: int) -> list[Needed]:
    """What is not known to be there for messages of this part that live until then."""
    span, place = divmod(part, limits.TIMELINE_SPAN_PARTS)
    above, below = _ends(until_ms, _span_unit(line)), _ends(until_ms, line.settings.part_ms)
    # Parts that live equally long after their time are of one group; the lives of a span are some sixteen.
    first = 0 if until_ms is None else span * limits.TIMELINE_SPAN_PARTS // limits.TIMELINE_SPAN_LIFE_PARTS
    lives = FOREVER if until_ms is None else below - part
    rows = (
        Needed(f"{span}", above - first, _write(line.spans(lane), f"{span:010d}", above, _span_unit(line), now_ms)),
        Needed(
            f"{span}+{lives}", place,
            _write(line.parts(lane, span), f"{part:012d}", below, line.settings.part_ms, now_ms),
        ),
    )
    view = line.view(lane)
    return [row for row in rows if not view.knows(row.group, row.bit)]


def _span_unit(line: Line) -> int:
    return limits.TIMELINE_SPAN_LIFE_PARTS * line.settings.part_ms


def _ends(until_ms: int | None, unit_ms: int) -> int:
    """In units, when the row goes that leads to what lives until then."""
    return FOREVER if until_ms is None else until_ms // unit_ms + 2


def _write(partition: Partition, what: str, ends: int, unit_ms: int, now_ms: int) -> Write:
    # Clocks differ by seconds at most where they are believed, and a unit is a minute at least.
    ttl_seconds = None if ends == FOREVER else max(1, -((now_ms - ends * unit_ms) // 1_000))
    return Write(partition, [Row(f"{what}.{ends:012d}", {"until": ends * unit_ms})], ttl_seconds)


class Found(NamedTuple):
    parts: list[int]
    reached: int | None
    """These are all up to this part; None: all that there are."""


async def parts_between(line: Line, lane: int, first: int, last: int | None, most: int) -> Found:
    """Parts with messages from `first` on, in order; `last` None looks to the end of time."""
    if last is not None and last - first < limits.TIMELINE_DIRECT_PARTS:
        return Found(list(range(first, last + 1)), None)
    found: list[int] = []
    span: int | None = first // limits.TIMELINE_SPAN_PARTS
    last_span = None if last is None else last // limits.TIMELINE_SPAN_PARTS
    while span is not None:
        spans, more = await _read(line, line.spans(lane), f"{span:010d}", last_span, "010d")
        for each in spans:
            found += await _parts_of(line, lane, each, first, last, most - len(found))
            if len(found) >= most:
                return Found(found[:most], found[most - 1])
        span = spans[-1] + 1 if more else None
    return Found(found, None)


async def _parts_of(line: Line, lane: int, span: int, first: int, last: int | None, most: int) -> list[int]:
    parts: list[int] = []
    while len(parts) < most:
        read, more = await _read(line, line.parts(lane, span), f"{first:012d}", last, "012d")
        parts += read
        if not more:
            break
        first = read[-1] + 1
    return parts[:most]


async def _read(line: Line, partition: Partition, first: str, last: int | None, width: str) -> tuple[list[int], bool]:
    """Numbers, each once. The last one of a page may have further rows; they say nothing new."""
    end = None if last is None else f"{last:{width}}.~"
    (found,) = await line.store.read([Span(partition, first, end, limits.TIMELINE_INDEX_ROWS)])
    return list(dict.fromkeys(int(str(row.key).partition(".")[0]) for row in found.rows)), found.more
