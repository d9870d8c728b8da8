"""What a connection may take, what the doors allow, and what a server tells about itself."""

# --- what a connection may take ------------------------------------------------------------------------------------

HTTP_HEAD_BYTES = 16 * 1024
"""A request's line and headers. Signed requests of the AWS SDKs stay below 4 KiB."""

HTTP_URL_BYTES = 8 * 1024
"""A URL. Message bodies do not belong there."""

HTTP_HEADERS = 100
"""Headers of one request."""

HTTP_BODY_BYTES = 32 * 1024 * 1024
"""A request's body: the largest message three times over in base64, or a batch of a thousand with 32 KiB each."""

HTTP_HEAD_SECONDS = 10.0
"""How long a request's head may take to arrive. Who sends a byte a minute holds a connection for this long."""

HTTP_BODY_SECONDS = 60.0
"""How long a request's body may take to arrive."""

HTTP_IDLE_SECONDS = 120.0
"""How long a connection is kept open between two requests: longer than the clients' own pools keep theirs."""

HTTP_WRITE_SECONDS = 60.0
"""How long a client may leave its responses lying before it is cut off."""

HTTP_LINGER_SECONDS = 1.0
"""How long a refused client may go on sending before its connection is closed: so that it reads the refusal."""

TLS_HANDSHAKE_SECONDS = 10.0
"""How long a client may take to agree on a key, as long as for a request's head: until then it is no connection that
is counted, and holds a file descriptor."""

TLS_SHUTDOWN_SECONDS = 1.0
"""How long a closed connection waits for the client's own goodbye. A client with idle connections in a pool says none
before it uses them again, and a server that stops would wait for each of them."""

HTTP_AHEAD = 16
"""Requests that a client may send ahead on one connection before it is no longer read from."""

HTTP_CONNECTIONS = 10_000
"""Connections to one process; each takes a few KiB."""

HTTP_BACKLOG = 1_024
"""Connections that wait to be accepted."""

EXIT_HURRIED = 130
"""The exit code of a server that was told to stop twice and left its clients without answers."""

COLLECT_EVERY = 50_000
"""Objects that may be made, beyond those that go, before Python looks for cycles among them. Requests make hardly any,
but with Python's own 700 every group of them sets the search off: a tenth of a busy server's time."""

RESTART_SECONDS = 1.0
"""How long a process that died stays down before another takes its place."""

REQUEST_ID_LENGTH = 128
"""Characters of a request id that a client gives."""

# --- the REST door ------------------------------------------------------------------------------------------------

CONTENT_TYPE_LENGTH = 256
"""Characters in a message's content type: the longest registered name (255), and then some parameters of usual ones."""

DUE_MAXIMUM_SECONDS = 4_102_444_800
"""The latest due time over REST, from the client and from the command, in seconds since 1970: the year 2100. In a
timeline whose rows expire it is sooner, `TTL_LATEST_MS` less its `expire_after`. Well within the longest delay, so a
bound that can be published as a pattern instead of one that moves with the clock."""

DELIVERIES_MAXIMUM = 1_000_000
"""What a queue's `max_deliveries` may be: no message needs more, and it fits a receipt's delivery number many times."""

LANE_NUMBER_MAXIMUM = 4_294_967_295
"""The highest number of a lane: a receipt has 32 bits for it."""

RETRY_AFTER_SECONDS = 1
"""When a client that was told that the store is unavailable may come again."""

# --- what a server may be told ------------------------------------------------------------------------------------

PORT_MAXIMUM = 65_535
"""A port: what TCP has."""

WORKERS_MAXIMUM = 64
"""Processes of one server. Each has its own connections and caches; beyond a machine's cores they only cost."""

STOP_GRACE_MAXIMUM_SECONDS = 600.0
"""How long a stopping server may be told to wait for its last requests: whoever orchestrates it gives up sooner."""

CONTACT_POINTS = 100
"""Addresses that a server is given to find a cluster by. Three are enough, one per rack is plenty."""

SETTING_LENGTH = 4_096
"""Characters in one setting: the longest path that Linux takes."""

APPLICATION_NAME_LENGTH = 80
"""Characters in the name that stands on every log line."""

CONFIGURATION_FILE_BYTES = 64 * 1024
"""A configuration file. All settings with a page of comment each stay below; a file beyond it is another file."""

PASSWORD_FILE_BYTES = 4_096
"""A file with a password in it."""

# --- what a server tells about itself ------------------------------------------------------------------------------

METRICS_QUEUES = 1_000
"""Queues with figures of their own; the others are counted together. Each is about a dozen series."""

METRICS_ROUTES = 200
"""Route templates with figures of their own: more than all doors have. A path that came in by mistake ends here."""

DEPTH_ROUND_SECONDS = 15.0
"""How often the depth of a queue is looked at for the metrics, if this server does the queue's background work."""

DEPTH_BUCKETS = 8
"""Buckets that such a look reads, far fewer than when somebody asks: it happens all the time. Beyond, it estimates."""

DEPTH_REST = 20
"""After a look at a queue's depth, rest this many times as long as it took: at most a twentieth of a server's time."""

DEPTH_REST_SECONDS = 0.02
"""The least rest between two looks."""

ARCHIVE_PATIENCE_SECONDS = 86_400.0
"""How long finished buckets may wait for the lake without any going there, before the server's log says so."""

METRICS_SIBLING_SECONDS = 1.0
"""How long one process of a server waits for another's figures before it answers without them."""

METRICS_SIBLING_BYTES = 64 * 1024 * 1024
"""What one process takes from another: a thousand queues are some 2 MiB."""

GRAPHITE_SECONDS = 60.0
"""How often figures go to Graphite: the finest that its default configuration keeps."""

GRAPHITE_PATIENCE_SECONDS = 10.0
"""How long a Graphite that does not answer is waited for."""

LOG_LINES_WAITING = 10_000
"""Log lines that wait for a slow reader of stderr. What comes beyond is left out, counted, and said."""

LOG_HIDE_BYTES = 64 * 1024
"""Bodies up to this size are looked for, piece by piece, in the text of an error that is to be logged, some tens of
milliseconds at worst. With a larger one, the log has the error's kind and stack, and not its text."""

LOG_STOP_SECONDS = 2.0
"""How long a stopping server waits for the reader of its last log lines."""

READY_SECONDS = 2.0
"""How long the store may take to answer before the server says that it is not ready."""

READY_AGE_SECONDS = 1.0
"""For how long an answer about readiness is given again: any number of askers cost the store one look a second."""

TRACES_PATIENCE_SECONDS = 5.0
"""How long a collector of traces is waited for, at each attempt and when the server stops."""
