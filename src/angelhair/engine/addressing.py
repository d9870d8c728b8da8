"""Receipts name their messages: a verb on many of them runs once per lane."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from angelhair.engine import receipts
from angelhair.engine.catalog import Queue
from angelhair.engine.marks import QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.receipts import Receipt
from angelhair.errors import AngelhairError, InvalidReceipt, StaleReceipt, StoreError

AckOutcome = AngelhairError | None
L = TypeVar("L")
W = TypeVar("W")


async def by_lane(
    memory: Memory,
    account: str,
    name: str,
    items: Sequence[tuple[str, W]],
    lane_of: Callable[[Queue, int], L],
    run: Callable[[L, list[tuple[Receipt, W]]], Awaitable[list[AckOutcome]]],
) -> list[AckOutcome]:
    """Decodes receipts and runs a verb once per lane; a bad receipt concerns nobody but itself."""
    queue = await memory.find_queue(account, name, memory.clock.now())
    looked_again = False
    outcomes: list[AckOutcome] = [None] * len(items)
    groups: dict[tuple[str, int], tuple[L, list[int], list[tuple[Receipt, W]]]] = {}
    incarnation, secret = queue.incarnation, queue.secret
    for index, (text, wish) in enumerate(items):
        try:
            receipt = receipts.decode(incarnation, secret, text)
        except InvalidReceipt as error:
            outcomes[index] = error
            if looked_again or not receipts.is_well_formed(text):
                continue
            # Perhaps of a newer incarnation than we remember. Once is enough: what is read now is newer than these.
            looked_again = True
            memory.distrust(account, name)
            again = await memory.find_queue(account, name, memory.clock.now())
            if again.settings.kind != queue.settings.kind:
                # Made again as another kind: its receipts are not for us to read.
                continue
            queue = again
            incarnation, secret = queue.incarnation, queue.secret
            try:
                receipt = receipts.decode(incarnation, secret, text)
            except InvalidReceipt as still:
                outcomes[index] = still
                continue
        place = (incarnation, receipt.lane)
        if place not in groups:
            groups[place] = (lane_of(queue, receipt.lane), [], [])
        _, indices, group = groups[place]
        indices.append(index)
        group.append((receipt, wish))
    for lane, indices, group in groups.values():
        try:
            results = await run(lane, group)
        except StoreError as error:
            results = [error] * len(group)
        except QueueGone:
            memory.distrust(account, name)
            results = [StaleReceipt("the message is gone, with its queue or lane")] * len(group)
        for index, result in zip(indices, results, strict=True):
            outcomes[index] = result
    return outcomes
