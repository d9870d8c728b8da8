"""What the writer does, wherever it lives: one transaction for all calls that wait, the sweep, the checkpoint.

It owns the one connection that writes. Nothing here knows of an event loop; `threads.py` and `process.py` carry the
calls here and the outcomes back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
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

FULL_QUIET_MS = 10_000
"""A disk is no longer full when it has not been for so long: small commits find room between large ones that do not."""

OPEN_RETRY_SECONDS = 0.01
"""Going over to the write-ahead log needs the file alone, and SQLite does not wait for that by itself."""

Result = Outcomes | Exception

_log = logging.getLogger(__name__)


class Writing:
    def __init__(self, place: Place, tables: Sequence[Table], version: int, clock: Clock) -> None:
        self._place = place
        self._tables = tables
        self._version = version
        self._clock = clock
        self._connection: apsw.Connection | None = None
        self._log_pages = 0
        self._checkpoint_at_pages = place.checkpoint_pages
        self._sweep_at_ms = 0
        self._full_at_ms: int | None = None
        """When the disk was last found to be full, on the monotonic clock; None where nobody was told that it is."""

    def open(self) -> None:
        """Raises `StoreRefused` or `Unavailable`, with a line for people."""
        try:
            self._connection = self._connect()
        except (apsw.CantOpenError, apsw.NotADBError, apsw.ReadOnlyError) as error:
            raise StoreRefused(f"{self._place.path} cannot be opened; {errors.describe(error)}") from error
        except apsw.Error as error:
            raise errors.before_commit(error) from error

    def answer(self, calls: list[Call]) -> list[Result]:
        """Whatever happens, everyone gets an answer: a caller of a thread that died would wait for ever."""
        try:
            return self._transact(calls)
        except Exception as error:  # noqa: BLE001  see above
            _log.exception("SQLite: the writer met an error that it does not know")
            self.close()
            return failed(calls, OutcomeUnknown(f"SQLite: {error!r}"))

    def _transact(self, calls: list[Call]) -> list[Result]:
        """One transaction for all calls, and what came of each."""
        try:
            connection = self._connection or self._connect()
            self._connection = connection
            connection.execute("BEGIN IMMEDIATE")
        except StoreRefused as error:
            return failed(calls, Unavailable(str(error)))
        except apsw.Error as error:
            self._failed(error)
            return failed(calls, errors.before_commit(error))
        try:
            now_ms = self._clock.now().wall_ms
            outcomes = transactions.apply(connection, calls, now_ms)
            self._sweep(connection, now_ms)
        except Exception as error:  # noqa: BLE001  the callers are told, and the thread lives on
            self._failed(error)
            if isinstance(error, apsw.Error) and not errors.is_mistake(error):
                return failed(calls, errors.before_commit(error))
            if len(calls) == 1:
                return [ValueError(str(error)) if isinstance(error, apsw.Error) else error]
            # One call's mistake is not the others' business; only alone does each show whose it is.
            return [result for call in calls for result in self._transact([call])]
        try:
            connection.execute("COMMIT")
        except apsw.Error as error:
            self._failed(error)
            answered = failed(calls, errors.at_commit(error))
            for answers, found in zip(answered, outcomes, strict=True):
                # A refusal that was found changed nothing, whatever became of the transaction.
                answers[:] = [
                    Unavailable(errors.describe(error)) if outcome is UNEXPECTED else answer
                    for answer, outcome in zip(answers, found, strict=True)
                ]
            return [*answered]
        if self._full_at_ms is not None:
            self._note_room(self._full_at_ms)
        return [*outcomes]

    def _sweep(self, connection: apsw.Connection, now_ms: int) -> None:
        if now_ms < self._sweep_at_ms - SWEEP_EVERY_MS:  # the clock was set back
            self._sweep_at_ms = now_ms
        if now_ms >= self._sweep_at_ms:
            more = transactions.sweep(connection, self._tables, now_ms)
            self._sweep_at_ms = now_ms if more else now_ms + SWEEP_EVERY_MS

    def checkpoint(self) -> None:
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
            self.close()
        if isinstance(error, apsw.Error) and errors.costs_connection(error):
            _log.error("%s: closing the connection and opening a new one", errors.describe(error))
            self.close()

    def _failed(self, error: Exception) -> None:
        """What became of a transaction; what is said of a full disk is said once."""
        self._recover(error)
        if isinstance(error, apsw.FullError):
            if self._full_at_ms is None:
                _log.error("the disk is full: puts, receives and acks answer 503 until there is space")
            self._full_at_ms = self._clock.now().monotonic_ms

    def _note_room(self, full_at_ms: int) -> None:
        if self._clock.now().monotonic_ms - full_at_ms >= FULL_QUIET_MS:
            self._full_at_ms = None
            _log.warning("the disk has space again: puts, receives and acks are answered")

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

    def close(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close(force=True)
            except apsw.Error as error:
                _log.error("%s: while closing the connection", errors.describe(error))
            self._connection = None

    def _on_commit(self, _connection: apsw.Connection, _database: str, log_pages: int) -> int:
        self._log_pages = log_pages
        return apsw.SQLITE_OK


def failed(calls: Sequence[Call], error: Exception) -> list[Any]:
    """The same error for each item of each call."""
    return [[error] * len(call.items) for call in calls]
