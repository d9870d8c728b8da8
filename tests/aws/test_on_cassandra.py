"""boto3 and Celery once more, with a real Cassandra behind the door: what clients see must not depend on the store."""

# ruff: noqa: F401 - pytest finds tests and fixtures by their names here; the server is another one
from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.testing import connected_store, fresh_keyspace, shared_cluster
from tests.aws.queues import client_of
from tests.aws.test_celery import tasks, test_tasks_retries_times_and_chords, variables
from tests.aws.test_fifo import (
    make_fifo,
    test_a_group_goes_on_when_what_is_in_flight_is_deleted,
    test_a_key_in_its_group,
    test_dead_letters_keep_their_order_and_their_ids,
    test_messages_of_a_group_come_in_order_and_one_group_first,
    test_released_it_comes_again_before_the_next,
    test_sequence_numbers_only_grow,
    test_the_same_key_is_one_message_also_after_it_was_deleted,
)
from tests.aws.test_messages import (
    test_a_delay_of_the_message_and_of_the_queue,
    test_a_delete_whose_answer_was_lost_is_done_once,
    test_a_long_poll_is_answered_when_something_comes,
    test_a_megabyte_with_its_attributes_goes_through,
    test_a_poisoned_message_goes_to_the_dead_letters_under_its_id,
    test_an_old_receipt_is_answered_with_success_and_deletes_nothing,
    test_batches_of_ten_with_one_bad_entry_each,
    test_deleted_it_does_not_come_back,
    test_extended_and_released,
    test_messages_expire_after_the_retention_period,
    test_what_is_sent_arrives_with_its_id_and_its_checksums,
)
from tests.aws.test_moving import (
    dead,
    source,
    test_a_task_whose_server_is_gone_is_taken_over,
    test_back_to_where_they_came_from,
)
from tests.aws.test_queues import (
    test_attributes_that_are_set_are_said_and_stay_beside_the_others,
    test_counts_are_right_when_it_is_quiet,
    test_deleted_and_made_again_at_once_it_holds_nothing_of_the_old,
    test_listed_by_their_beginning_in_pages,
    test_purged_of_all_and_not_twice_in_a_minute,
    test_tags,
)
from tests.wire.server import RunningServer, running_server

pytestmark = pytest.mark.cassandra


@pytest.fixture(scope="module")
def on_cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    cluster = shared_cluster()
    keyspace = asyncio.run(fresh_keyspace(cluster))
    with running_server(tmp_path_factory.mktemp("aws"), opening=lambda: connected_store(cluster, keyspace)) as server:
        yield server


@pytest.fixture
def server(on_cassandra: RunningServer) -> Iterator[RunningServer]:
    yield on_cassandra
    on_cassandra.store.heal()


@pytest.fixture(scope="module")
def sqs(on_cassandra: RunningServer) -> Any:
    return client_of(on_cassandra)
