"""What the client and the command do by themselves."""

# --- the Python client ----------------------------------------------------------------------------------------------

CLIENT_TIMEOUT_SECONDS = 30.0
"""How long the client waits for an answer, beyond what a receive asked to wait: the server's own tries end sooner."""

CLIENT_RETRY_SECONDS = 60.0
"""How long one call goes on trying. Well within the five minutes for which a queue remembers idempotency keys."""

CLIENT_PAUSE_FIRST_SECONDS = 0.1
CLIENT_PAUSE_MOST_SECONDS = 5.0
"""The longest pause before the first repetition, and before any: each doubles the one before, and the true pause is
anywhere below (full jitter), so that a thousand clients do not come back in step."""

CLIENT_KEYLESS_SECONDS = 60.0
"""For how long the client believes that a queue knows no keys, as a timeline does not, and puts without. One that was
made again as another kind has keys again a minute later."""

CLIENT_CONNECTIONS = 100
"""Connections that one client opens to its server at the same time."""

CLIENT_IDLE_SECONDS = 60.0
"""How long the client keeps an idle connection: half of what the server does, so that it is not cut in mid-request."""

CONSUMER_CONCURRENCY = 8
"""Handlers that a consumer runs at the same time, unless told otherwise."""

CONSUMER_VISIBILITY_SECONDS = 30.0
"""For how long a consumer holds a message between two extensions. After a crash its messages come back this late."""

CONSUMER_VISIBILITY_LEAST_SECONDS = 1.0
"""Below this an extension would often come too late on a busy machine."""

CONSUMER_WAIT_SECONDS = 20.0
"""How long a consumer's receive waits for messages. Over TLS an idle consumer stops at most this late."""

CONSUMER_EXTEND_SHARE = 0.5
"""After which share of its visibility a message is extended: the other half is for trying again."""

CONSUMER_EXTEND_TRIES = 4
"""Tries of an extension that fit into the visibility that is left; each may take, and be followed by, such a share."""

CONSUMER_DELAY_FIRST_SECONDS = 1.0
CONSUMER_DELAY_MOST_SECONDS = 300.0
"""For how long a message is put back whose handler failed for the first time, and at most; it doubles in between."""

# --- workers of timelines -------------------------------------------------------------------------------------------

TIMELINE_TOUCH_SHARE = 0.25
"""After which share of the lock's time a worker touches it again: two tries before it stops working."""

TIMELINE_SURE_SHARE = 0.5
"""For which share of the lock's time after a touch that was answered a worker believes that it holds its shards. Then
it starts no handler and acks nothing, long before anybody else may take them."""

TIMELINE_SEARCH_SECONDS = 1.0
"""How often a worker without a shard asks whether there is one for it; at most, where locks are short."""

TIMELINE_WAIT_SECONDS = 1.0
"""How long a receive of a worker with nothing to do waits: its touches go over the same connection, after it."""

TIMELINE_POLL_FIRST_SECONDS = 0.02
TIMELINE_POLL_MOST_SECONDS = 0.5
"""How soon a worker whose handlers run asks for more after an answer without any: ever later while none come."""

TIMELINE_SETTLE_SECONDS = 0.02
"""How long a worker waits with an ack for those of handlers that still run: one request for many in place of many."""

TIMELINE_AHEAD_SECONDS = 0.5
TIMELINE_AHEAD_MOST = 256
"""How much work a worker holds beyond what its handlers have in hand: what they did in so much time, at most so many
messages. Quick handlers never wait for the wire, and slow ones leave to others what they cannot begin."""

TIMELINE_REPORT_SECONDS = 10.0
"""How often a worker says how far it is, where lines are kept."""

TIMELINE_LINE_SECONDS = 0.5
"""How often the line on a terminal changes."""

TIMELINE_LAG_SECONDS = 5.0
"""How often a worker asks how late its shards are: it costs the server a read of each."""

# --- the command --------------------------------------------------------------------------------------------------

COMMAND_RETRY_SECONDS = 5.0
"""How long a command goes on trying a server that is unavailable: through a restart, and not through a coffee."""

COMMAND_READ_BYTES = 1024 * 1024
"""What `put --lines` reads at once: whatever is there, so that a slow producer's lines are put as they come."""

DOCTOR_PATIENCE_SECONDS = 5.0
"""How long `doctor` waits for a server's answer; it says of itself that it is not ready after 2 seconds."""

DOCTOR_FREE_BYTES = 1024 * 1024 * 1024
"""Free space below which `doctor` warns: at 1,000 messages of 1 KiB a second, a quarter of an hour."""

LOAD_TASKS = 50
"""Producers, and consumers, of one `load`: together as many as a client has connections."""

LOAD_RATE_MAXIMUM = 100_000
"""Messages a second that `load` may be asked for: far more than one process of Python can send."""

LOAD_WAIT_SECONDS = 1.0
"""How long a consumer of `load` waits in one receive: it is this much later that it notices the end."""

LOAD_DATABAG_SECONDS = 2.0
"""For how long `load` hides what it receives from a databag. It acks at once, and whatever else lies in a partition
waits for so long."""

LOAD_DRAIN_SECONDS = 60.0
"""How long `load` waits for the last messages when all have been sent: twice the usual visibility time-out, so that
what a failed consumer held comes again."""

LOAD_REST_SECONDS = 0.2
"""How long a producer or consumer of `load` rests after an error: it has been tried again already."""

OPEN_ATTEMPTS = 6
OPEN_PAUSE_SECONDS = 2.0
"""How often, and how far apart, a server that starts asks a Cassandra that answers and cannot yet: long enough for
several that start at once on an empty keyspace to let one of them create the tables."""
