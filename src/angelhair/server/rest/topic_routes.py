"""The routes of topics: a part of the one table, `routes.py`."""

from __future__ import annotations

from angelhair.server.rest import topics
from angelhair.server.rest.query import QUEUE, TOPIC
from angelhair.server.rest.route import DONE, OF_A_QUEUE, READING, WITH_JSON, WRITING, Answer, RequestBody, Route
from angelhair.server.rest.topic_shapes import NewTopic, Published, Subscribed, TopicList, TopicSaid, TopicShown

OF_A_TOPIC = ("topic_not_found",)

_MADE, _CHANGED = "2026-11-15T13:00:00.123Z", "2026-11-15T13:05:00.456Z"
_TOPIC = TopicSaid(
    name="news", kind="standard", content_dedup=False, dedup_scope="topic", created_at=_MADE, changed_at=_CHANGED
)
_SHOWN = TopicShown(
    name="news", kind="standard", content_dedup=False, dedup_scope="topic", created_at=_MADE, changed_at=_CHANGED,
    queues=["invoices", "orders"], others=0,
)
_SUBSCRIBED = Subscribed("news", "orders")
_PUBLISHED = Published("000000d7a3f18c2e5b9d04617f2ce8a1", "news")

VERBS = (
    Route(
        "GET", "/topics", topics.list_topics, "list_topics", "Topics", "List topics",
        {200: Answer("Names, in order.", TopicList, TopicList(["news"], None))},
        query=tuple(topics.LIST.values()), refusals=READING,
        action="ListTopics",
    ),
    Route(
        "PUT", "/topics/{topic}", topics.make_topic, "make_topic", "Topics", "Make a topic",
        {
            201: Answer("Made.", TopicSaid, _TOPIC),
            200: Answer("It exists, with these settings.", TopicSaid, _TOPIC),
        },
        path=(TOPIC,),
        body=RequestBody("The settings; an empty body takes the defaults.", NewTopic, NewTopic("standard"), False),
        refusals=(*WITH_JSON, "topic_exists", *WRITING), curl="-X PUT",
        action="CreateTopic",
    ),
    Route(
        "GET", "/topics/{topic}", topics.show_topic, "show_topic", "Topics", "Show a topic and who is subscribed",
        {200: Answer("Its settings and subscribers.", TopicShown, _SHOWN)},
        path=(TOPIC,), refusals=(*OF_A_TOPIC, *READING),
        action="GetTopicAttributes",
    ),
    Route(
        "DELETE", "/topics/{topic}", topics.delete_topic, "delete_topic", "Topics", "Delete a topic",
        {204: DONE}, description="What was published before still reaches those who were subscribed.",
        path=(TOPIC,), refusals=(*OF_A_TOPIC, *WRITING), curl="-X DELETE",
        action="DeleteTopic",
    ),
    Route(
        "PUT", "/topics/{topic}/queues/{queue}", topics.subscribe, "subscribe_queue", "Topics", "Subscribe a queue",
        {
            201: Answer("Subscribed.", Subscribed, _SUBSCRIBED),
            200: Answer("It was subscribed before.", Subscribed, _SUBSCRIBED),
        },
        path=(TOPIC, QUEUE), refusals=(*OF_A_TOPIC, *OF_A_QUEUE, *WRITING), curl="-X PUT",
        action="Subscribe",
    ),
    Route(
        "DELETE", "/topics/{topic}/queues/{queue}", topics.unsubscribe, "unsubscribe_queue", "Topics",
        "End a queue's subscription",
        {204: DONE}, description="What was published before still reaches the queue.",
        path=(TOPIC, QUEUE), refusals=(*OF_A_TOPIC, "subscription_not_found", *WRITING), curl="-X DELETE",
        action="Unsubscribe",
    ),
    Route(
        "PUT", "/topics/{topic}/message", topics.publish, "publish_message", "Topics", "Publish a message",
        {201: Answer("It will reach every queue that was subscribed.", Published, _PUBLISHED)},
        description="The body of the request is the message's body, byte for byte; its Content-Type is kept.",
        path=(TOPIC,), query=tuple(topics.PARAMETERS.values()),
        body=RequestBody("Anything, or nothing; up to 4 MiB.", None, "hello", False),
        refusals=(*OF_A_TOPIC, *WRITING), curl="-X PUT -d 'hello'",
        action="Publish",
    ),
)
