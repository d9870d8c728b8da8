"""What the driver's failures become (rows 3, 5, 6): proof that nothing happened, or else unknown."""

from __future__ import annotations

import struct
from io import BytesIO

import cassandra
import pytest
from cassandra import ConsistencyLevel, OperationTimedOut, WriteType
from cassandra.cluster import ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException, ConnectionShutdown
from cassandra.policies import RetryPolicy
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import ErrorMessage, OverloadedErrorMessage, ServerError, SyntaxException

from angelhair.errors import OutcomeUnknown, StoreError, Unavailable
from angelhair.stores.cassandra.connect import _cluster
from angelhair.stores.cassandra.errors import (
    CONDITIONAL_WRITE_UNKNOWN,
    NotPrepared,
    RequestFailed,
    change_error,
    read_error,
    write_error,
)
from angelhair.stores.cassandra.settings import CassandraSettings
from angelhair.stores.cassandra.store import CHANGE, READ, SERIAL_READ, WRITE

NEVER_TRIED = ConnectionException("Host has been marked down or removed")


def too_few(level: int) -> cassandra.Unavailable:
    return cassandra.Unavailable("too few", consistency=level, required_replicas=2, alive_replicas=1)


def timed_out(kind: int) -> cassandra.WriteTimeout:
    return cassandra.WriteTimeout("late", consistency=ConsistencyLevel.LOCAL_QUORUM, write_type=kind)


def from_the_wire(code: int) -> ErrorMessage:
    """What the driver makes of an error with this code and no further fields that it knows of."""
    text = b"CAS operation result is unknown"
    return ErrorMessage.recv_body(BytesIO(struct.pack(">iH", code, len(text)) + text), 5)


def host_errors(*errors: BaseException) -> NoHostAvailable:
    return NoHostAvailable("nobody", {f"127.0.0.{number}": error for number, error in enumerate(errors, 1)})


@pytest.mark.parametrize(
    ("error", "of_a_write", "of_a_change"),
    [
        (OperationTimedOut({}, None), OutcomeUnknown, OutcomeUnknown),
        (timed_out(WriteType.UNLOGGED_BATCH), OutcomeUnknown, OutcomeUnknown),
        (timed_out(WriteType.CAS), OutcomeUnknown, OutcomeUnknown),
        (cassandra.WriteFailure("no", consistency=ConsistencyLevel.ONE), OutcomeUnknown, OutcomeUnknown),
        (ConnectionShutdown("closed under it"), OutcomeUnknown, OutcomeUnknown),
        (OverloadedErrorMessage(0x1001, "busy", None), OutcomeUnknown, OutcomeUnknown),
        (ServerError(0x0000, "oops", None), OutcomeUnknown, OutcomeUnknown),
        (cassandra.ReadTimeout("late", consistency=ConsistencyLevel.SERIAL), OutcomeUnknown, OutcomeUnknown),
        (ValueError("a bug in the driver"), OutcomeUnknown, OutcomeUnknown),
        # Counted before anything was sent, or, at the write level, perhaps before the commit of an accepted proposal.
        (too_few(ConsistencyLevel.LOCAL_QUORUM), Unavailable, OutcomeUnknown),
        (too_few(ConsistencyLevel.LOCAL_SERIAL), Unavailable, Unavailable),
        (too_few(ConsistencyLevel.SERIAL), Unavailable, Unavailable),
        (cassandra.InvalidRequest("no such column"), Unavailable, Unavailable),
        (cassandra.Unauthorized("not you"), Unavailable, Unavailable),
        (SyntaxException(0x2000, "what?", None), Unavailable, Unavailable),
        (host_errors(), Unavailable, Unavailable),
        (host_errors(NEVER_TRIED, NoConnectionsAvailable(), ConnectionBusy()), Unavailable, Unavailable),
        # One host that may have got it is enough.
        (host_errors(NEVER_TRIED, OperationTimedOut({}, None)), OutcomeUnknown, OutcomeUnknown),
        (host_errors(NEVER_TRIED, ConnectionShutdown("closed")), OutcomeUnknown, OutcomeUnknown),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else repr(value)[:60],
)
def test_row_03_only_proof_makes_a_failed_write_unavailable(
    error: BaseException, of_a_write: type[StoreError], of_a_change: type[StoreError]
) -> None:
    assert type(write_error(RequestFailed(error))) is of_a_write
    assert type(change_error(RequestFailed(error))) is of_a_change
    assert type(read_error(RequestFailed(error))) is Unavailable


def test_row_06_the_code_that_the_driver_does_not_know_is_an_unknown_outcome() -> None:
    error = from_the_wire(CONDITIONAL_WRITE_UNKNOWN)
    assert type(error) is ErrorMessage, "the driver has learnt this code: see what it makes of it now"
    assert not isinstance(error, cassandra.DriverException), "whoever catches the driver's own errors misses this one"
    assert type(change_error(RequestFailed(error))) is OutcomeUnknown


def test_row_03_what_could_not_be_prepared_was_not_sent() -> None:
    failed = NotPrepared(OperationTimedOut({}, None))
    assert type(write_error(failed)) is Unavailable
    assert type(change_error(failed)) is Unavailable


def decisions(policy: RetryPolicy, retry: int) -> set[int]:
    return {
        policy.on_write_timeout(None, ConsistencyLevel.QUORUM, WriteType.CAS, 2, 1, retry_num=retry)[0],
        policy.on_write_timeout(None, ConsistencyLevel.QUORUM, WriteType.BATCH_LOG, 2, 1, retry_num=retry)[0],
        policy.on_unavailable(None, ConsistencyLevel.QUORUM, 2, 1, retry_num=retry)[0],
        policy.on_request_error(None, ConsistencyLevel.QUORUM, ConnectionShutdown("closed"), retry_num=retry)[0],
    }


def test_row_05_the_driver_never_repeats_a_write_by_itself() -> None:
    profiles: dict[str, ExecutionProfile] = _cluster(CassandraSettings()).profile_manager.profiles
    assert decisions(RetryPolicy(), 0) != {RetryPolicy.RETHROW}, "the driver's default repeats some: hence the row"
    for name in (CHANGE, WRITE, SERIAL_READ):
        assert decisions(profiles[name].retry_policy, 0) == {RetryPolicy.RETHROW}, name
    for profile in profiles.values():
        assert profile.speculative_execution_policy.new_plan("keyspace", "statement").next_execution("host") < 0
    again = profiles[READ].retry_policy
    quorum = ConsistencyLevel.QUORUM
    tries = [again.on_read_timeout(None, quorum, 2, 1, False, retry_num=number)[0] for number in (0, 1)]
    assert tries == [RetryPolicy.RETRY_NEXT_HOST, RetryPolicy.RETHROW]
