"""D6, D1: a databag as boto3 has it: every action that a standard queue has, and a clear no to what it cannot do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.aws.queues import AwsQueue
from tests.aws.test_queues import code_of, policy, text_of
from tests.aws.topics import WAIT_SECONDS, AwsTopic, bodies, notification, received, text
from tests.wire.server import RunningServer

Make = Callable[..., AwsQueue]
MakeTopic = Callable[..., AwsTopic]
KIND = {"Angelhair.Kind": "databag"}
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")


@pytest.fixture
def databag(make: Make) -> AwsQueue:
    return make(**KIND)


def counts(queue: AwsQueue) -> list[str]:
    found = queue.attributes(*COUNTS)
    return [found[name] for name in COUNTS]


def many(queue: AwsQueue, count: int) -> list[dict[str, Any]]:
    entries = [{"Id": str(number), "MessageBody": str(number)} for number in range(count)]
    answer = queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    assert not answer.get("Failed")
    found: list[dict[str, Any]] = answer["Successful"]
    return found


# --- queues -----------------------------------------------------------------------------------------------------------


def test_a_databag_is_made_and_says_what_it_is(make: Make) -> None:
    queue = make(**KIND, **{"Angelhair.MinPartitions": 20, "Angelhair.MaxPartitions": 50, "VisibilityTimeout": 5})
    asked = queue.attributes("Angelhair.Kind", "Angelhair.MinPartitions", "Angelhair.MaxPartitions")
    assert asked == {"Angelhair.Kind": "databag", "Angelhair.MinPartitions": "20", "Angelhair.MaxPartitions": "50"}
    found = queue.attributes()
    assert (found["VisibilityTimeout"], found["DelaySeconds"]) == ("5", "0")
    assert "RedrivePolicy" not in found and "FifoQueue" not in found
    same = {**KIND, "Angelhair.MinPartitions": "20"}
    assert queue.sqs.create_queue(QueueName=queue.name, Attributes=same)["QueueUrl"] == queue.url
    with pytest.raises(ClientError) as caught:
        queue.sqs.create_queue(QueueName=queue.name, Attributes={**KIND, "Angelhair.MinPartitions": "21"})
    assert code_of(caught) == "QueueAlreadyExists"


def test_the_bounds_of_its_partitions_change_while_it_works(databag: AwsQueue) -> None:
    databag.set(**{"Angelhair.MinPartitions": 128, "VisibilityTimeout": 7, "ReceiveMessageWaitTimeSeconds": 3})
    found = databag.attributes()
    assert (found["Angelhair.MinPartitions"], found["VisibilityTimeout"]) == ("128", "7")
    assert found["ReceiveMessageWaitTimeSeconds"] == "3"


def test_the_most_alone_is_enough_for_a_new_one_and_a_change_that_contradicts_what_is_there_is_refused(
    make: Make, databag: AwsQueue
) -> None:
    queue = make(**KIND, **{"Angelhair.MaxPartitions": 10})
    asked = ("Angelhair.MinPartitions", "Angelhair.MaxPartitions")
    assert queue.attributes(*asked) == dict.fromkeys(asked, "10")
    same = {**KIND, "Angelhair.MaxPartitions": "10"}
    assert queue.sqs.create_queue(QueueName=queue.name, Attributes=same)["QueueUrl"] == queue.url
    with pytest.raises(ClientError) as caught:
        databag.set(**{"Angelhair.MaxPartitions": 10})
    assert code_of(caught) == "InvalidAttributeValue"
    assert "The least, 1000, is more than the most, 10. Set both." in text_of(caught)


def test_other_queues_have_no_partitions(make: Make) -> None:
    queue = make()
    assert queue.attributes("Angelhair.MinPartitions", "Angelhair.Lanes") == {"Angelhair.Lanes": "1"}
    for wrong in ({"Angelhair.MinPartitions": 20}, {"Angelhair.MaxPartitions": 20}):
        with pytest.raises(ClientError) as caught:
            queue.set(**wrong)
        assert (code_of(caught), "only for a databag" in text_of(caught)) == ("InvalidAttributeName", True)
        with pytest.raises(ClientError) as caught:
            make(**wrong)
        assert code_of(caught) == "InvalidAttributeName"


@pytest.mark.parametrize(("wrong", "code", "words"), [
    ({"DelaySeconds": 5}, "InvalidAttributeValue", "A databag has no delay"),
    ({"Angelhair.MinPartitions": 0}, "InvalidAttributeValue", "Must be between 1 and 4096."),
    ({"Angelhair.MaxPartitions": 4097}, "InvalidAttributeValue", "Must be between 1 and 4096."),
    ({"Angelhair.MinPartitions": 60, "Angelhair.MaxPartitions": 50}, "InvalidAttributeValue",
     "The least, 60, is more than the most, 50."),
    ({"Angelhair.Lanes": 2}, "InvalidAttributeName", "for a databag"),
    ({"Angelhair.Priorities": 2}, "InvalidAttributeName", "for a databag"),
    ({"Angelhair.Fair": "false"}, "InvalidAttributeName", "for a databag"),
    ({"ContentBasedDeduplication": "true"}, "InvalidAttributeName", "Unknown Attribute ContentBasedDeduplication."),
    ({"DeduplicationScope": "queue"}, "InvalidAttributeName", "only when FifoQueue is set to true"),
])
def test_attributes_that_a_databag_cannot_have(make: Make, wrong: dict[str, object], code: str, words: str) -> None:
    databag = make(**KIND)
    attempts: list[Callable[[], object]] = [lambda: make(**KIND, **wrong), lambda: databag.set(**wrong)]
    for attempt in attempts:
        with pytest.raises(ClientError) as caught:
            attempt()
        assert (code_of(caught), words in text_of(caught)) == (code, True), text_of(caught)


def test_a_databag_neither_has_dead_letters_nor_takes_them(make: Make, databag: AwsQueue) -> None:
    other = make()
    attempts: list[Callable[[], object]] = [
        lambda: databag.set(RedrivePolicy=policy(other, 3)), lambda: make(**KIND, RedrivePolicy=policy(other, 3))
    ]
    for attempt in attempts:
        with pytest.raises(ClientError) as caught:
            attempt()
        assert code_of(caught) == "InvalidAttributeValue"
        assert "does not count receives" in text_of(caught)
    with pytest.raises(ClientError) as caught:
        other.set(RedrivePolicy=policy(databag, 3))
    assert (code_of(caught), "must not be a databag" in text_of(caught)) == ("InvalidParameterValue", True)
    databag.set(RedrivePolicy="", DelaySeconds=0)
    with pytest.raises(ClientError) as caught:
        databag.sqs.start_message_move_task(SourceArn=databag.arn)
    assert (code_of(caught), "Dead Letter Queue" in text_of(caught)) == ("InvalidParameterValue", True)
    assert databag.sqs.list_message_move_tasks(SourceArn=databag.arn).get("Results", []) == []


def test_the_kind_of_a_queue_stays(make: Make, databag: AwsQueue) -> None:
    for queue, kind in ((make(), "databag"), (databag, "bucketed")):
        with pytest.raises(ClientError) as caught:
            queue.set(**{"Angelhair.Kind": kind})
        assert "cannot change" in text_of(caught)


def test_a_databag_is_listed_found_tagged_and_has_a_policy(databag: AwsQueue) -> None:
    sqs, url = databag.sqs, databag.url
    assert url in sqs.list_queues(QueueNamePrefix=databag.name)["QueueUrls"]
    assert sqs.get_queue_url(QueueName=databag.name)["QueueUrl"] == url
    sqs.tag_queue(QueueUrl=url, Tags={"team": "events", "cost": "low"})
    sqs.untag_queue(QueueUrl=url, TagKeys=["cost"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "events"}
    sqs.add_permission(QueueUrl=url, Label="all", AWSAccountIds=["111122223333"], Actions=["SendMessage"])
    (statement,) = json.loads(databag.attributes("Policy")["Policy"])["Statement"]
    assert statement["Sid"] == "all"
    sqs.remove_permission(QueueUrl=url, Label="all")
    assert "Policy" not in databag.attributes()


# --- messages ---------------------------------------------------------------------------------------------------------


def test_a_message_arrives_with_its_attributes_and_is_deleted_by_its_handle(databag: AwsQueue) -> None:
    sent = databag.send("hello", MessageAttributes={"colour": text("blue")}, DelaySeconds=0)
    (found,) = databag.receive(MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"])
    assert (found["MessageId"], found["Body"], found["MD5OfBody"]) == (
        sent["MessageId"], "hello", sent["MD5OfMessageBody"]
    )
    assert found["MessageAttributes"] == {"colour": text("blue")}
    assert found["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert found["Attributes"]["ApproximateReceiveCount"] == "1"
    assert {"SenderId", "SentTimestamp", "ApproximateFirstReceiveTimestamp"} <= found["Attributes"].keys()
    assert databag.receive() == []
    for _ in range(2):
        databag.ack(found)
    assert counts(databag) == ["0", "0", "0"]


def test_batches_are_sent_received_and_deleted(databag: AwsQueue) -> None:
    sent = many(databag, 10)
    assert counts(databag) == ["10", "0", "0"], "exact when it is quiet"
    found = databag.receive(10)
    assert {message["MessageId"] for message in found} == {each["MessageId"] for each in sent}
    assert counts(databag) == ["0", "10", "0"]
    entries = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(found)]
    for _ in range(2):
        answer = databag.sqs.delete_message_batch(QueueUrl=databag.url, Entries=entries)
        assert len(answer["Successful"]) == 10 and not answer.get("Failed")
    wrong = databag.sqs.delete_message_batch(QueueUrl=databag.url, Entries=[{"Id": "a", "ReceiptHandle": "nonsense"}])
    assert [failed["Code"] for failed in wrong["Failed"]] == ["ReceiptHandleIsInvalid"]
    assert counts(databag) == ["0", "0", "0"]


def test_what_is_not_deleted_comes_again_with_its_partition(databag: AwsQueue) -> None:
    sent = databag.send("again")
    (first,) = databag.receive(VisibilityTimeout=1)
    (second,) = databag.receive(WaitTimeSeconds=20)
    assert second["MessageId"] == sent["MessageId"]
    # By its id, and so by every handle that anybody was given.
    databag.ack(first)
    assert counts(databag) == ["0", "0", "0"]


def test_a_long_poll_is_answered_when_something_comes(databag: AwsQueue, server: RunningServer) -> None:
    assert databag.receive() == []
    httpx.put(f"{server.url}/queues/{databag.name}/message", content=b"through another door").raise_for_status()
    assert databag.bodies(WaitTimeSeconds=20) == ["through another door"]


def test_looking_purging_and_making_again(databag: AwsQueue) -> None:
    many(databag, 3)
    seen = databag.receive(MessageSystemAttributeNames=["Angelhair.Peek"])
    assert sorted(message["Body"] for message in seen) == ["0", "1", "2"]
    databag.sqs.purge_queue(QueueUrl=databag.url)
    assert counts(databag) == ["0", "0", "0"]
    with pytest.raises(ClientError) as caught:
        databag.sqs.purge_queue(QueueUrl=databag.url)
    assert code_of(caught) == "AWS.SimpleQueueService.PurgeQueueInProgress"
    databag.send("old")
    databag.delete()
    databag.sqs.create_queue(QueueName=databag.name, Attributes=KIND)
    assert databag.receive() == []
    databag.send("new")
    assert databag.bodies() == ["new"]


def test_the_visibility_of_a_message_cannot_be_changed(databag: AwsQueue) -> None:
    databag.send()
    (found,) = databag.receive()
    entry = {"Id": "a", "ReceiptHandle": found["ReceiptHandle"], "VisibilityTimeout": 5}
    attempts: list[Callable[[], object]] = [
        lambda: databag.hide(found, 60), lambda: databag.hide(found, 0),
        lambda: databag.sqs.change_message_visibility_batch(QueueUrl=databag.url, Entries=[entry]),
    ]
    for attempt in attempts:
        with pytest.raises(databag.sqs.exceptions.UnsupportedOperation) as caught:
            attempt()
        assert code_of(caught) == "AWS.SimpleQueueService.UnsupportedOperation"
        assert "hides partitions and not messages" in text_of(caught)
    databag.ack(found)


@pytest.mark.parametrize(("wrong", "parameter"), [
    ({"DelaySeconds": 5}, "DelaySeconds"),
    ({"MessageGroupId": "g"}, "MessageGroupId"),
    ({"MessageDeduplicationId": "d"}, "MessageDeduplicationId"),
    ({"MessageAttributes": {"Angelhair.Priority": text("1", "Number")}}, "priorities"),
])
def test_messages_that_a_databag_does_not_take(databag: AwsQueue, wrong: dict[str, Any], parameter: str) -> None:
    with pytest.raises(ClientError) as caught:
        databag.send("x", **wrong)
    assert (code_of(caught), parameter in text_of(caught)) == ("InvalidParameterValue", True)
    answer = databag.sqs.send_message_batch(QueueUrl=databag.url, Entries=[
        {"Id": "wrong", "MessageBody": "x", **wrong}, {"Id": "right", "MessageBody": "y"},
    ])
    assert [(failed["Id"], failed["Code"]) for failed in answer["Failed"]] == [("wrong", "InvalidParameterValue")]
    assert [sent["Id"] for sent in answer["Successful"]] == ["right"]
    assert databag.bodies() == ["y"]


def test_a_receive_may_find_all_of_many(databag: AwsQueue) -> None:
    """Each partition once before any twice: with a short time-out all comes within a few of them."""
    for _ in range(5):
        many(databag, 10)
    found: set[str] = set()
    while len(found) < 50:
        some = databag.receive(10, WaitTimeSeconds=20, VisibilityTimeout=1)
        assert some
        found |= {message["MessageId"] for message in some}
        for message in some:
            databag.ack(message)
    assert counts(databag) == ["0", "0", "0"]


# --- topics -----------------------------------------------------------------------------------------------------------


def test_a_topic_fans_out_into_a_databag(make_topic: MakeTopic, make_queue: Make) -> None:
    topic, databag, raw, plain = make_topic(), make_queue(**KIND), make_queue(**KIND), make_queue()
    topic.subscribe(databag)
    topic.subscribe(raw, RawMessageDelivery="true", FilterPolicy='{"colour": ["blue"]}')
    topic.subscribe(plain)
    topic.publish("red", MessageAttributes={"colour": text("red")})
    topic.publish("blue", Subject="a colour", MessageAttributes={"colour": text("blue")})
    said = [json.loads(message["Body"]) for message in received(databag, 2)]
    assert sorted((each["Message"], each.get("Subject")) for each in said) == [("blue", "a colour"), ("red", None)]
    (found,) = received(raw)
    assert (found["Body"], found["MessageAttributes"]) == ("blue", {"colour": text("blue")})
    assert len(received(plain, 2)) == 2


def test_whose_publication_it_is_keeps_it_from_no_databag(make_topic: MakeTopic, make_queue: Make) -> None:
    """Naive: the databag refuses the group of a fair topic, and the publication is dropped."""
    topic, databag = make_topic(), make_queue(**KIND)
    topic.subscribe(databag)
    topic.publish("of a tenant", MessageGroupId="a-tenant")
    assert notification(databag)["Message"] == "of a tenant"


def test_a_fifo_topic_fans_out_into_a_databag(make_topic: MakeTopic, make_queue: Make) -> None:
    topic, databag = make_topic(FifoTopic="true"), make_queue(**KIND)
    topic.subscribe(databag, RawMessageDelivery="true")
    topic.publish("one", MessageGroupId="g", MessageDeduplicationId="1")
    assert bodies(databag) == ["one"]


def test_a_topic_of_the_rest_door_fans_out_into_a_databag(server: RunningServer, make_queue: Make) -> None:
    databag = make_queue(**KIND)
    topic = f"{server.url}/topics/{databag.name}"
    for url in (topic, f"{topic}/queues/{databag.name}"):
        httpx.put(url).raise_for_status()
    httpx.put(f"{topic}/message", content=b"news").raise_for_status()
    assert databag.bodies(WaitTimeSeconds=WAIT_SECONDS) == ["news"]
    httpx.delete(topic).raise_for_status()


def test_dead_letters_of_others_are_moved_into_a_databag(make_queue: Make, server: RunningServer) -> None:
    """As the destination of a task it is as good as any other."""
    dead, databag = make_queue(), make_queue(**KIND)
    source = make_queue(RedrivePolicy=policy(dead, 1), VisibilityTimeout=0)
    source.send("poison")
    while not int(dead.attributes()["ApproximateNumberOfMessages"]):
        source.receive()
        server.step(source.name)
    dead.sqs.start_message_move_task(SourceArn=dead.arn, DestinationArn=databag.arn)
    assert databag.bodies(WaitTimeSeconds=WAIT_SECONDS) == ["poison"]
