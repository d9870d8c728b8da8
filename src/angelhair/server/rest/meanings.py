"""What a queue's settings mean, for the published document and its page."""

from __future__ import annotations

SETTINGS = {
    "kind": "`fifo` where the name ends with `.fifo`, and nowhere else; `timeline` and `databag` where that is said. "
    "Fixed for life.",
    "bucket_size": "Messages that are stored, settled and dropped together. Fixed for life.",
    "lanes": "Independent sequences; more let several servers put at once. Order is kept within a lane only.",
    "visibility_timeout": "For how long a delivered message is hidden from others.",
    "repair_timeout": "How long an id that was never written may hold up the settling of its bucket.",
    "delay": "How long a message that brings no delay of its own is hidden at first.",
    "retention": "After this a message that nobody acked expires; null: never.",
    "max_deliveries": "After so many a message goes to the dead-letter queue; null: it goes round for ever.",
    "dead_letter_queue": "Where it goes; a queue like any other.",
    "history": "For how long what is settled stays readable.",
    "archive": "Keep it also until an archive has it.",
    "dedup_window": "For how long an idempotency key is remembered.",
    "dedup_scope": "Of a fifo queue: where a key is one message, in all of it or in its group.",
    "priorities": "So many levels, from 0 on: messages of a higher one are served first. Each has `lanes` of its own.",
    "fair": "Messages of a group that floods the queue are served after those of the others.",
    "shards": "Of a timeline, in place of `lanes`: each is worked on by one consumer at a time.",
    "granularity": "Of a timeline: the time that is stored together. Fixed for life.",
    "producer_delay": "Of a timeline: what is put is delivered so much later at least, and seldom put twice.",
    "expire_after": "Of a timeline: how long after its due time a message is kept; null: until all before it is done.",
    "min_partitions": "Of a databag: it is cut into so many at least, however little is in it.",
    "max_partitions": "Of a databag: and so many at most. One that has served is locked for `visibility_timeout`.",
    "lock": "Of a timeline: after so much silence the shards of a consumer go to others.",
}
