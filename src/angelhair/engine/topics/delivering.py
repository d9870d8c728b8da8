"""What a publication is in the queue of a subscriber, and when it is tried again. Pure."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.topics.postings import HTTP_DELIVERIES, hidden_account, pack
from angelhair.engine.topics.values import QUEUE, Posting, Render, Target, queue_of
from angelhair.model import DATABAG, FIFO, TIMELINE, NewMessage


def queue_for(posting: Posting, target: Target) -> tuple[str, str]:
    """The account and the name of the queue that a target's messages are put into."""
    if target.protocol == QUEUE:
        return queue_of(target.endpoint)
    return hidden_account(posting.account), HTTP_DELIVERIES


def message_for(posting: Posting, target: Target, kind: str, resumed: bool, render: Render) -> NewMessage:
    """`kind`: of the queue. `resumed`: somebody tried before, and nobody knows how far that came (R10)."""
    if target.protocol != QUEUE:
        return NewMessage(pack(posting, [target]), key=_key(posting, target) if resumed else None)
    body, attributes = render(posting, target)
    if kind == FIFO:
        return NewMessage(body, attributes, key=posting.key, group=posting.group)
    if kind == TIMELINE:
        # It knows neither keys nor groups, and refuses them: what is spread again may come twice, and is not lost.
        return NewMessage(body, attributes)
    # What is spread for the first time needs no key, which costs two writes a message; a fifo topic's always has one.
    keyed = resumed or posting.kind == FIFO
    group = None if kind == DATABAG else posting.group
    return NewMessage(body, attributes, key=_key(posting, target) if keyed else None, group=group)


def _key(posting: Posting, target: Target) -> str:
    return f"~{posting.id}.{target.subscription}"


def pause_ms(deliveries: int) -> int:
    """Until the next try, after so many."""
    doublings = min(deliveries - 1, limits.FANOUT_PAUSE_MAXIMUM_MS.bit_length())
    return min(limits.FANOUT_PAUSE_MS << doublings, limits.FANOUT_PAUSE_MAXIMUM_MS)
