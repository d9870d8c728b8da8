"""Peek: see what could be received, without receiving it."""

from __future__ import annotations

from collections.abc import Container

from angelhair.engine.fifo.epoch import look
from angelhair.engine.fifo.judge import judge, present
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.read import bodies_of, read_ahead, read_on
from angelhair.engine.fifo.state import State
from angelhair.model import MessageId, Peeked


async def visible(lane: Lane, most: int, besides: Container[str] = ()) -> list[tuple[str, int]]:
    """Groups and numbers of messages that could be received now, group by group, each in order; of other groups than
    those that are `besides`."""
    marks = await read_on(lane)
    await look(lane)
    while True:
        at = await present(lane, marks)
        found: list[tuple[str, int]] = []
        for group in lane.view.index.in_order():
            if len(found) >= most:
                break
            if group in besides:
                continue
            state = lane.view.states.get(group, State())
            found += [(group, number) for number in judge(lane, group, state, at, most - len(found)).deliverable]
        if len(found) >= most or not await read_ahead(lane):
            return found


async def peek(lane: Lane, most: int) -> list[Peeked]:
    found = await visible(lane, most)
    rows = await bodies_of(lane, [number for _, number in found])
    peeked = []
    for group, number in found:
        row = rows.get(number)
        if row is not None:
            body, attributes, origin, enqueued_at = (
                row.get(name) for name in ("body", "attributes", "origin", "enqueued_at")
            )
            entry = lane.view.states.get(group, State()).touched.get(number)
            peeked.append(
                Peeked(
                    MessageId(lane.number, number),
                    body if isinstance(body, bytes) else b"",
                    attributes if isinstance(attributes, str) else None,
                    entry.delivery if entry else 0,
                    enqueued_at if isinstance(enqueued_at, int) else 0,
                    origin if isinstance(origin, str) else None,
                    group,
                )
            )
    return peeked
