"""Topics: making, showing, deleting and listing them; subscribing queues; publishing.

A publication whose answer was lost may have happened, so, as a put, it has a key when it may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack
from uuid import uuid4

from angelhair import limits
from angelhair.client import reading
from angelhair.client.bodies import body_bytes, check_text
from angelhair.client.paths import of_topic
from angelhair.client.plans import Call, Plan, Repeat, Request, nothing
from angelhair.client.retrying import Manner, exchange
from angelhair.client.values import Topic, TopicSettings
from angelhair.client.verbs.puts import check_content_type, read_id
from angelhair.client.verbs.queues import Page, with_json
from angelhair.errors import SubscriptionNotFound, TopicNotFound


def create_topic(manner: Manner, name: str, **settings: Unpack[TopicSettings]) -> Plan[Topic]:
    """Makes a topic. One that exists with the same settings is as good; with others it is `TopicExists`."""
    request = with_json("PUT", of_topic(name), settings)
    return (yield from exchange(manner, Call(request, _TOPIC, Repeat.SAFE, topic=name)))


def topic(manner: Manner, name: str) -> Plan[Topic]:
    """The topic's settings and the queues that are subscribed."""
    return (yield from exchange(manner, Call(Request("GET", of_topic(name)), _TOPIC, Repeat.READS, topic=name)))


def delete_topic(manner: Manner, name: str) -> Plan[None]:
    """Deletes the topic. What was published before still reaches those who were subscribed."""
    request = Request("DELETE", of_topic(name))
    yield from exchange(manner, Call(request, nothing, Repeat.SAFE, topic=name, done_if=(TopicNotFound,)))


def topics(manner: Manner, prefix: str = "", *, after: str = "") -> Plan[Page[str]]:
    """The names of the topics that begin like this, in order."""
    query = {"limit": str(limits.LIST_TOPICS)}
    query.update({name: value for name, value in (("prefix", prefix), ("after", after)) if value})
    call = Call(Request("GET", "/topics", query), reading.reads(_names), Repeat.READS)
    names, following = yield from exchange(manner, call)
    return Page(names, topics(manner, prefix, after=following) if following else None)


def subscribe(manner: Manner, topic: str, queue: str) -> Plan[None]:
    """From now on the queue gets what is published. One that is subscribed already stays so."""
    request = Request("PUT", of_topic(topic, queue))
    yield from exchange(manner, Call(request, nothing, Repeat.SAFE, queue=queue, topic=topic))


def unsubscribe(manner: Manner, topic: str, queue: str) -> Plan[None]:
    """Ends the queue's subscription. What was published before still reaches it."""
    request = Request("DELETE", of_topic(topic, queue))
    done_if = (SubscriptionNotFound,)
    yield from exchange(manner, Call(request, nothing, Repeat.SAFE, queue=queue, topic=topic, done_if=done_if))


def publish(
    manner: Manner,
    topic: str,
    body: bytes | str,
    *,
    content_type: str | None = None,
    key: str | None = None,
    group: str | None = None,
) -> Plan[str]:
    """Publishes one message to every queue that is subscribed, and returns its id. A fifo topic needs a group."""
    if key is None and manner.retry is not None:
        key = str(uuid4())
    query = {name: value for name, value in (("key", key), ("group", group)) if value is not None}
    for name, value in query.items():
        check_text(name, value)
    check_content_type(content_type)
    request = Request("PUT", f"{of_topic(topic)}/message", query, body_bytes(body), content_type)
    repeat = Repeat.UNSAFE if key is None else Repeat.SAFE
    return (yield from exchange(manner, Call(request, read_id, repeat, topic=topic)))


def _names(found: Mapping[str, Any]) -> tuple[list[str], str | None]:
    return list(found["topics"]), found["next"]


_TOPIC = reading.reads(reading.topic)
