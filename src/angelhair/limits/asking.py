"""What users may ask for, and how long they may wait for it."""

# --- what users may ask for ---------------------------------------------------------------------------------------

NAME_LENGTH = 80
"""Characters in a queue or account name: SQS's limit, so that every name works through every door."""

BODY_BYTES = 8 * 1024 * 1024
"""A message body. Cassandra refuses mutations near half a commit log segment (16 MiB of the default 32, less with a
small heap), and a changed body shares its mutation with conditions: half of that leaves room."""

ATTRIBUTES_BYTES = 2 * 1024 * 1024
"""A message's attributes, as text: a MiB of SQS's, which are base64 in it, and their names."""

KEY_LENGTH = 512
"""Characters in an idempotency key: a URL fits, a document does not."""

GROUP_LENGTH = 128
"""Characters in the name of a message group, and of an attempt to receive: SQS's limit."""

FIFO_WINDOW_MAXIMUM_MS = 3_600_000
"""How long a fifo queue may be told to remember keys. Every server that puts there holds the keys of the whole window
in memory, some 100 bytes each, and reads them back when it starts. SQS has five minutes."""

LEDGER_SECONDS = 30 * 86_400
"""How long it is remembered that a run of messages was put: a stream's last batch comes again when the stream does. And
that a put with a key was begun and did not come to its end: longer than any server sleeps."""

BATCH_MESSAGES = 1_000
"""Messages in one request, in either direction."""

BUCKET_SIZE_MINIMUM = 1
BUCKET_SIZE_MAXIMUM = 10_000
"""Messages in a bucket. Repair reads a bucket whole: 10,000 rows are some 60 ms on Cassandra, more would stall it."""

LANES_MAXIMUM = 64
"""Lanes of a queue. Each costs two small reads when a receive looks for work. Priorities share them: with ten, each has
six at most. Lanes for noisy tenants come on top."""

SHARDS = 6
SHARDS_MAXIMUM = 1_024
"""Shards of a timeline: by default as many as the first of its kind had, and at most. Each that is held costs a lock
that is touched every few seconds."""

PRODUCER_DELAY_MAXIMUM_MS = 86_400_000
"""How far ahead of now the rows of a timeline may be told to be written: a day, beyond which it is a due time."""

LOCK_MINIMUM_MS = 1_000
LOCK_MAXIMUM_MS = 3_600_000
"""How long the lock of a shard may hold untouched: less than a second, and a slow store would lose it all the time;
more than an hour, and nobody would take on what a dead consumer left."""

EXPIRE_AFTER_MINIMUM_MS = 60_000
EXPIRE_AFTER_MAXIMUM_MS = 10 * 365 * 86_400_000
"""How long after its time a row of a timeline goes. What nobody has worked off is written anew when half of that is
over, which takes a look now and then; and it must fit into what a store can keep a row for, with the time before."""

DUE_MAXIMUM_MS = 8_000 * 365 * 86_400_000
"""The last time that the engine lets a message be due at, in the year 9,964: in 48 bits of milliseconds it leaves room
for delays and lives. Who comes by REST, the client or the command meets `DUE_MAXIMUM_SECONDS` first; and, in a timeline
whose rows expire, `TTL_LATEST_MS` and `TTL_MAXIMUM_SECONDS` before that."""

PRIORITIES_MAXIMUM = 10
"""Priorities of a queue: as many as message queues commonly have. Each has lanes of its own."""

DURATION_MAXIMUM_MS = 100 * 365 * 86_400_000
"""Any time span that a user gives: a century. Keeps every sum of times far inside 64 bits."""

REPAIR_TIMEOUT_MINIMUM_MS = 100
"""Below this, repair would call ids dead while their writes are still on the way, and re-admit them one by one."""

NOTES_BYTES = 64 * 1024
"""What doors keep with a queue, as JSON: fifty tags of SQS's longest and a policy. It is read with the
queue, whenever that is looked up."""

LIST_QUEUES = 1_000
"""Queues in one page of a listing: SQS's limit."""

PEEK_MESSAGES = 1_000
"""Messages in one peek."""

# --- waiting receives ----------------------------------------------------------------------------------------------

WAIT_MAXIMUM_SECONDS = 60.0
"""How long a receive may wait for a message. SQS allows 20; proxies cut silent connections after a minute or so."""

POLL_FIRST_SECONDS = 0.025
POLL_MOST_SECONDS = 1.0
"""How often a queue with waiting receives is looked at for what other servers did: often at first, ever less often
while nothing comes. Puts on the same server wake a receive at once and need no looking."""

POLL_GROWTH = 1.5
"""By how much the pause grows with each look that found nothing."""
