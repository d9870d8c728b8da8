"""The tables, by name. A store lays them out; only the engine knows what they mean.

`SCHEMA_VERSION` grows by one whenever a table or column is added; nothing is ever renamed or removed, so that an
older server goes on reading while a newer one is rolled out.
"""

from angelhair.engine.store import Table, Values

SCHEMA_VERSION = 9

QUEUES = Table(
    "queues",
    conditional=True,
    key=str,
    columns={
        "incarnation": str,
        "secret": bytes,
        "settings": str,
        "lanes": str,
        "lanes_made": int,
        "status": str,
        "created_at": int,
        "changed_at": int,
        "version": int,
    },
)
"""The catalog. Partition: an account. Row: a queue's name."""

GRAVES = Table(
    "graves",
    conditional=True,
    key=str,
    columns={"account": str, "name": str, "lanes": str, "bucket_size": int, "buried_at": int, "kind": str},
)
"""Deleted incarnations whose partitions are still to be dropped. One partition. Row: an incarnation."""

SEQUENCES = Table(
    "sequences",
    conditional=True,
    key=str,
    columns={"next": int, "attempt": str, "deleted": int, "sealed": int},
)
"""Where ids come from. Partition: a lane. One row. Of a fifo lane `next` is the bucket at the log's end, and `attempt`
the token that it was opened with."""

POINTERS = Table("pointers", conditional=True, key=str, columns={"value": int})
"""A lane's marks, all of which only rise. Partition: a lane. Row: a pointer's name."""

LEASES = Table(
    "leases",
    conditional=True,
    key=str,
    columns={"holder": str, "fence": int, "beat": int, "duration": int},
)
"""Who does a lane's background work. Partition: a lane. Row: a role."""

BODIES = Table(
    "bodies",
    conditional=False,
    key=int,
    columns={"body": bytes, "attributes": str, "enqueued_at": int, "visible_from": int, "origin": str, "keyed": int},
)
"""What producers wrote, once. Partition: a bucket. Row: a message id. `keyed`: when the message's key lapses."""

BODY_DATES = ("enqueued_at", "visible_from", "keyed")
"""What is read of bodies when the bodies themselves are not wanted. Whoever reads a part of them in a queue that lives
reads at least all of these: of a put that nobody has confirmed yet, Cassandra gives the other replicas the columns that
somebody reads (row 19 of docs/cassandra.md)."""


def is_whole(values: Values) -> bool:
    """Whether a row of messages that was read in all its columns is all there. Nobody asks for a body without the rest
    of its row (`mistakes.check_span`), so where the body is, everything else is."""
    return isinstance(values.get("body"), bytes)


STATES = Table(
    "states",
    conditional=True,
    key=int,
    columns={
        "delivery": int,
        "revision": int,
        "visible_at": int,
        "duration": int,
        "claim": str,
        "first_delivered_at": int,
        "settled": str,
        "settled_at": int,
        "moving_to": str,
        "moving_at": int,
        "moving_before": str,
        "body": bytes,
        "erased_at": int,
    },
    flags={"opened": str, "final": int, "finished": int, "finished_at": int, "admitted": int, "keyed": int},
)
"""What became of the messages. Partition: a bucket. Row: a message id; none before the first delivery.

`keyed`: when the last key of a message in a finished bucket lapses."""

STATE_DATES = (
    "delivery",
    "revision",
    "visible_at",
    "duration",
    "first_delivered_at",
    "settled",
    "moving_at",
    "erased_at",
)
"""What is read of states to know what is to be done. Whoever reads a revision reads all of these: of a claim whose
commit is on its way others are given the columns that somebody reads (row 19 of docs/cassandra.md), and who then sees
the revision and not for how long it hides its message could claim it."""

WAKES = Table("wakes", conditional=False, key=str, columns={"patience": int})
"""When to look into which bucket. Partition: a lane and a span of time. Row: a time slot and a bucket."""

KEYS = Table(
    "keys",
    conditional=True,
    key=str,
    columns={"status": str, "lane": int, "id": int, "attempt": str, "expires_at": int, "enqueued_at": int,
             "kept_until": int, "before": str},
)
"""Idempotency keys. Partition: a queue and a key's hash. Row: the key. `enqueued_at`: the date of the message at that
id, the same for whoever writes it there. `kept_until`: until when somebody may ask what became of that id. `before`:
the id that it has gone on from, to be voided before anything is written at this one."""

LEDGER = Table(
    "ledger",
    conditional=True,
    key=int,
    columns={
        "status": str,
        "lane": int,
        "id": int,
        "messages": int,
        "digest": str,
        "attempt": str,
        "begun_at": int,
        "lapses_at": int,
        "rest": str,
        "before": str,
        "first_at": int,
    },
)
"""Runs of messages that are put once. Partition: a queue and a writer's hash. Row: which of the writer's runs."""

LOGS = Table(
    "logs",
    conditional=True,
    key=int,
    columns={
        "body": bytes,
        "attributes": str,
        "message_group": str,
        "dedup_id": str,
        "enqueued_at": int,
        "origin": str,
    },
    flags={"opened": str, "next": int, "attempt": str, "deleted": int, "finished_at": int},
)
"""The messages of a fifo lane, in order and without gaps. Partition: a bucket. Row: a message's number."""

LOG_LIGHT = ("message_group", "dedup_id", "enqueued_at", "origin")
"""What is read of a log when the messages themselves are not wanted: never less, so that what others are given of a put
whose commit is on its way (row 19 of docs/cassandra.md) has its key and its origin, or is not there."""

