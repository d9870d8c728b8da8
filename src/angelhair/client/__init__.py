"""The Python client: `Client` for threads, `AsyncClient` for asyncio, one core for both.

    verbs/            what can be asked, as plans: generators that yield what to do next, and do nothing themselves
    plans retrying    the steps of a plan; sending and trying again
    values reading refusals paths bodies    from Python to the wire and back
    consuming         what a consumer decides
    working locks     what a worker of a timeline decides, and what it may believe of its shards
    driving blocking blocking_consumer      plans in threads, over httpx.Client
    asynchronous asynchronous_…             plans on asyncio, over httpx.AsyncClient
    timeline worker   a timeline in both colours; handlers in tasks or threads, and beside them the wire's thread
    transport lines keeper parting signals  what both drivers share

Errors are those of `angelhair.errors`.
"""

from angelhair.client.asynchronous import AsyncClient
from angelhair.client.asynchronous_consumer import AsyncConsumer
from angelhair.client.blocking import Client
from angelhair.client.blocking_consumer import Consumer
from angelhair.client.retrying import Retry
from angelhair.client.timeline import AsyncTimeline, Timeline
from angelhair.client.values import (
    AckFailure,
    Bucket,
    Cluster,
    Delivered,
    Draft,
    LanePointers,
    Member,
    Message,
    Origin,
    Partitions,
    PeekedMessage,
    PutOutcome,
    Queue,
    QueueSettings,
    Receipt,
    Shard,
    Statistics,
    Topic,
    TopicSettings,
)
from angelhair.client.worker import Worker
from angelhair.client.working import Figures

__all__ = [
    "Client", "AsyncClient", "Consumer", "AsyncConsumer", "Retry",
    "Message", "PeekedMessage", "Origin", "Draft", "Receipt", "Delivered", "PutOutcome", "AckFailure",
    "Queue", "QueueSettings", "Statistics", "Partitions", "LanePointers", "Bucket", "Cluster", "Member",
    "Topic", "TopicSettings",
    "Timeline", "AsyncTimeline", "Worker", "Figures", "Shard",
]
