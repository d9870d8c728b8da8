"""What the bare driver's measurements share: a chain of requests in its callbacks, and how groups are cut."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, TokenAwarePolicy
from cassandra.query import tuple_factory

BUCKET_ROWS = 1_000
"""As a queue has it by default."""

PATIENCE_SECONDS = 300
"""More than any of this takes; after it a chain stands still."""


class Bare:
    """A chain of requests that goes on in the driver's callbacks until its messages are through."""

    def __init__(self, session: Session, keyspace: str, messages: int) -> None:
        self.session = session
        self.keyspace = keyspace
        self.messages = messages
        self.place = uuid.uuid4().hex
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._through = 0

    def prepared(self, text: str) -> Any:
        return self.session.prepare(text.replace("KEYSPACE", self.keyspace))

    def ask(self, statement: Any, then: Callable[[Any], None]) -> None:
        def answered(rows: Any) -> None:
            try:
                with self._lock:
                    then(rows)
            except BaseException as error:  # noqa: BLE001 - the driver would only log it, and we would wait for ever
                self._fail(error)

        self.session.execute_async(statement).add_callbacks(answered, self._fail)

    def run(self) -> float:
        """Seconds until the last message was through."""
        began = time.perf_counter()
        with self._lock:
            self.begin()
        if not self._over.wait(PATIENCE_SECONDS):
            raise TimeoutError("the bare driver stands still")
        if self._error is not None:
            raise self._error
        return time.perf_counter() - began

    def begin(self) -> None:
        raise NotImplementedError

    def through(self, count: int) -> None:
        self._through += count
        if self._through >= self.messages:
            self._over.set()

    def bucket(self, number: int) -> str:
        return f"{self.place}.0.{number // BUCKET_ROWS}"

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._over.set()


def body_statements(bare: Bare) -> tuple[Any, Any]:
    """Of a batch the first also marks the partition, as our store does for its drops."""
    text = "UPDATE KEYSPACE.bodies SET body = ?, enqueued_at = ?{} WHERE partition = ? AND key = ?"
    return bare.prepared(text.format(", written = true")), bare.prepared(text.format(""))


def sizes(average: float, messages: int) -> Iterator[int]:
    """Whole sizes with this average, so many messages in all."""
    given, groups = 0, 0
    while given < messages:
        groups += 1
        size = max(1, min(round(groups * average) - given, messages - given))
        given += size
        yield size


def split(first: int, count: int) -> list[tuple[int, int]]:
    """A run of ids, cut where buckets end."""
    parts = []
    end = first + count
    while first < end:
        border = min(end, (first // BUCKET_ROWS + 1) * BUCKET_ROWS)
        parts.append((first, border))
        first = border
    return parts


def must_apply(rows: Any) -> None:
    if not rows[0][0]:
        raise RuntimeError(f"a conditional write was refused: {rows[0]}")


def connected(contact_points: Sequence[str]) -> Cluster:
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(), shuffle_replicas=False),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=PATIENCE_SECONDS,
        row_factory=tuple_factory,
    )
    return Cluster(
        list(contact_points),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )
