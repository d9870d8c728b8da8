"""Flags of a conditional write that is decided, and whose commit has reached one replica (row 19 of docs/cassandra.md).

A read that meets it there gives the others the flags, which always come along, and of the rows those that it asked for:
of a span of other rows, or of one that ends at its limit, none. So the flag that is raised with every change of a
partition is seen, and the rows that came with it are not; and who rests on the flag rests on rows that were before.
The simulator shows the same (`Cluster.met`, `_show_change`)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from angelhair.engine import accounts, places
from angelhair.engine.accounts import Key
from angelhair.engine.engine import Engine
from angelhair.engine.schema import ACCESS_KEYS, ACCOUNTS, SUBSCRIPTIONS
from angelhair.engine.store import Slice, Span
from angelhair.engine.topics.values import QUEUE, NewSubscription, Subscription, TopicSettings, queue_endpoint
from angelhair.errors import InvalidRequest, SubscriptionNotFound
from angelhair.server.keyring import Keyring
from angelhair.settings import ACCOUNT
from tests.attacks.half_committed import HalfCommitted
from tests.attacks.minority import never
from tests.attacks.worlds import SteppedClock, new_world, played


class HalfCommittedByPage(HalfCommitted):
    """Of what lies behind a full page nothing was asked for, so that nobody is given it."""

    def _seen(self, span: Span, found: Slice) -> Slice:
        if span.limit is not None and self.near(span) and span.partition in self._before:
            page = list(self._before[span.partition].rows)[: span.limit]
            asked = span._replace(last=page[-1].key) if page else span
            rows = [row for row in found.rows if not page or row.key <= page[-1].key]  # type: ignore[operator]
            super()._seen(asked, found._replace(rows=rows))
            near, self.near = self.near, never
            try:
                return super()._seen(span, found)
            finally:
                self.near = near
        return super()._seen(span, found)


class InOrder:
    """Identities that are drawn in the order of their names."""

    def __init__(self, name: str) -> None:
        self._name, self._drawn = name, 0

    def fresh(self) -> str:
        self._drawn += 1
        return f"{self._name}{self._drawn:031d}"

    def secret(self) -> bytes:
        return self.fresh().encode()


def limited(span: Span) -> bool:
    return span.limit is not None


class Quiet:
    def key_changed(self, key: Any, what: str) -> None:
        pass


def key(name: str) -> Key:
    return Key(name, "secret", ACCOUNT, None, None, True, 0)


# --- keys and accounts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_key_that_was_disabled_is_not_honoured_for_ever(near: bool) -> None:
    """A server asks for the version of the keys, and for as little as it can beside it; if that has grown it reads all
    of them, and remembers them under the version that it sees then. Here that is newer than the rows: it takes what it
    has for the newest there is, and the disabled key signs requests until some other key is changed."""
    _, store = new_world()
    for name in ("A", "B"):
        await accounts.create_key(store, key(name))
    half = HalfCommittedByPage(store, ACCESS_KEYS)
    keyring = Keyring(half.seen(), Quiet())  # type: ignore[arg-type]
    await keyring.load()
    disabling = asyncio.create_task(accounts.enable_key(half.writer(), "B", False))
    half.lands = asyncio.Event()
    await half.reached.wait()
    half.near = limited if near else never
    await keyring.look_for("another")
    half.near = never
    half.lands.set()
    assert not (await disabling).enabled
    await keyring.look_for("another")
    known = keyring.find("B")
    assert known is not None and not known.enabled


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_server_that_starts_does_not_honour_a_disabled_key_for_ever(near: bool) -> None:
    """Another server has asked for the version."""
    _, store = new_world()
    for name in ("A", "B"):
        await accounts.create_key(store, key(name))
    half = HalfCommittedByPage(store, ACCESS_KEYS)
    disabling = asyncio.create_task(accounts.enable_key(half.writer(), "B", False))
    half.lands = asyncio.Event()
    await half.reached.wait()
    half.near = limited if near else never
    await accounts.keys_version(half.seen())
    half.near = never
    keyring = Keyring(half.seen(), Quiet())  # type: ignore[arg-type]
    await keyring.load()
    half.lands.set()
    await disabling
    await keyring.look_for("another")
    known = keyring.find("B")
    assert known is not None and not known.enabled


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_key_that_was_deleted_is_not_brought_back_in_part(near: bool) -> None:
    """It would be there without its secret, and no server could read the keys any more."""
    _, store = new_world()
    for name in ("A", "B"):
        await accounts.create_key(store, key(name))
    half = HalfCommittedByPage(store, ACCESS_KEYS)
    with pytest.raises(asyncio.CancelledError):
        await accounts.delete_key(half.writer(), "B")
    half.near = limited if near else never
    await accounts.keys_version(half.seen())
    half.near = never
    with pytest.raises(InvalidRequest):
        await accounts.enable_key(half.seen(), "B", False)
    assert [found.id for found in (await accounts.read_keys(store)).keys] == ["A"]


@pytest.mark.parametrize("near", [False, True])
@played
async def test_two_accounts_do_not_get_one_name(near: bool) -> None:
    """Whoever made the first one died. What met it was a look at another account, such as one takes whose change was
    refused."""
    clock, store = new_world()
    half = HalfCommittedByPage(store, ACCOUNTS)
    with pytest.raises(asyncio.CancelledError):
        await accounts.create_account(half.writer(), "shop", "2" * 12, InOrder("a"), clock.now())
    half.near = (lambda span: True) if near else never
    await half.seen().read([Span(places.ALL_ACCOUNTS, "1" * 12, "1" * 12)])
    half.near = never
    with pytest.raises(InvalidRequest):
        await accounts.create_account(half.seen(), "shop", "3" * 12, InOrder("b"), clock.now())
    assert [account.name for account in await accounts.read_accounts(store)] == ["default", "shop"]


# --- subscriptions --------------------------------------------------------------------------------------------------


class News:
    """A topic with a subscription that goes before all others: no look at the topic asks for more than that one."""

    def __init__(self) -> None:
        self.clock, self.store = new_world()
        self.half = HalfCommittedByPage(self.store, SUBSCRIPTIONS)

    async def make(self) -> None:
        engine = engine_of(self.store, "a", self.clock)
        await engine.topics.create("shop", "news", TopicSettings())
        await engine.topics.subscribe("shop", "news", to("first"))

    async def endpoints(self) -> list[str]:
        engine = engine_of(self.store, "z", self.clock)
        return [one.endpoint for one in await engine.topics.subscriptions("shop", "news")]


def engine_of(store: Any, name: str, clock: SteppedClock) -> Engine:
    return Engine(store, InOrder(name), clock)


def to(queue: str) -> NewSubscription:
    return NewSubscription(QUEUE, queue_endpoint("shop", queue))


@pytest.mark.parametrize("near", [False, True])
@played
async def test_nobody_is_subscribed_twice_by_trying_again(near: bool) -> None:
    """Whoever subscribed it sleeps, and its client tries again elsewhere. That one looks first whether the topic lives,
    by the flags and the first row; then it reads who is subscribed, and writes on the condition that the flag `edits`
    is what it read. It is: the flag was there before the row, and the queue is subscribed twice from then on."""
    news = News()
    await news.make()
    half, half.lands = news.half, asyncio.Event()
    one, other = engine_of(half.writer(), "c", news.clock), engine_of(half.seen(), "d", news.clock)
    trying = asyncio.create_task(one.topics.subscribe("shop", "news", to("jobs")))
    await half.reached.wait()
    half.near = limited if near else never
    await other.topics.subscribe("shop", "news", to("jobs"))
    half.lands.set()
    await trying
    assert await news.endpoints() == [queue_endpoint("shop", "first"), queue_endpoint("shop", "jobs")]


@pytest.mark.parametrize("near", [False, True])
@played
async def test_what_was_unsubscribed_is_not_brought_back_by_who_changes_it(near: bool) -> None:
    """It is confirmed that nothing goes there any more, and everything did again."""
    news = News()
    await news.make()
    half, half.lands = news.half, asyncio.Event()
    one, other = engine_of(half.writer(), "c", news.clock), engine_of(half.seen(), "d", news.clock)
    made, _ = await engine_of(news.store, "b", news.clock).topics.subscribe("shop", "news", to("jobs"))
    ending = asyncio.create_task(one.topics.unsubscribe("shop", "news", made.id))
    await half.reached.wait()
    half.near = limited if near else never
    with pytest.raises(SubscriptionNotFound):
        await other.topics.rewrite_subscription("shop", "news", made.id, lambda was: replace(was, raw=True))
    half.lands.set()
    assert await ending
    assert await news.endpoints() == [queue_endpoint("shop", "first")]


@pytest.mark.parametrize("near", [False, True])
@played
async def test_who_changes_a_subscription_keeps_what_others_have_changed(near: bool) -> None:
    news = News()
    await news.make()
    half, half.lands = news.half, asyncio.Event()
    one, other = engine_of(half.writer(), "c", news.clock), engine_of(half.seen(), "d", news.clock)
    made, _ = await engine_of(news.store, "b", news.clock).topics.subscribe("shop", "news", to("jobs"))

    def filtered(was: Subscription) -> Subscription:
        return replace(was, filter_policy='{"kind": ["order"]}')

    changing = asyncio.create_task(one.topics.rewrite_subscription("shop", "news", made.id, filtered))
    await half.reached.wait()
    half.near = limited if near else never
    await other.topics.rewrite_subscription("shop", "news", made.id, lambda was: replace(was, raw=True))
    half.lands.set()
    await changing
    found = await other.topics.find_subscription("shop", "news", made.id)
    assert (found.raw, found.filter_policy) == (True, '{"kind": ["order"]}')
