"""What a server can do with topics: `Engine.topics`. Publishing goes through `batching`, and so does the rest of a
publication's way (`batching/fanout.py`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from angelhair import limits
from angelhair.clock import Clock
from angelhair.engine import places
from angelhair.engine.identities import Identities
from angelhair.engine.store import Slice, Span, Store
from angelhair.engine.topics import catalog, filters, subscriptions
from angelhair.engine.topics.postings import fits_into_envelopes, outbox_message, posting_of, targets_of
from angelhair.engine.topics.rows import topic_of
from angelhair.engine.topics.subscriptions import Subscribed, subscribed
from angelhair.engine.topics.values import (
    NewSubscription,
    Publication,
    Subscription,
    SubscriptionRewrite,
    Topic,
    TopicRewrite,
    TopicSettings,
)
from angelhair.errors import InvalidRequest, SubscriptionNotFound, TopicNotFound
from angelhair.model import FIFO, NewMessage, validate_name, validate_topic_name, validate_whole

NO_NOTES: Mapping[str, Any] = {}

Accepts = Callable[[str | None, str, Mapping[str, Any], str], bool]
"""Whether a filter policy, in its scope, lets a message with these attributes and this body pass."""


class Prepared(list[tuple[str, NewMessage | None] | InvalidRequest]):
    """For each publication its id, if it has no key, and the outbox's message, None when it goes to nobody; or why it
    is refused. `topic` is what it was read as."""

    topic: Topic


class Topics:
    def __init__(self, store: Store, identities: Identities, clock: Clock, accepts: Accepts = filters.accepts) -> None:
        self._store = store
        self._identities = identities
        self._clock = clock
        self._accepts = accepts
        self._incarnations: OrderedDict[tuple[str, str], str] = OrderedDict()
        """By account and name; it may be old, and what is read says so."""

    # --- topics -------------------------------------------------------------------------------------------------------

    async def create(
        self, account: str, name: str, settings: TopicSettings, notes: Mapping[str, Any] = NO_NOTES
    ) -> tuple[Topic, bool]:
        """The topic, and whether it was made now. Raises `TopicExists` when it is there with other settings."""
        _check(account, name)
        settings.validated()
        return await catalog.create(self._store, account, name, settings, notes, self._identities, self._clock.now())

    async def find(self, account: str, name: str) -> Topic:
        _check(account, name)
        return await catalog.find(self._store, account, name)

    async def list(
        self, account: str, prefix: str = "", after: str | None = None, most: int = limits.LIST_TOPICS
    ) -> tuple[list[str], bool]:
        """Names of this account's topics in order, and whether there are more."""
        validate_name("account", account)
        validate_whole("most", most, 1, limits.LIST_TOPICS)
        return await catalog.list_names(self._store, account, prefix, after, most)

    async def rewrite(self, account: str, name: str, rewrite: TopicRewrite) -> Topic:
        """Changes a topic by what it is: `rewrite` is asked again when somebody else was faster."""
        _check(account, name)
        return await catalog.change(self._store, account, name, rewrite, self._clock.now())

    async def delete(self, account: str, name: str) -> None:
        _check(account, name)
        await catalog.delete(self._store, account, name, self._clock.now())

    # --- subscriptions ------------------------------------------------------------------------------------------------

    async def subscribe(self, account: str, name: str, wanted: NewSubscription) -> tuple[Subscription, bool]:
        """The subscription, and whether it was made now: an endpoint is subscribed once, as it was at first."""
        topic = await self.find(account, name)
        return await subscriptions.subscribe(self._store, topic, wanted, self._identities, self._clock.now())

    async def subscriptions(self, account: str, name: str) -> Sequence[Subscription]:
        """All of them, in the order of their ids."""
        _, found = await self.read(account, name)
        return found.subscriptions

    async def find_subscription(self, account: str, name: str, subscription_id: str) -> Subscription:
        for one in await self.subscriptions(account, name):
            if one.id == subscription_id:
                return one
        raise SubscriptionNotFound(name, subscription_id)

    async def rewrite_subscription(
        self, account: str, name: str, subscription_id: str, rewrite: SubscriptionRewrite
    ) -> Subscription:
        topic = await self.find(account, name)
        return await subscriptions.change(self._store, topic, subscription_id, rewrite)

    async def unsubscribe(self, account: str, name: str, subscription_id: str) -> bool:
        """False when there is no such subscription."""
        topic = await self.find(account, name)
        return await subscriptions.unsubscribe(self._store, topic, subscription_id)

    # --- publishing ---------------------------------------------------------------------------------------------------

    async def read(self, account: str, name: str) -> tuple[Topic, Subscribed]:
        """The topic and who is subscribed, as it is now: nothing of this comes out of a memory."""
        _check(account, name)
        key = (account, name)
        row = Span(places.account_topics(account), name, name)
        hint = self._incarnations.get(key)
        found: Slice | None = None
        if hint is None:
            (rows,) = await self._store.read([row])
        else:
            rows, found = await self._store.read([row, Span(places.subscriptions(hint))])
        if not rows.rows:
            self._incarnations.pop(key, None)
            raise TopicNotFound(account, name)
        topic = topic_of(account, rows.rows[0])
        if found is None or topic.incarnation != hint:
            (found,) = await self._store.read([Span(places.subscriptions(topic.incarnation))])
        self._incarnations[key] = topic.incarnation
        self._incarnations.move_to_end(key)
        while len(self._incarnations) > limits.REMEMBERED_TOPICS:
            self._incarnations.popitem(last=False)
        return topic, subscribed(topic, found)

    async def prepare(self, account: str, name: str, publications: Sequence[Publication]) -> Prepared:
        """Messages for the outbox, each with those who are subscribed now and want it (R16)."""
        topic, (_, everybody) = await self.read(account, name)
        now_ms = self._clock.now().wall_ms
        prepared = Prepared()
        prepared.topic = topic
        for publication in publications:
            publication_id = publication.id or self._identities.fresh()
            try:
                posting = posting_of(topic, publication, publication_id, now_ms)
            except InvalidRequest as error:
                # A bad publication concerns nobody but itself.
                prepared.append(error)
                continue
            targets = targets_of([one for one in everybody if self._wants(one, publication)])
            # A fifo topic has numbers to give and keys to remember, whoever is subscribed.
            goes = bool(targets) or topic.settings.kind == FIFO
            message = outbox_message(topic, posting, targets) if goes else None
            if message is not None and len(message.body) > limits.BODY_BYTES:
                prepared.append(InvalidRequest("body", f"and attributes are too long for {len(targets)} subscriptions"))
            elif any(not target.raw for target in targets) and not fits_into_envelopes(publication):
                prepared.append(InvalidRequest("body", "is too long for subscriptions that are not raw"))
            else:
                prepared.append((publication_id, message))
        return prepared

    def _wants(self, subscription: Subscription, publication: Publication) -> bool:
        if subscription.filter_policy is None:
            return True
        text = publication.body.decode(errors="replace")
        return self._accepts(subscription.filter_policy, subscription.filter_scope, publication.values, text)

    # --- background ---------------------------------------------------------------------------------------------------

    async def bury_step(self) -> bool:
        """Forgets who was subscribed to topics that are gone. True when there may be more."""
        return await catalog.bury_topics(self._store)


def _check(account: str, name: str) -> None:
    validate_name("account", account)
    validate_topic_name(name)
