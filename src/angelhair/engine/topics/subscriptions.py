"""Who is subscribed to a topic.

Every change of the partition raises its flag `edits` by one and rests on what it was: a copy that comes late is
refused, and cannot bring back what was unsubscribed meanwhile. Nobody is subscribed twice, and the number is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.identities import Identities
from angelhair.engine.settling import change_settled, expect_decided, not_denied, read_landed
from angelhair.engine.store import Applied, Change, RowChange, Slice, Store, Values
from angelhair.engine.topics.catalog import alive
from angelhair.engine.topics.rows import subscription_of, subscription_values
from angelhair.engine.topics.values import NewSubscription, Subscription, SubscriptionRewrite, Topic
from angelhair.errors import InvalidRequest, SubscriptionNotFound, TopicNotFound, Unavailable

_OTHERS = "the topic's subscriptions are being changed by others all the time"


class Subscribed(NamedTuple):
    edits: int
    subscriptions: Sequence[Subscription]


def subscribed(topic: Topic, found: Slice) -> Subscribed:
    """What was read of a topic's subscriptions; raises if the topic has been deleted."""
    edits = found.flags.get("edits")
    if not alive(found.flags) or not isinstance(edits, int):
        raise TopicNotFound(topic.account, topic.name)
    return Subscribed(edits, [subscription_of(topic.incarnation, row) for row in found.rows])


async def _read_to_edit(store: Store, topic: Topic) -> Subscribed:
    return subscribed(topic, await read_landed(store, places.subscriptions(topic.incarnation), "edits"))


async def subscribe(
    store: Store, topic: Topic, wanted: NewSubscription, identities: Identities, now: Moment
) -> tuple[Subscription, bool]:
    """The subscription, and whether it was made now: an endpoint is subscribed once, as it was at first."""
    wanted.validated()
    made = Subscription(
        wanted.protocol, wanted.endpoint, wanted.raw, wanted.filter_policy, wanted.filter_scope,
        wanted.dead_letter_queue, wanted.status, wanted.notes, identities.fresh(), topic.incarnation,
        identities.secret().hex(), 1, now.wall_ms,
    )
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.RESERVE_ROUNDS):
            edits, known = await _read_to_edit(store, topic)
            for other in known:
                if (other.protocol, other.endpoint) == (wanted.protocol, wanted.endpoint):
                    return other, other.id == made.id
            if len(known) >= limits.SUBSCRIPTIONS:
                raise InvalidRequest("subscriptions", f"a topic has {limits.SUBSCRIPTIONS} at most")
            if await _edit(store, topic, edits, made.id, subscription_values(made), unsure):
                return made, True
        raise Unavailable(_OTHERS)


async def change(store: Store, topic: Topic, subscription_id: str, rewrite: SubscriptionRewrite) -> Subscription:
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.RESERVE_ROUNDS):
            edits, known = await _read_to_edit(store, topic)
            before = next((one for one in known if one.id == subscription_id), None)
            if before is None:
                raise SubscriptionNotFound(topic.name, subscription_id)
            changed = replace(rewrite(before), version=before.version + 1)
            changed.validated()
            if await _edit(store, topic, edits, subscription_id, subscription_values(changed), unsure):
                return changed
        raise Unavailable(_OTHERS)


async def unsubscribe(store: Store, topic: Topic, subscription_id: str) -> bool:
    """False when there is no such subscription."""
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.RESERVE_ROUNDS):
            edits, known = await _read_to_edit(store, topic)
            if all(one.id != subscription_id for one in known):
                return bool(unsure)
            if await _edit(store, topic, edits, subscription_id, None, unsure):
                return True
        raise Unavailable(_OTHERS)


async def _edit(
    store: Store, topic: Topic, edits: int, subscription_id: str, values: Values | None, unsure: set[int]
) -> bool:
    """Whether the row was written. False: somebody was faster, perhaps ourselves; look again."""
    change = Change(
        places.subscriptions(topic.incarnation),
        [RowChange(subscription_id, {}, values)],
        {"edits": edits, "deleted": None},
        {"edits": edits + 1},
    )
    (outcome,) = await change_settled(store, [change], unsure)
    return isinstance(expect_decided(outcome), Applied)
