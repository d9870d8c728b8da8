"""R16: whom a publication goes to, and in what: filters, endpoints that are no queues, and what is too long for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from angelhair import limits
from angelhair.batching.topics import on_their_way
from angelhair.engine.schema import STATES
from angelhair.engine.store import Change
from angelhair.engine.topics.filters import BY_ATTRIBUTES, BY_BODY, InvalidFilterPolicy, check
from angelhair.engine.topics.postings import FIFO_OUTBOX, HTTP_DELIVERIES, OUTBOX, hidden_account, unpack
from angelhair.engine.topics.values import (
    ATTRIBUTES,
    BODY,
    HTTPS,
    NewSubscription,
    Publication,
    Published,
    Target,
    TopicRewritten,
    TopicSettings,
    shown,
)
from angelhair.errors import InvalidRequest
from angelhair.model import FIFO, Ask, Delivery
from tests.faults import UNAVAILABLE
from tests.promises.topics import NEWS, Topics
from tests.queues import World

URL = "https://example.org/hook"
LONG = 2 * 1024 * 1024
"""Bytes that may be published; as JSON, where a control character has six, they are more than a message may have."""


async def subscribe_url(topics: Topics, topic: str = NEWS) -> str:
    wanted = NewSubscription(HTTPS, URL)
    made, _ = await topics.verbs.subscribe(topics.world.account, topic, wanted)
    return made.id


async def called(topics: Topics) -> list[tuple[str, str, list[Target], Any]]:
    """What somebody would send to endpoints: the publication's id and body, to whom, and its place."""
    found = []
    for delivery in await _taken(topics):
        posting, targets = unpack(delivery.body, delivery.id)
        found.append((posting.id, posting.body.decode(), targets, posting.place))
    return found


async def _taken(topics: Topics) -> list[Delivery]:
    account, engine = hidden_account(topics.world.account), topics.server.engine
    (found,) = await engine.receive(account, HTTP_DELIVERIES, [Ask(100)])
    assert isinstance(found, list)
    assert await engine.ack(account, HTTP_DELIVERIES, [delivery.receipt for delivery in found]) == [None] * len(found)
    return found


async def test_r16_what_goes_to_an_endpoint_waits_in_a_queue_of_its_own(world: World) -> None:
    """R16: so that an endpoint which does not answer holds nobody up; and it is on its way until it was delivered."""
    topics = Topics(world)
    await topics.make("a")
    subscription = await subscribe_url(topics)
    first, second = await topics.publish("one", "two")
    await topics.spread()
    assert await topics.bodies("a") == ["one", "two"]
    assert await topics.left() == 0 and await on_their_way(topics.server.engine, world.account) == 2
    target = Target(subscription, HTTPS, URL, True, None)
    assert await called(topics) == [(first.id, "one", [target], None), (second.id, "two", [target], None)]
    assert await on_their_way(topics.server.engine, world.account) == 0


async def test_r16_an_endpoint_of_a_fifo_topic_is_told_the_publications_place(world: World) -> None:
    """R12, R16: the queue in between gives other numbers, and what the publisher heard is what is passed on."""
    topics = Topics(world)
    await topics.make(fifo=True)
    await subscribe_url(topics)
    said = [(await topics.publish(body, group="g", key=body))[0] for body in ("one", "two")]
    await topics.spread(FIFO_OUTBOX)
    found = await called(topics)
    assert [(one, place) for one, _, _, place in found] == [(one.id, one.place) for one in said]


async def test_r16_what_is_spread_again_is_in_an_endpoints_queue_once_more_at_most(world: World) -> None:
    """R10, R16: who goes on where another died puts it under a key."""
    topics = Topics(world)
    await topics.make()
    await subscribe_url(topics)
    await topics.publish("one")
    for _ in range(3):
        dying = Topics(world)
        dying.server.store.next("change", STATES, UNAVAILABLE, when=_is_ack, times=100)
        assert await dying.fanout.step(world.account, OUTBOX) == 1
        world.wait(limits.OUTBOX_VISIBILITY_MS)
    await topics.spread()
    assert await topics.left() == 0
    assert [body for _, body, _, _ in await called(topics)] == ["one", "one"]


def _is_ack(change: Change) -> bool:
    return any(row.values is not None and row.values.get("settled") for row in change.rows)


