"""Topics of SNS in a real Cassandra: two servers, one key that both sign with, one endpoint that either may post to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from angelhair.stores.cassandra import create_keyspace
from cluster import CassandraCluster
from cluster.testing import fresh_settings
from tests.aws.keys.keyed import keyed
from tests.aws.listener import listening
from tests.aws.test_publishing import verify

PUBLICATIONS = 10


def test_what_is_published_on_either_of_two_servers_reaches_queues_and_endpoints(
    cassandra_cluster: CassandraCluster, tmp_path: Path
) -> None:
    wanted = fresh_settings(cassandra_cluster)
    asyncio.run(create_keyspace(wanted))
    places = ("--contact-points", ",".join(wanted.contact_points), "--keyspace", wanted.keyspace)
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    flag = "--allow-private-endpoints"
    with (
        listening() as endpoint,
        keyed(folders[0], flag, place=places) as one,
        keyed(folders[1], flag, place=places, first_key=False) as other,
    ):
        key = one.key(one.account("shop"))
        sqs, sides = one.client(key), [one.client(key, "sns"), other.client(key, "sns")]
        url = sqs.create_queue(QueueName="orders")["QueueUrl"]
        queue = f"arn:aws:sqs:eu-west-1:{key.account}:orders"
        topic = sides[0].create_topic(Name="orders")["TopicArn"]
        sides[1].subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue)
        sides[0].subscribe(
            TopicArn=topic, Protocol="http", Endpoint=endpoint.url,
            Attributes={"FilterPolicy": '{"loud": [{"exists": true}]}'},
        )
        sides[1].confirm_subscription(TopicArn=topic, Token=endpoint.next().message["Token"])
        loud = {"loud": {"DataType": "String", "StringValue": "yes"}}
        for number in range(PUBLICATIONS):
            side = sides[number % 2]
            side.publish(TopicArn=topic, Message=str(number), MessageAttributes=loud if number >= 8 else {})
        assert {endpoint.next().message["Message"] for _ in range(2)} == {"8", "9"}
        found = {}
        while len(found) < PUBLICATIONS:
            for message in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MaxNumberOfMessages=10)["Messages"]:
                notification = json.loads(message["Body"])
                found[notification["Message"]] = notification
        assert sorted(found, key=int) == [str(number) for number in range(PUBLICATIONS)]
        assert len({one["SigningCertURL"].rpartition("/")[2] for one in found.values()}) == 1
        for notification in (found["0"], found["1"]):
            verify(notification)
