"""`python -m bench.bare_driver`: what the bare driver reaches with the groups that a server had. Says it as JSON.

No HTTP, no engine, no event loop of ours: prepared statements, the driver's own callbacks, and per group only what a
queue cannot do without, on the tables of the same keyspace:

    put      a conditional reservation, then an unlogged batch of bodies and one read of the marks; the next
             reservation begins as soon as the last one is through, and so many groups may be writing at once as
             batching allows
    take     two reads side by side (sequence, marks), bodies read ahead as the engine does, a conditional batch that
             claims; beside that, at the same time, conditional batches that ack what was claimed

Rows of one bucket lie in one partition, so claims and acks meet there. Whether it pays to let them take turns, as our
store does, or to leave it to Cassandra is tried both ways (`--turns`); the better one counts. `--under-way` bounds how
many messages are on their way at once: over HTTP, so many connections have no more requests than that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from cassandra.cluster import Session
from cassandra.query import BatchStatement, BatchType

from angelhair import limits
from bench.bare import BUCKET_ROWS, Bare, body_statements, connected, must_apply, sizes, split

BODY = b"x" * 200
"""As the clients over HTTP put it."""

FILL_ROWS = 250
"""Bodies of one batch when a queue is filled beforehand: of one bucket."""

FILLS_AT_ONCE = 8


class Puts(Bare):
    def __init__(self, session: Session, keyspace: str, messages: int, group: float, under_way: int) -> None:
        super().__init__(session, keyspace, messages)
        self._reserving = self.prepared(
            "UPDATE KEYSPACE.sequences SET next = ?, attempt = ? WHERE partition = ? AND key = 'ids' "
            "IF next = ? AND deleted = null AND sealed = null"
        )
        self._first_body, self._next_body = body_statements(self)
        self._marks = self.prepared("SELECT key, value FROM KEYSPACE.pointers WHERE partition = ?")
        self._lane = f"{self.place}.0"
        beginning = self.prepared(
            "UPDATE KEYSPACE.sequences SET next = 0 WHERE partition = ? AND key = 'ids' IF next = null"
        )
        session.execute(beginning.bind((self._lane,)))
        self._groups = sizes(group, messages)
        self._count = next(self._groups, 0)
        self._next = 0
        self._reserved_to = 0
        self._confirmed = 0
        self._writing = 0
        self._under_way = under_way

    def begin(self) -> None:
        self._reserve()

    def _reserve(self) -> None:
        """The next group, unless a reservation is under way or there is no room for what it would bring."""
        count, first = self._count, self._next
        free = self._next == self._reserved_to and self._writing < limits.PUT_GROUPS_WRITING
        if free and count and (first + count - self._confirmed <= self._under_way or first == self._confirmed):
            self._count = next(self._groups, 0)
            self._next += count
            statement = self._reserving.bind((first + count, uuid.uuid4().hex, self._lane, first))
            self.ask(statement, lambda rows: self._reserved(rows, first, count))

    def _reserved(self, rows: Any, first: int, count: int) -> None:
        must_apply(rows)
        self._reserved_to = first + count
        self._writing += 1
        now_ms = int(time.time() * 1000)
        by_bucket: dict[str, list[int]] = {}
        for number in range(first, first + count):
            by_bucket.setdefault(self.bucket(number), []).append(number)
        waiting = len(by_bucket)

        def written(_: Any) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self.ask(self._marks.bind((self._lane,)), lambda _: self._confirm(count))

        for bucket, numbers in by_bucket.items():
            batch = BatchStatement(BatchType.UNLOGGED)
            for index, number in enumerate(numbers):
                batch.add(self._next_body if index else self._first_body, (BODY, now_ms, bucket, number))
            self.ask(batch, written)
        self._reserve()

    def _confirm(self, count: int) -> None:
        self._writing -= 1
        self._confirmed += count
        self.through(count)
        self._reserve()


class Takes(Bare):
    def __init__(
        self,
        session: Session,
        keyspace: str,
        messages: int,
        group: float,
        ack_group: float,
        under_way: int,
        turns: bool,
    ) -> None:
        super().__init__(session, keyspace, messages)
        self._sequence = self.prepared("SELECT next, deleted, sealed FROM KEYSPACE.sequences WHERE partition = ?")
        self._marks = self.prepared("SELECT key, value FROM KEYSPACE.pointers WHERE partition = ?")
        self._bodies = self.prepared(
            "SELECT key, body, attributes, enqueued_at, visible_from, origin, keyed FROM KEYSPACE.bodies "
            "WHERE partition = ? AND key >= ? AND key <= ?"
        )
        claimed = (
            "UPDATE KEYSPACE.states SET delivery = 1, revision = 1, visible_at = ?, duration = ?, claim = ?, "
            "first_delivered_at = ? WHERE partition = ? AND key = ? IF delivery = null"
        )
        acked = (
            "UPDATE KEYSPACE.states SET settled = 'acked', settled_at = ? WHERE partition = ? AND key = ? "
            "IF delivery = 1 AND settled = null"
        )
        # What is asked of the bucket itself rides on the first row of a batch.
        self._claim_first = self.prepared(claimed + " AND opened = ? AND final = null AND finished = null")
        self._claim_next = self.prepared(claimed)
        self._ack_first = self.prepared(acked + " AND finished = null")
        self._ack_next = self.prepared(acked)
        self._lane = f"{self.place}.0"
        self._groups = sizes(group, messages)
        self._count = next(self._groups, 0)
        self._under_way = under_way
        self._receiving = False
        self._ack_groups = sizes(ack_group, messages)
        self._turns = turns
        self._line: deque[tuple[Any, Callable[[Any], None]]] = deque()
        self._busy = False
        self._asked = self._read_to = self._claimed = self._acked = 0
        self._acking = False
        self._ack_wanted = next(self._ack_groups, 0)
        self._fill()

    def begin(self) -> None:
        self._receive()

    # --- claims -----------------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        """The next group, unless one is under way or there is no room for what it would bring."""
        count, first = self._count, self._asked
        if self._receiving or not count or (first + count - self._acked > self._under_way and first > self._acked):
            return
        self._receiving = True
        self._count = next(self._groups, 0)
        self._asked += count
        waiting = 2

        def looked(_: Any) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._read_ahead(first, count)

        self.ask(self._sequence.bind((self._lane,)), looked)
        self.ask(self._marks.bind((self._lane,)), looked)

    def _read_ahead(self, first: int, count: int) -> None:
        """As many bodies as the engine reads ahead of demand, whenever those read before do not suffice."""
        if first + count <= self._read_to:
            self._claim(first, count)
            return
        begin = self._read_to
        # Of one bucket at a time, as they lie.
        end = min(begin + limits.PREFETCH_MESSAGES, (begin // BUCKET_ROWS + 1) * BUCKET_ROWS, self.messages)
        self._read_to = end
        statement = self._bodies.bind((self.bucket(begin), begin, end - 1))
        self.ask(statement, lambda rows: self._read_ahead(first, count) if len(list(rows)) == end - begin else _gone())

    def _claim(self, first: int, count: int) -> None:
        now_ms, token = int(time.time() * 1000), uuid.uuid4().hex
        parts = split(first, count)
        waiting = len(parts)

        def claimed(rows: Any) -> None:
            nonlocal waiting
            must_apply(rows)
            waiting -= 1
            if not waiting:
                self._claimed = first + count
                self._receiving = False
                self._ack()
                self._receive()

        for begin, end in parts:
            bucket = self.bucket(begin)
            batch = BatchStatement(BatchType.UNLOGGED)
            for number in range(begin, end):
                values = (now_ms + 30_000, 30_000, token, now_ms, bucket, number)
                if number == begin:
                    batch.add(self._claim_first, (*values, "open"))
                else:
                    batch.add(self._claim_next, values)
            self._change(batch, claimed)

    # --- acks -------------------------------------------------------------------------------------------------------

    def _ack(self) -> None:
        # Groups of the size that they had; smaller only if nothing else is on its way to fill them.
        ready = self._claimed - self._acked
        if self._acking or not ready or (ready < self._ack_wanted and self._receiving):
            return
        first, count = self._acked, min(ready, self._ack_wanted)
        if count == self._ack_wanted:
            self._ack_wanted = next(self._ack_groups, 0) or self.messages
        self._acking = True
        now_ms = int(time.time() * 1000)
        parts = split(first, count)
        waiting = len(parts)

        def acked(rows: Any) -> None:
            nonlocal waiting
            must_apply(rows)
            waiting -= 1
            if not waiting:
                self._acking = False
                self._acked = first + count
                self.through(count)
                self._receive()
                self._ack()

        for begin, end in parts:
            batch = BatchStatement(BatchType.UNLOGGED)
            for number in range(begin, end):
                statement = self._ack_first if number == begin else self._ack_next
                batch.add(statement, (now_ms, self.bucket(begin), number))
            self._change(batch, acked)

    # --- one conditional write at a time, or as they come -----------------------------------------------------------

    def _change(self, statement: Any, then: Callable[[Any], None]) -> None:
        if not self._turns:
            self.ask(statement, then)
            return
        self._line.append((statement, then))
        self._go_on()

    def _go_on(self) -> None:
        if self._busy or not self._line:
            return
        self._busy = True
        statement, then = self._line.popleft()

        def answered(rows: Any) -> None:
            self._busy = False
            self._go_on()
            then(rows)

        self.ask(statement, answered)

    def _fill(self) -> None:
        """Bodies to be taken, and the flags of their buckets: what stands there before anybody receives."""
        first, following = body_statements(self)
        opened = self.prepared("UPDATE KEYSPACE.states SET opened = 'open' WHERE partition = ? IF opened = null")
        under_way: deque[Any] = deque()
        for begin in range(0, self.messages, FILL_ROWS):
            batch = BatchStatement(BatchType.UNLOGGED)
            for number in range(begin, min(begin + FILL_ROWS, self.messages)):
                batch.add(following if number > begin else first, (BODY, 1, self.bucket(number), number))
            under_way.append(self.session.execute_async(batch))
            if len(under_way) >= FILLS_AT_ONCE:
                under_way.popleft().result()
        for begin in range(0, self.messages, BUCKET_ROWS):
            under_way.append(self.session.execute_async(opened.bind((self.bucket(begin),))))
        for response in under_way:
            response.result()


def _gone() -> None:
    raise RuntimeError("bodies that were filled in are not there")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bare_driver", description=__doc__)
    parser.add_argument("--contact-points", required=True)
    parser.add_argument("--keyspace", required=True)
    parser.add_argument("--verb", choices=("put", "take"), required=True)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--group", type=float, required=True)
    parser.add_argument("--ack-group", type=float, default=1.0)
    parser.add_argument("--under-way", type=int, required=True, help="messages at once, at most")
    parser.add_argument("--turns", action="store_true")
    options = parser.parse_args()
    cluster = connected(options.contact_points.split(","))
    try:
        session = cluster.connect()
        work: Bare
        if options.verb == "put":
            work = Puts(session, options.keyspace, options.messages, options.group, options.under_way)
        else:
            work = Takes(
                session,
                options.keyspace,
                options.messages,
                options.group,
                options.ack_group,
                options.under_way,
                options.turns,
            )
        print(json.dumps({"seconds": work.run()}))
    finally:
        cluster.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