async def test_r16_who_filters_gets_what_it_asked_for(world: World) -> None:
    """R16: by the attributes of a publication, or by what its body says."""
    topics = Topics(world)
    await topics.make("all")
    for name, scope, policy in (
        ("red", ATTRIBUTES, {"colour": ["red"]}), ("large", BODY, {"size": [{"numeric": [">", 10]}]}),
        ("odd", ATTRIBUTES, {"colour": [{"no such thing": 1}]}),
    ):
        await topics.server.create(name)
        await topics.subscribe(name, filter_policy=json.dumps(policy), filter_scope=scope)
    one, two, three = json.dumps({"size": 20}), json.dumps({"size": 5}), "no JSON"
    await topics.publish(one, values={"colour": ("String", "blue")})
    await topics.publish(two, values={"colour": ("String", "red")})
    await topics.publish(three)
    await topics.spread()
    assert await topics.bodies("all") == [one, two, three]
    assert (await topics.bodies("red"), await topics.bodies("large")) == ([two], [one])
    assert await topics.bodies("odd") == [one, two, three], "what this version cannot read keeps nothing back"


async def test_what_no_subscriber_could_be_given_is_refused_and_concerns_nobody_else(world: World) -> None:
    """A1: else it would be confirmed, and never arrive."""
    topics = Topics(world)
    await topics.make("a")
    publish, odd = topics.publishing.publish, "\x01" * LONG
    wanted = [Publication(b"first"), Publication(b"x", bodies={"queue": odd}), Publication(b"last")]
    first, refused, last = await publish(world.account, NEWS, wanted)
    assert isinstance(refused, InvalidRequest) and refused.field == "body"
    assert isinstance(first, Published) and isinstance(last, Published)
    await topics.server.create("wrapped")
    await topics.subscribe("wrapped", raw=False)
    (refused,) = await publish(world.account, NEWS, [Publication(odd.encode())])
    assert isinstance(refused, InvalidRequest) and refused.field == "body"
    (fits,) = await publish(world.account, NEWS, [Publication(b"y" * LONG)])
    assert isinstance(fits, Published)
    await topics.unsubscribe("wrapped")
    (raw,) = await publish(world.account, NEWS, [Publication(odd.encode())])
    assert isinstance(raw, Published), "as it is it has room"
    await topics.spread()
    assert await topics.bodies("a") == ["first", "last", "y" * LONG, odd]
    assert await topics.bodies("wrapped") == ["y" * LONG]


async def test_topics_that_a_server_has_forgotten_are_looked_up_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server remembers a bounded number of them, and what it remembers is only a hint."""
    monkeypatch.setattr(limits, "REMEMBERED_TOPICS", 1)
    topics = Topics(world)
    for name in ("x", "y", "z"):
        await topics.make(f"queue-{name}", topic=name)
    for turn in ("1", "2"):
        for name in ("x", "y", "z"):
            await topics.publish(f"{name}{turn}", topic=name)
    await topics.spread()
    for name in ("x", "y", "z"):
        assert await topics.bodies(f"queue-{name}") == [f"{name}1", f"{name}2"]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (TopicSettings(kind="odd"), "kind"),
        (TopicSettings(content_dedup="yes"), "content_dedup"),  # type: ignore[arg-type]
        (TopicSettings(kind=FIFO, dedup_scope="odd"), "dedup_scope"),
    ],
    ids=lambda wrong: wrong if isinstance(wrong, str) else "settings",
)
async def test_bad_settings_of_a_topic_are_refused(world: World, settings: TopicSettings, field: str) -> None:
    topics = Topics(world)
    with pytest.raises(InvalidRequest) as refused:
        await topics.verbs.create(world.account, NEWS, settings)
    assert refused.value.field == field
    assert await topics.verbs.list(world.account) == ([], False)
    made = await topics.make()
    wrong = {field: getattr(settings, field)}
    with pytest.raises(InvalidRequest):
        await topics.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten(wrong, {}))
    assert await topics.verbs.find(world.account, NEWS) == made


def test_what_a_log_says_of_an_endpoint_has_none_of_its_secrets() -> None:
    assert shown("https://user:word@example.org:8443/secret?token=1#x") == "https://example.org:8443"
    assert shown("http://example.org") == "http://example.org"
    assert shown("account/queue") == "account/queue"


@pytest.mark.parametrize(
    ("scope", "policy", "said"),
    [
        (BY_ATTRIBUTES, {"a": [{"equals-ignore-case": 1}]}, "must be a string"),
        (BY_ATTRIBUTES, {"a": [{"anything-but": {"prefix": []}}]}, "Empty arrays"),
        (BY_BODY, None, "nested too deeply"),
    ],
    ids=["ignore-case", "anything-but", "deep"],
)
def test_what_is_wrong_with_a_filter_policy_is_said(scope: str, policy: object, said: str) -> None:
    if policy is None:
        policy = ["x"]
        for _ in range(limits.FILTER_DEPTH + 1):
            policy = {"a": policy}
    with pytest.raises(InvalidFilterPolicy, match=said):
        check(json.dumps(policy), scope)
