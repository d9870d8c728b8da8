"""One example of each thing that this door takes or gives: for people, and for generators of tests."""

from __future__ import annotations

import msgspec

from angelhair.server.rest import cluster_shapes, query, shapes, timeline_shapes

_RECEIPT = str(query.RECEIPT.example)
_SETTINGS = shapes.Settings(
    kind="bucketed", bucket_size=1000, lanes=1, visibility_timeout=60, repair_timeout=60, delay=0, retention=345600,
    max_deliveries=5, dead_letter_queue="orders-dead", history=86400, archive=False, dedup_window=300,
    priorities=1, fair=True,
)
_FIXED = ["kind", "bucket_size"]
_CHANGEABLE = [name for name in msgspec.to_builtins(_SETTINGS) if name not in _FIXED]
_MADE, _CHANGED = "2026-11-15T13:00:00.123Z", "2026-11-15T13:05:00.456Z"

QUEUE_LIST = shapes.QueueList(["invoices", "orders"], None)
NEW_QUEUE = shapes.NewQueue(visibility_timeout=60, max_deliveries=5, dead_letter_queue="orders-dead")
CHANGES = shapes.Changes(max_deliveries=5, retention=None)
QUEUE = shapes.QueueSaid(
    name="orders", kind="bucketed", settings=_SETTINGS, changeable=_CHANGEABLE, fixed=_FIXED,
    created_at=_MADE, changed_at=_CHANGED, warnings=[],
)
QUEUE_SHOWN = shapes.QueueShown(
    name="orders", kind="bucketed", settings=_SETTINGS, changeable=_CHANGEABLE, fixed=_FIXED,
    created_at=_MADE, changed_at=_CHANGED, warnings=[], statistics=shapes.Statistics(120, 4, 0, 1, 7.25, True),
    partitions=None,
)

PUT = shapes.Put("0-17", "orders")
NEW_MESSAGES = [
    shapes.NewMessageItem(body='{"order": 4711}', content_type="application/json", key="order-4711"),
    shapes.NewMessageItem(body_base64=b"\x00\xff", delay=5),
]
PUT_ALL = shapes.PutAll([shapes.PutId("0-17"), shapes.PutId("0-18")], "orders")
PUT_SOME = shapes.PutSome(
    [
        shapes.PutOutcome(id="0-17"),
        shapes.PutOutcome(error=shapes.ItemError("outcome_unknown", "the store did not answer")),
    ],
    "orders",
)
_SEEN = shapes.MessageSeen(
    id="0-17", body="hello", content_type="text/plain", deliveries=0, enqueued_at=_MADE, origin=None
)
RECEIVED = shapes.Received([
    shapes.MessageDelivered(
        id="0-17", receipt=_RECEIPT, body="hello", content_type="text/plain", deliveries=1, enqueued_at=_MADE,
        first_delivered_at=_CHANGED, visible_at="2026-11-15T13:06:00.456Z", origin=None,
    )
])
SEEN = shapes.Seen([_SEEN])
SEEN_DEAD = shapes.SeenDead("orders-dead", [
    shapes.MessageSeen(
        id="0-3", body="hello", content_type=None, deliveries=0, enqueued_at=_CHANGED,
        origin=shapes.Origin("orders", "0-17"),
    )
])
MESSAGE_CHANGE = shapes.MessageChange(visibility=120)
ACKS = shapes.Acks([_RECEIPT])
ACKED = shapes.Acked(1, [shapes.AckFailed(_RECEIPT, "stale_receipt", "the message has been delivered again since")])
REDRIVE = shapes.Redrive(None, 100)
POINTERS = shapes.Pointers([shapes.LanePointers(0, 24200, 24, 24, 24, 23, 20, 20, 0, 0)])
BUCKETS = shapes.Buckets(
    0, [shapes.Bucket(23, "settled", 1000, 998, 0, 2, 0), shapes.Bucket(24, "open", 200, 0, 200, 0, 0)]
)

CLUSTER = cluster_shapes.Cluster(
    "00005d1f8a3b2c10a96e04d5b1c8f273",
    [
        cluster_shapes.Member(
            id="00005d1f8a3b2c10a96e04d5b1c8f273", address="http://10.0.0.1:9324", host="queues-1", process=0,
            version="1.0.0", started_at=_MADE, lanes=12, shards=3,
        ),
        cluster_shapes.Member(
            id="0000a41709cd55e27be19f3c40d2a865", address="http://10.0.0.2:9324", host="queues-2", process=0,
            version="1.0.0", started_at=_CHANGED, lanes=11, shards=3,
        ),
    ],
)

SHARE = timeline_shapes.Share("mailer-1", [timeline_shapes.ShardHeld(0, 3), timeline_shapes.ShardHeld(4, 1)], 10, 9.8)
SHARDS = timeline_shapes.Shards([
    timeline_shapes.Shard(
        shard=0, state="open", lock="held", consumer="mailer-1", fence=3, taken_at=_MADE, touched_at=_CHANGED,
        mark=_CHANGED, last=_MADE, lag=0.4,
    ),
    timeline_shapes.Shard(
        shard=1, state="open", lock="free", consumer=None, fence=0, taken_at=None, touched_at=None, mark=None,
        last=None, lag=None,
    ),
])
