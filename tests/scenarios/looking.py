"""How a story shows a queue: its marks, its buckets with their states, its messages by what became of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from angelhair.engine import places
from angelhair.engine.marks import Marks
from angelhair.engine.store import Slice, Span, Values
from angelhair.model import Delivery, DueId, MessageId
from tests.queues import World

SHOWN_MARKS = ("reader", "final", "settled", "repair", "floor")


def reference(identity: MessageId) -> str:
    """`20` in the first lane, `1-20` in another."""
    return str(identity.number) if identity.lane == 0 else str(identity)


def runs(whole_numbers: Iterable[int]) -> str:
    """`0 to 18, 20` for a set of numbers."""
    ordered = sorted(whole_numbers)
    parts: list[list[int]] = []
    for number in ordered:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        " and ".join(map(str, part)) if len(part) < 3 else f"{part[0]} to {part[-1]}" for part in parts
    )


def deliveries(got: list[Delivery], called: Callable[[MessageId], str] = reference) -> list[str]:
    """One line for each run of plain messages, one for each that has something to say."""
    if not got:
        return ["gets nothing"]
    lines = []
    plain: dict[tuple[int, int], list[int]] = {}
    for delivery in got:
        if delivery.body == b"-" and delivery.origin is None and not isinstance(delivery.id, DueId):
            plain.setdefault((delivery.id.lane, delivery.deliveries), []).append(delivery.id.number)
        else:
            origin = f", which came from {delivery.origin.partition('/')[2]}" if delivery.origin else ""
            text = f' "{delivery.body.decode()}"' if delivery.body != b"-" else ""
            lines.append(f"gets {called(delivery.id)}{text}, delivery {delivery.deliveries}{origin}")
    for (lane, count), found in plain.items():
        where = f" of lane {lane}" if lane else ""
        lines.append(f"gets {runs(found)}{where}, delivery {count}")
    return lines


async def look(world: World, name: str) -> list[str]:
    queue = await world.queue(name)
    lines = []
    for lane, status in queue.lanes.items():
        marks = await world.marks(name, lane)
        stage = {"open": "", "sealed": ", sealed"}.get(status, f", {status} for its history")
        shown = ", ".join(f"{mark} {getattr(marks, mark)}" for mark in SHOWN_MARKS)
        lines.append(f"lane {lane}{stage}: {shown}; the next id is {marks.next_id}")
        last = -(-marks.next_id // queue.settings.bucket_size)
        gone = min(marks.dropped, last)
        if gone:
            lines.append(f"  {'bucket' if gone == 1 else 'buckets'} {runs(range(gone))}: dropped")
        for bucket in range(gone, last):
            states, bodies = await world.store.read(
                [
                    Span(places.states(queue.incarnation, lane, bucket)),
                    Span(places.bodies(queue.incarnation, lane, bucket)),
                ]
            )
            first = bucket * queue.settings.bucket_size
            ids = range(first, min(first + queue.settings.bucket_size, marks.next_id))
            lines.append(f"  bucket {bucket}: {bucket_state(marks, bucket, states)}; {messages(ids, states, bodies)}")
    return lines


def bucket_state(marks: Marks, bucket: int, states: Slice) -> str:
    if bucket < marks.floor:
        return "about to be dropped"
    if states.flags.get("finished") is not None:
        return "finished"
    if states.flags.get("final") is not None:
        return "final"
    return "closed" if bucket < marks.reader else "open"


def messages(ids: range, states: Slice, bodies: Slice) -> str:
    written = {row.key for row in bodies.rows}
    known = {row.key: row.values for row in states.rows}
    kinds: dict[str, list[int]] = {}
    for number in ids:
        kinds.setdefault(_kind(number in written, known.get(number)), []).append(number)
    return ", ".join(f"{runs(found)} {kind}" for kind, found in kinds.items())


def _kind(written: bool, state: Values | None) -> str:
    if state is None:
        return "new" if written else "not written"
    settled = state.get("settled")
    if settled is not None:
        return {"dead": "moved to the dead letters"}.get(str(settled), str(settled))
    delivery = state.get("delivery")
    return "admitted" if delivery == 0 else "delivered" if delivery == 1 else f"delivered {delivery} times"
