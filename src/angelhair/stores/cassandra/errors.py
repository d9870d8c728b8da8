"""Every failure of the driver becomes one of the port's two errors.

A read that failed changed nothing: `Unavailable`. A write that failed is `OutcomeUnknown` unless it provably never
began. What counts as proof:

 - the driver found no connection to put the request on (nothing was sent);
 - the coordinator refused the request as such: syntax, types, rights (it validates before it acts);
 - the coordinator saw too few live replicas before it asked any of them. A plain write of one partition is one
   mutation, and the count comes before the sending. A conditional write counts twice: before it prepares a ballot, at
   the serial level, and, with Paxos v1, once more before it commits, at the write level. By then the others may have
   accepted the proposal and will finish it. So only a complaint at a serial level is proof.

What does not, though it sounds like it: `Overloaded` may come after part of the replicas were asked; a time-out in
the client may start on the coordinator later; an unknown error code (0x1700, "outcome of the conditional write
unknown", is one that the driver does not know) may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping

import cassandra
from cassandra import ConsistencyLevel
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import ErrorMessage

from angelhair.errors import OutcomeUnknown, StoreError, Unavailable

SYNTAX_ERROR = 0x2000
UNAUTHORIZED = 0x2100
INVALID_REQUEST = 0x2200
CONFIGURATION_ERROR = 0x2300
REJECTED_BEFORE_ACTING = frozenset({SYNTAX_ERROR, UNAUTHORIZED, INVALID_REQUEST, CONFIGURATION_ERROR})
"""Codes of the native protocol that a coordinator answers with before it does anything."""

CONDITIONAL_WRITE_UNKNOWN = 0x1700
"""CAS_WRITE_UNKNOWN: newer than the driver, which hands it over as a bare `ErrorMessage`."""

_NEVER_SENT_MESSAGES = frozenset({"Host has been marked down or removed", "Pool is shutdown"})
"""What the driver says, in a plain `ConnectionException`, of a host that it did not even try."""

_SERIAL_LEVELS = frozenset({ConsistencyLevel.SERIAL, ConsistencyLevel.LOCAL_SERIAL})


class RequestFailed(Exception):
    """What the driver handed over in place of an answer; never leaves this store."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.cause = cause


class NotPrepared(RequestFailed):
    """The statement could not even be prepared: no request went out."""


def read_error(failed: RequestFailed) -> Unavailable:
    return Unavailable(str(failed))


def write_error(failed: RequestFailed) -> StoreError:
    """For a blind write or a drop of one partition."""
    error = failed.cause
    if isinstance(failed, NotPrepared):
        return Unavailable(str(failed))
    if _refused_as_such(error) or _never_sent(error) or isinstance(error, cassandra.Unavailable):
        return Unavailable(str(failed))
    return OutcomeUnknown(str(failed))


def change_error(failed: RequestFailed) -> StoreError:
    """For a conditional write."""
    error = failed.cause
    if isinstance(failed, NotPrepared):
        return Unavailable(str(failed))
    too_few_voters = isinstance(error, cassandra.Unavailable) and error.consistency in _SERIAL_LEVELS
    if _refused_as_such(error) or _never_sent(error) or too_few_voters:
        return Unavailable(str(failed))
    return OutcomeUnknown(str(failed))


def _refused_as_such(error: BaseException) -> bool:
    if isinstance(error, cassandra.InvalidRequest | cassandra.Unauthorized):
        return True
    return isinstance(error, ErrorMessage) and error.code in REJECTED_BEFORE_ACTING


def _never_sent(error: BaseException) -> bool:
    if not isinstance(error, NoHostAvailable):
        return False
    # It may wrap a time-out of a request that did go out: every host's own error has to be a proof.
    # An empty list means that no host was left to try.
    inner = error.errors.values() if isinstance(error.errors, Mapping) else [error]
    return all(_host_never_tried(one) for one in inner)


def _host_never_tried(error: object) -> bool:
    if isinstance(error, NoConnectionsAvailable | ConnectionBusy):
        return True
    return type(error) is ConnectionException and str(error) in _NEVER_SENT_MESSAGES
