"""What SQLite's errors mean in the port's two words, and which of them cost the connection."""

from __future__ import annotations

import apsw

from angelhair.errors import OutcomeUnknown, StoreError, Unavailable

_DID_NOT_COMMIT = (apsw.BusyError, apsw.FullError)
"""Errors of COMMIT itself that prove that nothing was committed. The commit mark is the last thing that a commit
writes to the log: a lock that was not got means that it was not begun, and a full disk that it was not finished (a
disk that fills up during fsync is an I/O error, not this one). The rest, above all a failed fsync, may have left the
mark in the file, where the next recovery will find it."""

_CONNECTION_LOST = (apsw.IOError, apsw.CorruptError, apsw.CantOpenError, apsw.NotADBError, apsw.NoMemError,
                    apsw.MisuseError, apsw.InternalError)
"""After these SQLite's cache, or the kernel's, may no longer match the disk. A new connection reads it afresh."""

_MISTAKES = (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError, apsw.SQLError, apsw.RangeError)
"""The statement was wrong, not the store: a value of another type than its column, a column that is not there."""


def before_commit(error: apsw.Error) -> StoreError:
    """For an error met before COMMIT was given: the transaction was rolled back, or never was."""
    return Unavailable(describe(error))


def at_commit(error: apsw.Error) -> StoreError:
    if isinstance(error, _DID_NOT_COMMIT):
        return Unavailable(describe(error))
    return OutcomeUnknown(describe(error))


def costs_connection(error: apsw.Error) -> bool:
    return isinstance(error, _CONNECTION_LOST)


def is_mistake(error: apsw.Error) -> bool:
    """The caller's own fault: it concerns one call, and no other call of the same transaction."""
    return isinstance(error, _MISTAKES)


def describe(error: apsw.Error) -> str:
    code = getattr(error, "extendedresult", None)
    name = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes.get(code) if code else None
    return f"SQLite: {error}" + (f" ({name})" if name else "")