GROUPS = Table(
    "groups",
    conditional=True,
    key=str,
    columns={"done": int, "revision": int, "claim": str, "touched": str, "acked": str},
    flags={"ready": str, "sealed": int, "deleted": int},
)
"""What became of a fifo lane's messages. Partition: a lane and an epoch. Row: a message group. `done`: every message of
the group below this number is settled. `touched`: those above that were delivered, and what of them. `acked`: the last
deliveries that were acked."""

ACCOUNTS = Table(
    "accounts",
    conditional=True,
    key=str,
    columns={"name": str, "attempt": str, "created_at": int},
    flags={"version": int},
)
"""Who owns queues. One partition. Row: an account's number. `version` grows with every change of the partition."""

ACCESS_KEYS = Table(
    "access_keys",
    conditional=True,
    key=str,
    columns={"account": str, "secret": str, "queues": str, "actions": str, "enabled": int, "created_at": int},
    flags={"version": int},
)
"""What requests are signed with. One partition, which servers read again when its `version` has grown. Row: a key's
id. The secret is readable: a signature can be checked by nothing else."""

TOPICS = Table(
    "topics",
    conditional=True,
    key=str,
    columns={
        "incarnation": str,
        "settings": str,
        "notes": str,
        "created_at": int,
        "changed_at": int,
        "version": int,
    },
)
"""The catalog of topics. Partition: an account. Row: a topic's name."""

SUBSCRIPTIONS = Table(
    "subscriptions",
    conditional=True,
    key=str,
    columns={
        "protocol": str,
        "endpoint": str,
        "status": str,
        "token": str,
        "settings": str,
        "created_at": int,
        "version": int,
    },
    flags={"edits": int, "deleted": int},
)
"""Who is subscribed. Partition: a topic's incarnation. Row: a subscription's id. `edits` grows with every change of the
partition and is there from the topic's beginning to its end; `deleted`: the topic takes no more."""

DUES = Table(
    "dues",
    conditional=False,
    key=str,
    columns={"body": bytes, "attributes": str, "enqueued_at": int, "due": int, "origin": str, "deliveries": int,
             "renewed": int, "void": int},
)
"""The messages of timelines. Partition: a lane and a part of time. Row: a time UUID, as text. `due`: what the producer
wanted. `deliveries`: those before it was set aside to this time. `renewed`: when it was last written, so that who
writes it again can see which write counts. `void`: nobody is to be given it here: it lies elsewhere, or was acked."""

PARTS = Table("parts", conditional=False, key=str, columns={"until": int})
"""Which time is not empty. Partition: a lane, with a row for each span of parts; or a lane and a span, with a row for
each part. A row's key ends with when it expires, so that none is ever given a shorter life."""

SHARDS = Table(
    "shards",
    conditional=True,
    key=str,
    columns={"mark": int, "last": str, "holder": str, "consumer": str, "fence": int, "beat": int, "duration": int,
             "taken_at": int, "touched_at": int, "deleted": int},
)
"""How far a shard of a timeline has been worked off, and by whom. Partition: a lane. One row. `mark`: rows at or before
this time are no longer put; `last`: those up to this key are processed."""

CONSUMERS = Table("consumers", conditional=False, key=str, columns={"holder": str, "beat": int, "most": int})
"""Who works on a timeline. Partition: a queue. Row: a consumer's name."""

MEMBERS = Table(
    "members",
    conditional=True,
    key=int,
    columns={"member": str, "beat": int, "duration": int, "address": str, "host": str, "process": int, "version": str,
             "started_at": int, "lanes": int, "shards": int},
)
"""Which servers there are. Partition: a group of slots. Row: a slot, which is used again. `member`: whose it is, or
nobody's; `duration`: for how long it counts without another beat."""

BAG_MESSAGES = Table(
    "bag_messages",
    conditional=False,
    key=int,
    columns={"body": bytes, "attributes": str, "enqueued_at": int, "origin": str, "deleted": int, "held_at": int},
)
"""The messages of databags. Partition: a block of slices and an epoch. Row: an id. `deleted`: when somebody deleted it;
the column is set and never unset, and goes with the partition. `held_at`: since when the place is kept for a message
with a key, which is not to be seen before it is sure to stay."""

BAG_EPOCHS = Table(
    "bag_epochs",
    conditional=True,
    key=int,
    columns={
        "version": int, "attempt": str, "open": int, "opened_at": int, "sealed": str, "over": str, "deleted": int,
    },
)
"""Which epochs the blocks of a databag have. Partition: a databag. Row: a block. `open`: the one that takes puts;
`sealed`: those that take none any more; `over`: those of which nothing is served any more; `version` grows with every
change."""

BAG_LOCKS = Table(
    "bag_locks",
    conditional=True,
    key=int,
    columns={
        "last": int, "serving": int, "claim": str, "served_at": int, "duration": int, "given": bytes, "counted": bytes,
        "behind": int, "front": int, "back": int, "until": int, "left": int,
    },
    flags={"version": int, "deleted": int, "duplicates": int},
    small=True,
)
"""Which slices of a databag are locked. Partition: a block. Row: the first slice of a run that was served; `last`: its
last one; `serving`: the `version` that it was served at, so of two that overlap the higher counts; `given`: the ids;
`counted`: those of them that were counted as duplicates when they were given; `behind`: servings that passed others
over; `front`, `back` and `until`: where (`databag/passed.py`); `left`: others are left, and wait for the lock's end. A
block is small, so that the version that was read is that of all its rows."""

TABLES = (
    QUEUES, GRAVES, SEQUENCES, POINTERS, LEASES, BODIES, STATES, WAKES, KEYS, LEDGER, LOGS, GROUPS, ACCOUNTS,
    ACCESS_KEYS, TOPICS, SUBSCRIPTIONS, DUES, PARTS, SHARDS, CONSUMERS, MEMBERS, BAG_MESSAGES,
    BAG_EPOCHS, BAG_LOCKS,
)
