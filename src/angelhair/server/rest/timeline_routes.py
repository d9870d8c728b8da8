"""The routes of timelines, beyond those of every queue."""

from __future__ import annotations

from angelhair.server.rest import examples, timeline_shapes, timelines
from angelhair.server.rest.query import CONSUMER, QUEUE
from angelhair.server.rest.route import DONE, OF_A_QUEUE, READING, WRITING, Answer, Route

TIMELINE = QUEUE._replace(description="The timeline's name.", example="reminders")

VERBS = (
    Route(
        "PUT", "/queues/{queue}/consumers/{consumer}", timelines.touch, "touch_consumer", "Timelines",
        "Say that a consumer is there",
        {200: Answer("The shards that it holds now.", timeline_shapes.Share, examples.SHARE)},
        description="It takes its fair share of the shards that nobody works on, gives up what is more than that, and "
        "keeps what it has for another `lock` seconds. Receives and acks of the consumer keep it too.",
        path=(TIMELINE, CONSUMER), refusals=(*OF_A_QUEUE, *WRITING), curl="-X PUT",
        action="ReceiveMessage",
    ),
    Route(
        "DELETE", "/queues/{queue}/consumers/{consumer}", timelines.leave, "leave_consumer", "Timelines",
        "Say goodbye: others take over at once",
        {204: DONE}, path=(TIMELINE, CONSUMER), refusals=(*OF_A_QUEUE, *WRITING), curl="-X DELETE",
        action="ReceiveMessage",
    ),
    Route(
        "GET", "/queues/{queue}/shards", timelines.show_shards, "show_shards", "Timelines",
        "Show the shards of a timeline",
        {200: Answer("Who works on each, and how far it has come.", timeline_shapes.Shards, examples.SHARDS)},
        path=(TIMELINE,), refusals=(*OF_A_QUEUE, *READING),
        action="GetQueueAttributes",
    ),
)
