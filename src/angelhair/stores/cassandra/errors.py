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

import re
from collections.abc import Mapping

import cassandra
from cassandra import ConsistencyLevel
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException, ProtocolError
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


REASON_CHARACTERS = 200
"""Of what a driver says; some of its sentences hold a whole cluster."""

_OTHER_PROTOCOL = "This version of the driver does not support protocol version"
"""It takes the first byte that came for one: a web server's "HTTP" is 72. Cassandra answers in one that was offered."""

_SAID_BY_SERVER = re.compile(r'message="(.*)"', re.DOTALL)
_SAID_LAST = re.compile(r"Last error: (.*?)\"?$", re.DOTALL)


class RequestFailed(Exception):
    """What the driver handed over in place of an answer; never leaves this store."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(in_words(cause))
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
    if refused_as_such(error) or _never_sent(error) or isinstance(error, cassandra.Unavailable):
        return Unavailable(str(failed))
    return OutcomeUnknown(str(failed))


def change_error(failed: RequestFailed) -> StoreError:
    """For a conditional write."""
    error = failed.cause
    if isinstance(failed, NotPrepared):
        return Unavailable(str(failed))
    too_few_voters = isinstance(error, cassandra.Unavailable) and error.consistency in _SERIAL_LEVELS
    if refused_as_such(error) or _never_sent(error) or too_few_voters:
        return Unavailable(str(failed))
    return OutcomeUnknown(str(failed))


def refused_as_such(error: BaseException) -> bool:
    """Whether the coordinator looked at the request and would not have it: asking again cannot help."""
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


# --- for people -------------------------------------------------------------------------------------------------------


def on_each_node(error: BaseException) -> dict[str, BaseException]:
    """What the driver met on each node, where it says."""
    each = getattr(error, "errors", None)
    if not isinstance(each, Mapping):
        return {}
    return {str(place): reason for place, reason in each.items() if isinstance(reason, BaseException)}


def in_words(error: BaseException) -> str:
    """What the driver met, in one line and without its innards."""
    if isinstance(error, cassandra.OperationTimedOut):
        return "no answer in time" + (f" from {error.last_host}" if error.last_host else "")
    if isinstance(error, cassandra.UnresolvableContactPoints):
        return "none of these names has an address"
    if isinstance(error, ProtocolError) and str(error).startswith(_OTHER_PROTOCOL):
        return "what answers there does not speak Cassandra's protocol; see cassandra_port"
    said = {place: in_words(reason) for place, reason in on_each_node(error).items()}
    if not said:
        return "no node is there to be asked" if isinstance(error, NoHostAvailable) else _one_line(error)
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{place}: {reason}" for place, reason in said.items())


def _one_line(error: BaseException) -> str:
    text = str(error)
    quoted = _SAID_BY_SERVER.search(text) or _SAID_LAST.search(text)
    line = " ".join((quoted.group(1) if quoted else text).split()) or type(error).__name__
    return line if len(line) <= REASON_CHARACTERS else line[:REASON_CHARACTERS] + "…"
