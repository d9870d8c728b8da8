"""Which topics an account has (R6, R16).

A topic is a row of its account. Who is subscribed lies in a partition of the topic's incarnation, which is there before
the topic's row: its flag `edits` says that the topic lives, `deleted` that it does not any more. So a late copy of a
creation, or of a subscription, finds that it is too late; and a topic made again under its name sees none of the old
subscriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.identities import Identities
from angelhair.engine.settling import begun, change_one, change_settled, expect_decided, not_denied
from angelhair.engine.store import Applied, Change, ChangeOutcome, Refused, Row, RowChange, Span, Store, Values
from angelhair.engine.topics.rows import topic_of, topic_values
from angelhair.engine.topics.values import Topic, TopicRewrite, TopicSettings, validate_notes
from angelhair.errors import TopicExists, TopicNotFound, Unavailable


async def load(store: Store, account: str, name: str) -> Topic | None:
    """The topic as its row has it: perhaps one that is being deleted, or a late copy of one that was."""
    (found,) = await store.read([Span(places.account_topics(account), name, name)])
    return topic_of(account, found.rows[0]) if found.rows else None


def alive(flags: Values) -> bool:
    """Whether the topic with these flags of its subscriptions is one."""
    return flags.get("edits") is not None and flags.get("deleted") is None


async def lives(store: Store, topic: Topic) -> bool:
    (found,) = await store.read([Span(places.subscriptions(topic.incarnation), limit=1)])
    return alive(found.flags)


async def find(store: Store, account: str, name: str) -> Topic:
    topic = await load(store, account, name)
    if topic is None or not await lives(store, topic):
        raise TopicNotFound(account, name)
    return topic


async def list_names(
    store: Store, account: str, prefix: str, after: str | None, most: int
) -> tuple[list[str], bool]:
    """Names in order, from the one after `after` on; and whether there are more."""
    first = max(prefix, after + "\x00" if after is not None else "") or None
    last = prefix + "\U0010ffff" if prefix else None
    span = Span(places.account_topics(account), first, last, most + 1)
    (found,) = await store.read([span])
    # A row without a topic is a late copy: it is left out as soon as somebody makes or deletes the topic.
    names = [str(row.key) for row in found.rows]
    return names[:most], len(names) > most


async def create(
    store: Store, account: str, name: str, settings: TopicSettings, notes: Mapping[str, Any], identities: Identities,
    now: Moment,
) -> tuple[Topic, bool]:
    """The topic, and whether it was made now. An existing one with the same settings is returned as it is."""
    validate_notes(notes)
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.PUT_ROUNDS):
            existing = await load(store, account, name)
            if existing is not None:
                if await lives(store, existing):
                    return _same_or_raise(existing, settings), False
                await finish_deleting(store, existing)
            topic = Topic(account, name, identities.fresh(), settings, dict(notes), 1, now.wall_ms, now.wall_ms)
            if not await _begin(store, topic.incarnation):
                continue
            row = RowChange(name, {"incarnation": None}, topic_values(topic))
            (outcome,) = await change_settled(store, [Change(places.account_topics(account), [row])], unsure)
            if isinstance(expect_decided(outcome), Applied) or _incarnation_in(outcome, name) == topic.incarnation:
                return topic, True
            await store.drop([places.subscriptions(topic.incarnation)])
        raise Unavailable("the topic's name is being taken and freed by others all the time")


async def _begin(store: Store, incarnation: str) -> bool:
    """Sent once: when nobody knows whether it arrived, this incarnation is none; a copy that came when the topic was
    gone would bring it back."""
    beginning = Change(places.subscriptions(incarnation), expect_flags={"edits": None}, set_flags={"edits": 0})
    (outcome,) = await store.change([beginning])
    if isinstance(outcome, Unavailable):
        raise outcome
    return isinstance(outcome, Applied)


async def change(store: Store, account: str, name: str, rewrite: TopicRewrite, now: Moment) -> Topic:
    unsure: set[int] = set()
    with not_denied(unsure):
        for _ in range(limits.PUT_ROUNDS):
            topic = await find(store, account, name)
            changes, notes = rewrite(topic)
            validate_notes(notes)
            changed = replace(
                topic, settings=topic.settings.changed(changes), notes=dict(notes), version=topic.version + 1,
                changed_at_ms=now.wall_ms,
            )
            expect: Values = {"incarnation": topic.incarnation, "version": topic.version}
            row = RowChange(name, expect, topic_values(changed))
            (outcome,) = await change_settled(store, [Change(places.account_topics(account), [row])], unsure)
            expect_decided(outcome)
            if isinstance(outcome, Applied) or (isinstance(outcome, Refused) and _is(outcome, changed)):
                return changed
        raise Unavailable("the topic is being changed by others all the time")


async def delete(store: Store, account: str, name: str, now: Moment) -> None:
    """Frees the name. What was published before reaches those who were subscribed; who is subscribed is forgotten
    later, by `bury_topics`."""
    topic = await load(store, account, name)
    if topic is None:
        raise TopicNotFound(account, name)
    await _dig_grave(store, topic, now.wall_ms)
    with begun():
        await finish_deleting(store, topic)


async def finish_deleting(store: Store, topic: Topic) -> None:
    """Anyone may go on with a deletion that its server did not live to finish."""
    await _dig_grave(store, topic, await store.time_ms())
    mark = Change(
        places.subscriptions(topic.incarnation), expect_flags={"deleted": None}, set_flags={"deleted": 1}
    )
    expect_decided(await change_one(store, mark))
    row = RowChange(topic.name, {"incarnation": topic.incarnation}, None)
    expect_decided(await change_one(store, Change(places.account_topics(topic.account), [row])))


async def _dig_grave(store: Store, topic: Topic, now_ms: int) -> None:
    values: Values = {"account": topic.account, "name": topic.name, "buried_at": now_ms}
    row = RowChange(topic.incarnation, {}, values)
    expect_decided(await change_one(store, Change(places.TOPIC_GRAVEYARD, [row])))


async def bury_topics(store: Store) -> bool:
    """Forgets who was subscribed to a deleted topic. True when there may be more to do."""
    (graves,) = await store.read([Span(places.TOPIC_GRAVEYARD, limit=limits.GRAVES)])
    for grave in graves.rows:
        if await _is_dead(store, grave):
            (outcome,) = await store.drop([places.subscriptions(str(grave.key))])
            if outcome is None:
                await change_one(store, Change(places.TOPIC_GRAVEYARD, [RowChange(str(grave.key), {}, None)]))
            return True
    return False


async def _is_dead(store: Store, grave: Row) -> bool:
    incarnation, buried_at = str(grave.key), grave.values["buried_at"]
    topic = await load(store, str(grave.values["account"]), str(grave.values["name"]))
    if topic is None or topic.incarnation != incarnation:
        return True
    assert isinstance(buried_at, int)
    if await store.time_ms() - buried_at < limits.GRAVE_PATIENCE_MS:
        return False
    if not await lives(store, topic):
        await finish_deleting(store, topic)
        return True
    # Dug by somebody who then died before deleting anything: the topic lives, unless it is dug again right now.
    await change_one(store, Change(places.TOPIC_GRAVEYARD, [RowChange(incarnation, {"buried_at": buried_at}, None)]))
    return False


def _same_or_raise(existing: Topic, settings: TopicSettings) -> Topic:
    differing = tuple(
        setting.name
        for setting in fields(settings)
        if getattr(existing.settings, setting.name) != getattr(settings, setting.name)
    )
    if differing:
        raise TopicExists(existing.account, existing.name, differing)
    return existing


def _incarnation_in(outcome: ChangeOutcome, name: str) -> object:
    return outcome.rows.get(name, {}).get("incarnation") if isinstance(outcome, Refused) else None


def _is(outcome: Refused, topic: Topic) -> bool:
    """What refused us may have been our own first attempt."""
    found = outcome.rows.get(topic.name, {})
    return all(found.get(name) == value for name, value in topic_values(topic).items())
