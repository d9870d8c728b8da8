"""The writer: one thread that owns the connection that writes, and the bridge between it and the event loop.

Whatever was handed over while the last transaction was being committed goes into the next one: one fsync confirms
all that is waiting, whoever asked for it. There is no timer: a lone call is committed at once. Calls made in one
turn of the event loop cross over together, and the outcomes of one transaction come back together, as each crossing
wakes a thread.

There are no threads for reading; `store.py` says why.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import apsw

from angelhair.clock import Clock
from angelhair.engine.store import Table
from angelhair.errors import OutcomeUnknown, StoreRefused, Unavailable
from angelhair.stores.sqlite import errors, transactions
from angelhair.stores.sqlite.connection import Place, connect_writer
from angelhair.stores.sqlite.layout import lay_out
from angelhair.stores.sqlite.transactions import UNEXPECTED, Call, Outcomes

GROUP_ROWS = 5_000
"""A transaction takes no further call once it has this many rows: some 20 ms of work, so that the first in a crowd
does not wait for the last."""

PATIENT_CHECKPOINTS = 4
"""A log this many times longer than it should be was kept from starting over by other processes: make them wait."""

SWEEP_EVERY_MS = 1_000
"""Expired rows are invisible anyway; taking them away only frees space."""

OPEN_RETRY_SECONDS = 0.01
"""Going over to the write-ahead log needs the file alone, and SQLite does not wait for that by itself."""

Result = Outcomes | Exception
Future = asyncio.Future[Any]

_log = logging.getLogger(__name__)


class Writer:
    def __init__(self, place: Place, tables: Sequence[Table], version: int, clock: Clock) -> None:
        self._place = place
        self._tables = tables
        self._version = version
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._gathered: list[tuple[Call, Future]] = []
        self._queue: SimpleQueue[list[tuple[Call, Future]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=f"sqlite writer {place.path}", daemon=True)
        self._opened: Future = self._loop.create_future()
        self._ended: Future = self._loop.create_future()
        self._stopping = False
        # From here on only the thread looks at these.
        self._connection: apsw.Connection | None = None
        self._log_pages = 0
        self._checkpoint_at_pages = place.checkpoint_pages
        self._sweep_at_ms = 0

    # ---- on the event loop

    async def start(self) -> None:
        self._thread.start()
        await self._opened

    def submit(self, call: Call) -> Future:
        if self._stopping:
            raise Unavailable("the store is closed")
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        future: Future = self._loop.create_future()
        self._gathered.append((call, future))
        return future

    async def stop(self) -> None:
        """Finishes what was submitted, then closes the connection and ends the thread."""
        if not self._stopping:
            self._stopping = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _hand_over(self) -> None:
        if self._gathered:
            self._queue.put(self._gathered)
            self._gathered = []

    # ---- on the thread

    def _run(self) -> None:
        try:
            self._connection = self._connect()
        except Exception as error:  # noqa: BLE001  whoever opens the store is told, whatever it is
            self._deliver([(self._opened, error)])
            self._deliver([(self._ended, [])])
            return
        self._deliver([(self._opened, [])])
        open_for_more = True
        while open_for_more:
            jobs, open_for_more = self._take()
            if jobs:
                results = self._answer([call for call, _ in jobs])
                self._deliver([(future, result) for (_, future), result in zip(jobs, results, strict=True)])
            # Only now: nobody waits for a checkpoint but those who come during it.
            self._checkpoint()
        self._disconnect()
        self._deliver([(self._ended, [])])

    def _take(self) -> tuple[list[tuple[Call, Future]], bool]:
        jobs: list[tuple[Call, Future]] = []
        rows = 0
        try:
            more = self._queue.get()
            while more is not None:
                jobs += more
                rows += sum(call.rows for call, _ in more)
                if rows >= GROUP_ROWS:
                    return jobs, True
                more = self._queue.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _deliver(self, results: list[tuple[Future, Result]]) -> None:
        try:
            self._loop.call_soon_threadsafe(_settle, results)
        except RuntimeError:  # the loop was closed first: nobody is left to be told
            _log.debug("SQLite: %d outcomes came after the event loop had ended", len(results))

    def _answer(self, calls: list[Call]) -> list[Result]:
        """Whatever happens, everyone gets an answer: a caller of a thread that died would wait for ever."""
        try:
            return self._transact(calls)
        except Exception as error:  # noqa: BLE001  see above
            _log.exception("SQLite: the writer met an error that it does not know")
            self._disconnect()
            return _failed(calls, OutcomeUnknown(f"SQLite: {error!r}"))

    def _transact(self, calls: list[Call]) -> list[Result]:
        """One transaction for all calls, and what came of each."""
        try:
            connection = self._connection or self._connect()
            self._connection = connection
            connection.execute("BEGIN IMMEDIATE")
        except StoreRefused as error:
            return _failed(calls, Unavailable(str(error)))
        except apsw.Error as error:
            self._recover(error)
            return _failed(calls, errors.before_commit(error))
        try:
            now_ms = self._clock.now().wall_ms
            outcomes = transactions.apply(connection, calls, now_ms)
            self._sweep(connection, now_ms)
        except Exception as error:  # noqa: BLE001  the callers are told, and the thread lives on
            self._recover(error)
            if isinstance(error, apsw.Error) and not errors.is_mistake(error):
                return _failed(calls, errors.before_commit(error))
            if len(calls) == 1:
                return [ValueError(str(error)) if isinstance(error, apsw.Error) else error]
            # One call's mistake is not the others' business; only alone does each show whose it is.
            return [result for call in calls for result in self._transact([call])]
        try:
            connection.execute("COMMIT")
        except apsw.Error as error:
            self._recover(error)
            failed = _failed(calls, errors.at_commit(error))
            for answers, found in zip(failed, outcomes, strict=True):
                # A refusal that was found changed nothing, whatever became of the transaction.
                answers[:] = [
                    Unavailable(errors.describe(error)) if outcome is UNEXPECTED else answer
                    for answer, outcome in zip(answers, found, strict=True)
                ]
            return [*failed]
        return [*outcomes]

    def _sweep(self, connection: apsw.Connection, now_ms: int) -> None:
        if now_ms < self._sweep_at_ms - SWEEP_EVERY_MS:  # the clock was set back
            self._sweep_at_ms = now_ms
        if now_ms >= self._sweep_at_ms:
            more = transactions.sweep(connection, self._tables, now_ms)
            self._sweep_at_ms = now_ms if more else now_ms + SWEEP_EVERY_MS

    def _checkpoint(self) -> None:
        """Carries the log over into the file, so that the log can start over.

        SQLite would do it inside a COMMIT, and have that caller wait. A passive checkpoint disturbs nobody, but while
        other processes keep writing it never gets to the end of the log; so beyond a bound it locks them out.
        """
        connection = self._connection
        if connection is None or self._log_pages < self._checkpoint_at_pages:
            return
        must_wait = self._log_pages >= PATIENT_CHECKPOINTS * self._place.checkpoint_pages
        mode = apsw.SQLITE_CHECKPOINT_RESTART if must_wait else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            in_log, carried = connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            in_log, carried = self._log_pages, 0
        except apsw.Error as error:
            # Nothing is lost: the log still holds everything, and the pages are written anew by the next checkpoint.
            _log.error("%s: the checkpoint failed and will be repeated", errors.describe(error))
            self._recover(error)
            in_log, carried = self._log_pages, 0
        done = carried >= in_log
        self._checkpoint_at_pages = self._place.checkpoint_pages + (0 if done else self._log_pages)
        self._log_pages = 0

    def _recover(self, error: Exception) -> None:
        """Leaves no transaction open, and no connection that may have lost touch with the disk."""
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error as another:
            _log.error("%s: the rollback failed too", errors.describe(another))
            self._disconnect()
        if isinstance(error, apsw.Error) and errors.costs_connection(error):
            _log.error("%s: closing the connection and opening a new one", errors.describe(error))
            self._disconnect()

    def _connect(self) -> apsw.Connection:
        deadline_ms = self._clock.now().monotonic_ms + self._place.busy_timeout_ms
        while True:
            connection = None
            try:
                connection = connect_writer(self._place)
                lay_out(connection, self._tables, self._version)
                connection.set_wal_hook(self._on_commit)
                return connection
            except BaseException as error:
                if connection is not None:
                    connection.close(force=True)
                if not isinstance(error, apsw.BusyError) or self._clock.now().monotonic_ms > deadline_ms:
                    raise
            time.sleep(OPEN_RETRY_SECONDS)

    def _disconnect(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close(force=True)
            except apsw.Error as error:
                _log.error("%s: while closing the connection", errors.describe(error))
            self._connection = None

    def _on_commit(self, _connection: apsw.Connection, _database: str, log_pages: int) -> int:
        self._log_pages = log_pages
        return apsw.SQLITE_OK


def _failed(calls: Sequence[Call], error: Exception) -> list[Any]:
    return [[error] * len(call.items) for call in calls]


def _settle(results: list[tuple[Future, Result]]) -> None:
    for future, result in results:
        if future.done():  # its task was cancelled
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
