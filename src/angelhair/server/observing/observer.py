"""What happens in one process of a server, counted. The parts of the server call it; prometheus_client collects it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import Metric

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.engine.databag.inspect import BagSeen
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import Delivery
from angelhair.server.observing.tables import Counts, Distributions, Key, Levels, Table

OTHER = "(other)"
"""The label of what has no figures of its own. No queue can have this name, and no route."""

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From a receive that finds nothing in an embedded store to the longest wait that a client may ask for."""

WAIT_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 43_200.0, 86_400.0, 345_600.0)
"""From at once to the default retention."""

SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Messages in a group, up to `limits.BATCH_MESSAGES`."""

VERBS = ("read", "write", "change", "drop", "time")
METHODS = frozenset(("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"))


class Observer:
    """Every method is cheap, never raises and never waits; all but `families` belong to the event loop."""

    def __init__(self) -> None:
        self._tables: list[Table] = []
        self._watches: list[Callable[[], None]] = []
        self._queues: set[str] = set()
        self._routes: set[str] = set()

        self._requests = self._counts(
            "angelhair_http_requests", "Requests answered.", ("route", "method", "status"))
        self._request_seconds = self._distributions(
            "angelhair_http_request_seconds", "From a whole request to its answer.", ("route", "method"), SECONDS)
        self._refused = self._counts(
            "angelhair_http_refused", "Requests refused before any door saw them.", ("status",))

        self._put = self._counts("angelhair_messages_put", "Messages put and confirmed.", ("queue",))
        self._received = self._counts("angelhair_messages_received", "Deliveries handed out.", ("queue",))
        self._redelivered = self._counts(
            "angelhair_messages_redelivered", "Deliveries of messages that had been delivered before.", ("queue",))
        self._acked = self._counts("angelhair_messages_acked", "Messages acked.", ("queue",))
        self._ack_refused = self._counts(
            "angelhair_acks_refused", "Acks refused: stale, damaged or forged receipts.", ("queue",))
        self._changed = self._counts(
            "angelhair_messages_changed", "Deliveries extended, released or rewritten.", ("queue",))
        self._first_wait = self._distributions(
            "angelhair_message_wait_seconds", "From the put to the first delivery, delays included.", (), WAIT_SECONDS)

        self._depth = self._levels(
            "angelhair_queue_depth", "Messages in the queue by state; known to the server that holds its lease.",
            ("queue", "state"))
        self._oldest = self._levels(
            "angelhair_queue_oldest_seconds", "Age of the oldest message that waits to be delivered; 0 if none does.",
            ("queue",))
        self._unarchived = self._levels(
            "angelhair_queue_unarchived_buckets", "Finished buckets that are kept until they are in the lake.",
            ("queue",))
        self._exact = self._levels(
            "angelhair_queue_depth_exact", "1 when the depth was counted, 0 when it is estimated.", ("queue",))

        self._partitions = self._levels(
            "angelhair_databag_partitions", "Partitions of a databag, as they are in force on the server that says it.",
            ("queue",))
        self._partitions_most = self._levels(
            "angelhair_databag_partitions_most", "How many partitions a databag may have as load grows.", ("queue",))
        self._partitions_locked = self._levels(
            "angelhair_databag_partitions_locked", "Partitions that have served, and rest.", ("queue",))
        self._epochs = self._levels(
            "angelhair_databag_epochs", "Epochs of a databag that are in the store, of all its blocks.", ("queue",))
        self._duplicates = self._levels(
            "angelhair_databag_duplicates",
            "Messages of a databag served after their delete, or twice in one time-out, as far as the store shows it.",
            ("queue",))
        self._shards_held = self._levels(
            "angelhair_timeline_shards_held", "Shards of a timeline whose locks this server holds for consumers.",
            ("queue",))
        self._lag = self._levels(
            "angelhair_timeline_lag_seconds",
            "For how long the oldest message that is due has waited, in shards that this server or nobody holds.",
            ("queue",))
        self._set_aside = self._counts(
            "angelhair_timeline_set_aside", "Messages written again at a later time, or moved to the dead letters.",
            ("queue", "where"))

        self._groups = self._distributions(
            "angelhair_group_messages", "Messages that shared one commit.", ("verb",), SIZES)

        self._store_operations = self._counts(
            "angelhair_store_operations", "What the store was asked: each item of each call.", ("operation", "table"))
        self._store_rows = self._counts(
            "angelhair_store_rows", "Rows read, written, or named by conditional changes.", ("operation", "table"))
        self._store_seconds = self._distributions(
            "angelhair_store_call_seconds", "Calls to the store, of one or many items.", ("operation",), SECONDS)
        self._store_refused = self._counts(
            "angelhair_store_changes_refused", "Conditional changes that lost to somebody else's.", ("table",))
        kinds = ("unavailable", "outcome_unknown", "unexpected")
        self._store_errors = self._counts(
            "angelhair_store_errors", "Items of calls that did not get a clear yes.", ("operation", "kind"),
            *[(verb, kind) for verb in VERBS for kind in kinds])

        self._publications = self._counts(
            "angelhair_publications", "What became of publications to topics.",
            ("event",), ("published",), ("spread",), ("waiting",), ("dropped",), ("posted",), ("retried",))
        self._lease_changes = self._counts(
            "angelhair_lease_changes", "Leases of lanes that this server took, lost to another or gave back.",
            ("change",), ("taken",), ("lost",), ("released",))
        self._leases = self._levels("angelhair_leases_held", "Lanes whose background work this server does.")
        self._skew = self._levels(
            "angelhair_clock_skew_seconds", "The store's clock minus this server's, when they were last compared.")

    # --- requests ---------------------------------------------------------------------------------------------------

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """`route` is a template, never a path: a path has receipts in it, and there are as many as there are queues."""
        if route not in self._routes:
            route = self._new_route(route)
        if method not in METHODS:
            method = OTHER
        self._requests.add((route, method, status))
        self._request_seconds.add((route, method), seconds)

    def refused(self, status: int) -> None:
        self._refused.add((status,))

    # --- messages ---------------------------------------------------------------------------------------------------

    def put(self, queue: str, count: int) -> None:
        if count:
            self._put.add((self._label(queue),), count)

    def received(self, queue: str, deliveries: Sequence[Delivery]) -> None:
        if not deliveries:
            return
        label = self._label(queue)
        self._received.add((label,), len(deliveries))
        waited_seconds = [
            max(0, delivery.first_delivered_at_ms - delivery.enqueued_at_ms) / 1000
            for delivery in deliveries
            if delivery.deliveries == 1
        ]
        self._first_wait.add((), *waited_seconds)
        if len(waited_seconds) < len(deliveries):
            self._redelivered.add((label,), len(deliveries) - len(waited_seconds))

    def acked(self, queue: str, count: int, refused: int = 0) -> None:
        label = self._label(queue)
        if count:
            self._acked.add((label,), count)
        if refused:
            self._ack_refused.add((label,), refused)

    def changed(self, queue: str, count: int) -> None:
        if count:
            self._changed.add((self._label(queue),), count)

    def publications(self, event: str, count: int) -> None:
        self._publications.add((event,), count)

    def group(self, verb: str, messages: int) -> None:
        self._groups.add((verb,), messages)

    # --- queues -----------------------------------------------------------------------------------------------------

    def depth(self, queue: str, stats: Stats) -> None:
        label = self._label(queue)
        if label == OTHER:
            # Each look would overwrite another queue's: better no depth than a wrong one.
            return
        self._depth.set((label, "visible"), stats.visible)
        self._depth.set((label, "in_flight"), stats.in_flight)
        self._depth.set((label, "delayed"), stats.delayed)
        self._depth.set((label, "dead"), stats.dead)
        self._oldest.set((label,), (stats.oldest_age_ms or 0) / 1000)
        self._exact.set((label,), int(stats.exact))
        self._unarchived.set((label,), stats.unarchived)

    def databag(self, queue: str, seen: BagSeen) -> None:
        label = self._label(queue)
        if label != OTHER:
            self._partitions.set((label,), seen.partitions)
            self._partitions_most.set((label,), seen.max_partitions)
            self._partitions_locked.set((label,), seen.locked)
            self._epochs.set((label,), seen.epochs)
            self._duplicates.set((label,), seen.duplicates)

    def timeline(self, queue: str, shards_held: int, lag_seconds: float, later: int, dead: int) -> None:
        """`later`, `dead`: how many more were set aside, in the timeline itself and among dead letters."""
        label = self._label(queue)
        if label != OTHER:
            self._shards_held.set((label,), shards_held)
            self._lag.set((label,), lag_seconds)
        self._set_aside.add((label, "later"), later)
        self._set_aside.add((label, "dead_letters"), dead)

    def depth_unknown(self, queue: str) -> None:
        """Another server looks after this queue now: an old figure of ours would stand beside its new one."""
        for levels in (
            self._depth, self._oldest, self._exact, self._unarchived, self._partitions, self._partitions_most,
            self._partitions_locked, self._epochs, self._duplicates,
        ):
            levels.forget(lambda key: key[0] == queue)

    @property
    def queues(self) -> frozenset[str]:
        """Those with figures of their own."""
        return frozenset(self._queues)

    def forget_queue(self, queue: str) -> None:
        """The queue was deleted: another may have its place."""
        if queue in self._queues:
            self._queues.discard(queue)
            for table in self._tables:
                if "queue" in table.labels:
                    place = table.labels.index("queue")
                    table.forget(lambda key, place=place: key[place] == queue)  # type: ignore[misc]

    # --- store ------------------------------------------------------------------------------------------------------

    def store_call(self, operation: str, seconds: float) -> None:
        self._store_seconds.add((operation,), seconds)

    def store_operation(self, operation: str, table: str, items: int = 1, rows: int = 0) -> None:
        key: Key = (operation, table)
        self._store_operations.add(key, items)
        if rows:
            self._store_rows.add(key, rows)

    def store_rows(self, operation: str, table: str, rows: int) -> None:
        if rows:
            self._store_rows.add((operation, table), rows)

    def store_refused(self, table: str) -> None:
        self._store_refused.add((table,))

    def store_error(self, operation: str, error: BaseException) -> None:
        if isinstance(error, Unavailable):
            kind = "unavailable"
        elif isinstance(error, OutcomeUnknown):
            kind = "outcome_unknown"
        else:
            kind = "unexpected"
        self._store_errors.add((operation, kind))

    def lease_change(self, change: str) -> None:
        """`taken`, `lost` or `released`."""
        self._lease_changes.add((change,))

    def leases_held(self, count: int) -> None:
        self._leases.set((), count)

    def clock_skew(self, seconds: float) -> None:
        self._skew.set((), seconds)

    # --- what others count already ----------------------------------------------------------------------------------

    def watch_level(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """A figure that is asked for, on the loop, whenever somebody wants the metrics."""
        levels = self._levels(name, documentation)
        self._watches.append(lambda: levels.set((), read()))

    def watch_count(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """As `watch_level`, for a figure that only grows."""
        counts = self._counts(name, documentation)
        seen = 0.0

        def look() -> None:
            nonlocal seen
            now = read()
            counts.add((), max(0.0, now - seen))
            seen = now

        self._watches.append(look)

    # --- collecting -------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Before each collection, on the loop: what is watched belongs to it."""
        for watch in self._watches:
            watch()

    def collect(self) -> Iterable[Metric]:
        """What prometheus_client calls. May run on any thread."""
        return [table.family() for table in self._tables]

    # --- inside -----------------------------------------------------------------------------------------------------

    def _label(self, queue: str) -> str:
        if queue in self._queues:
            return queue
        if len(self._queues) >= limits.METRICS_QUEUES:
            return OTHER
        self._queues.add(queue)
        return queue

    def _new_route(self, route: str) -> str:
        if not route or len(self._routes) >= limits.METRICS_ROUTES:
            return OTHER
        self._routes.add(route)
        return route

    def _counts(self, name: str, documentation: str, labels: Sequence[str] = (), *known: Key) -> Counts:
        table = Counts(name, documentation, labels, *known)
        self._tables.append(table)
        return table

    def _levels(self, name: str, documentation: str, labels: Sequence[str] = ()) -> Levels:
        table = Levels(name, documentation, labels)
        self._tables.append(table)
        return table

    def _distributions(
        self, name: str, documentation: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> Distributions:
        table = Distributions(name, documentation, labels, bounds)
        self._tables.append(table)
        return table
