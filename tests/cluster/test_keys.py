"""Access keys in a real Cassandra: made by the command, asked for by every server of the keyspace."""

from __future__ import annotations

import asyncio
from pathlib import Path

from angelhair.stores.cassandra import create_keyspace
from cluster import CassandraCluster
from cluster.testing import fresh_settings
from tests.aws.keys.keyed import Key, keyed, refusal, until


def test_two_servers_know_of_the_keys_that_either_sees_made(
    cassandra_cluster: CassandraCluster, tmp_path: Path
) -> None:
    wanted = fresh_settings(cassandra_cluster)
    asyncio.run(create_keyspace(wanted))
    places = ("--contact-points", ",".join(wanted.contact_points), "--keyspace", wanted.keyspace)
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    with keyed(folders[0], place=places) as one, keyed(folders[1], place=places, first_key=False) as other:
        key = one.key(one.account("shop"))
        url = one.client(key).create_queue(QueueName="orders")["QueueUrl"]
        there = url.replace(one.url, other.url)
        other.client(key).send_message(QueueUrl=there, MessageBody="hello")
        (message,) = one.client(key).receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
        assert message["Body"] == "hello"
        for server in (one, other):
            assert refusal(server.client(Key(key.id, "wrong", "")).list_queues) == (403, "SignatureDoesNotMatch")
        one.run("key", "disable", key.id)

        def locked_out() -> bool:
            with one.rest(key) as first, other.rest(key) as second:
                return {line.get("/queues").status_code for line in (first, second)} == {401}

        until(locked_out)
