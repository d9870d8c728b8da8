"""Queues: made, found, listed, described, changed, tagged, shared, emptied, deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.aws.old_client import OldClient
from tests.aws.queues import AwsQueue
from tests.wire.server import RunningServer

Make = Callable[..., AwsQueue]

AT_ONCE = 40
"""Well within the tags that a queue may have."""


def code_of(caught: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = caught.value.response["Error"]["Code"]
    return code


def text_of(caught: pytest.ExceptionInfo[ClientError]) -> str:
    text: str = caught.value.response["Error"]["Message"]
    return text


# --- made and found ---------------------------------------------------------------------------------------------------


def test_a_queue_is_found_by_its_name_under_the_host_that_the_client_used(sqs: Any, make: Make) -> None:
    queue = make()
    assert queue.url == f"{sqs.meta.endpoint_url}/000000000000/{queue.name}"
    assert sqs.get_queue_url(QueueName=queue.name)["QueueUrl"] == queue.url
    by_another_name = queue.url.replace("127.0.0.1", "localhost")
    sqs.send_message(QueueUrl=by_another_name, MessageBody="one queue")
    assert queue.bodies() == ["one queue"]


def test_a_queue_that_is_not_there(sqs: Any, name: str) -> None:
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as caught:
        sqs.get_queue_url(QueueName=name)
    assert code_of(caught) == "AWS.SimpleQueueService.NonExistentQueue"
    said = "The specified queue does not exist"
    assert text_of(caught) == f"{said} for this wsdl version." if isinstance(sqs, OldClient) else f"{said}."
    url = f"{sqs.meta.endpoint_url}/000000000000/{name}"
    for call in (
        lambda: sqs.send_message(QueueUrl=url, MessageBody="x"),
        lambda: sqs.receive_message(QueueUrl=url),
        lambda: sqs.delete_message(QueueUrl=url, ReceiptHandle="x"),
        lambda: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]),
        lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "1"}),
        lambda: sqs.purge_queue(QueueUrl=url),
        lambda: sqs.delete_queue(QueueUrl=url),
        lambda: sqs.list_queue_tags(QueueUrl=url),
        lambda: sqs.tag_queue(QueueUrl=url, Tags={"a": "b"}),
        lambda: sqs.list_dead_letter_source_queues(QueueUrl=url),
        lambda: sqs.remove_permission(QueueUrl=url, Label="x"),
    ):
        with pytest.raises(sqs.exceptions.QueueDoesNotExist):
            call()


def test_made_again_with_what_it_has_or_says_nothing_of(sqs: Any, make: Make) -> None:
    queue = make(VisibilityTimeout=45, MaximumMessageSize=2048)
    for attributes in ({}, {"VisibilityTimeout": "45"}, {"MaximumMessageSize": "2048", "DelaySeconds": "0"}):
        assert sqs.create_queue(QueueName=queue.name, Attributes=attributes)["QueueUrl"] == queue.url
    for attribute, value in (("VisibilityTimeout", "46"), ("MaximumMessageSize", "4096"), ("DelaySeconds", "1")):
        with pytest.raises(sqs.exceptions.QueueNameExists) as caught:
            sqs.create_queue(QueueName=queue.name, Attributes={attribute: value})
        assert code_of(caught) == "QueueAlreadyExists"
        assert text_of(caught).endswith(f"a different value for attribute {attribute}")
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "45"}


def test_deleted_and_made_again_at_once_it_holds_nothing_of_the_old(sqs: Any, make: Make) -> None:
    queue = make(VisibilityTimeout=45)
    queue.send("old")
    sqs.tag_queue(QueueUrl=queue.url, Tags={"team": "shop"})
    queue.delete()
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        queue.send("nowhere")
    assert sqs.create_queue(QueueName=queue.name)["QueueUrl"] == queue.url
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "30"}
    assert sqs.list_queue_tags(QueueUrl=queue.url).get("Tags", {}) == {}
    queue.send("new")
    assert queue.bodies() == ["new"]


def test_the_url_may_come_from_the_environment(
    server: RunningServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    elsewhere = boto3.client("sqs", region_name="eu-west-1", aws_access_key_id="AK", aws_secret_access_key="secret")
    assert elsewhere.meta.endpoint_url == server.url
    queue = make()
    assert elsewhere.get_queue_url(QueueName=queue.name)["QueueUrl"] == queue.url


# --- listed -----------------------------------------------------------------------------------------------------------


def test_listed_by_their_beginning_in_pages(sqs: Any, name: str) -> None:
    names = [f"{name}-listed-{number}" for number in range(5)]
    urls = [sqs.create_queue(QueueName=each)["QueueUrl"] for each in names]
    assert sqs.list_queues(QueueNamePrefix=f"{name}-listed")["QueueUrls"] == urls
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix=f"{name}-nothing")
    pages = sqs.get_paginator("list_queues").paginate(
        QueueNamePrefix=f"{name}-listed", PaginationConfig={"PageSize": 2}
    )
    assert [page["QueueUrls"] for page in pages] == [urls[:2], urls[2:4], urls[4:]]
    with pytest.raises(ClientError) as caught:
        sqs.list_queues(MaxResults=2, NextToken="?")
    assert code_of(caught) == "InvalidParameterValue"
    for url in urls:
        sqs.delete_queue(QueueUrl=url)
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix=f"{name}-listed")


# --- described and changed --------------------------------------------------------------------------------------------


def test_all_that_a_new_queue_says_of_itself(make: Make) -> None:
    queue = make()
    attributes = queue.attributes()
    created = int(attributes.pop("CreatedTimestamp"))
    assert int(attributes.pop("LastModifiedTimestamp")) == created > 1_750_000_000
    assert attributes == {
        "QueueArn": f"arn:aws:sqs:eu-west-1:000000000000:{queue.name}",
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "ReceiveMessageWaitTimeSeconds": "0",
        "VisibilityTimeout": "30",
        "SqsManagedSseEnabled": "true",
    }


def test_only_what_was_asked_for_and_nothing_when_nothing_was(sqs: Any, make: Make) -> None:
    queue = make()
    assert set(queue.attributes("DelaySeconds", "QueueArn")) == {"DelaySeconds", "QueueArn"}
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue.url)
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        queue.attributes("Depth")


def test_attributes_that_are_set_are_said_and_stay_beside_the_others(make: Make) -> None:
    queue = make(DelaySeconds=5)
    queue.set(VisibilityTimeout=60, MessageRetentionPeriod=600)
    queue.set(ReceiveMessageWaitTimeSeconds=3, KmsMasterKeyId="alias/shop", KmsDataKeyReusePeriodSeconds=600)
    said = queue.attributes()
    assert (said["DelaySeconds"], said["VisibilityTimeout"], said["MessageRetentionPeriod"]) == ("5", "60", "600")
    assert (said["ReceiveMessageWaitTimeSeconds"], said["KmsMasterKeyId"]) == ("3", "alias/shop")
    assert (said["SqsManagedSseEnabled"], said["KmsDataKeyReusePeriodSeconds"]) == ("false", "600")
    queue.set(KmsMasterKeyId="")
    assert "KmsMasterKeyId" not in queue.attributes()


def test_counts_are_right_when_it_is_quiet(make: Make) -> None:
    queue = make()
    for number in range(5):
        queue.send(str(number))
    queue.send("later", DelaySeconds=600)
    queue.ack(queue.receive(most=1)[0])
    queue.receive(most=1)
    said = queue.attributes()
    assert said["ApproximateNumberOfMessages"] == "3"
    assert said["ApproximateNumberOfMessagesNotVisible"] == "1"
    assert said["ApproximateNumberOfMessagesDelayed"] == "1"


# --- tags, permissions ------------------------------------------------------------------------------------------------


def test_tags(sqs: Any, name: str) -> None:
    url = sqs.create_queue(QueueName=name, tags={"team": "shop"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={"cost": "low", "team": "store"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "store", "cost": "low"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["team", "unknown"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"cost": "low"}
    with pytest.raises(ClientError) as caught:
        sqs.tag_queue(QueueUrl=url, Tags={f"tag-{number}": "" for number in range(50)})
    assert code_of(caught) == "InvalidParameterValue"
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"cost": "low"}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "1"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"cost": "low"}
    sqs.delete_queue(QueueUrl=url)


def test_many_who_change_one_queue_at_once_take_turns(shared_sqs: Any, server: RunningServer, name: str) -> None:
    url = shared_sqs.create_queue(QueueName=name)["QueueUrl"]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        tagging = [
            threads.submit(shared_sqs.tag_queue, QueueUrl=url, Tags={f"tag-{number}": "x"}) for number in range(AT_ONCE)
        ]
        for each in tagging:
            each.result()
    assert len(shared_sqs.list_queue_tags(QueueUrl=url)["Tags"]) == AT_ONCE
    shared_sqs.delete_queue(QueueUrl=url)


def test_permissions_are_statements_of_the_policy(sqs: Any, make: Make) -> None:
    queue = make()
    sqs.add_permission(QueueUrl=queue.url, Label="send", AWSAccountIds=["111122223333"], Actions=["SendMessage"])
    sqs.add_permission(
        QueueUrl=queue.url, Label="take", AWSAccountIds=["111122223333", "444455556666"],
        Actions=["ReceiveMessage", "DeleteMessage"],
    )
    send, take = json.loads(queue.attributes("Policy")["Policy"])["Statement"]
    assert send == {
        "Sid": "send", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:root"},
        "Action": "SQS:SendMessage", "Resource": queue.arn,
    }
    assert take["Action"] == ["SQS:ReceiveMessage", "SQS:DeleteMessage"]
    with pytest.raises(ClientError) as caught:
        sqs.add_permission(QueueUrl=queue.url, Label="send", AWSAccountIds=["111122223333"], Actions=["*"])
    assert text_of(caught) == "Value send for parameter Label is invalid. Reason: Already exists."
    sqs.remove_permission(QueueUrl=queue.url, Label="send")
    assert [each["Sid"] for each in json.loads(queue.attributes("Policy")["Policy"])["Statement"]] == ["take"]
    with pytest.raises(ClientError) as caught:
        sqs.remove_permission(QueueUrl=queue.url, Label="send")
    assert "can't find label" in text_of(caught)
    sqs.remove_permission(QueueUrl=queue.url, Label="take")
    assert "Policy" not in queue.attributes()


# --- dead letters -----------------------------------------------------------------------------------------------------


def policy(target: AwsQueue, most: int) -> str:
    return json.dumps({"deadLetterTargetArn": target.arn, "maxReceiveCount": most})


def test_a_redrive_policy_is_said_word_by_word_and_removed_by_nothing(sqs: Any, make: Make) -> None:
    dead, queue = make(), make()
    text = policy(dead, 2)
    queue.set(RedrivePolicy=text)
    assert queue.attributes("RedrivePolicy")["RedrivePolicy"] == text
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead.url)["queueUrls"] == [queue.url]
    assert sqs.create_queue(QueueName=queue.name, Attributes={"RedrivePolicy": text})["QueueUrl"] == queue.url
    queue.set(RedrivePolicy="")
    assert "RedrivePolicy" not in queue.attributes()
    # An empty list is a list in JSON, and nothing at all in the XML of the Query protocol.
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead.url).get("queueUrls", []) == []


def test_sources_of_dead_letters_in_pages(sqs: Any, make: Make) -> None:
    dead, other = make(), make()
    sources = sorted([make(RedrivePolicy=policy(dead, 5)) for _ in range(3)], key=lambda queue: queue.name)
    make(RedrivePolicy=policy(other, 5))
    pages = sqs.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dead.url, PaginationConfig={"PageSize": 2}
    )
    found = [page["queueUrls"] for page in pages]
    assert found == [[queue.url for queue in sources[:2]], [sources[2].url]]


def test_a_dead_letter_queue_has_to_be_there_and_willing(make: Make) -> None:
    dead, queue = make(), make()
    missing = policy(dead, 2).replace(dead.name, "nobody")
    with pytest.raises(ClientError) as caught:
        queue.set(RedrivePolicy=missing)
    assert text_of(caught).endswith("Dead letter target does not exist.")
    with pytest.raises(ClientError):
        queue.set(RedrivePolicy=policy(queue, 2))
    dead.set(RedriveAllowPolicy=json.dumps({"redrivePermission": "denyAll"}))
    with pytest.raises(ClientError) as caught:
        queue.set(RedrivePolicy=policy(dead, 2))
    assert "does not have permissions" in text_of(caught)
    dead.set(RedriveAllowPolicy=json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [queue.arn]}))
    queue.set(RedrivePolicy=policy(dead, 2))
    with pytest.raises(ClientError):
        make(RedrivePolicy=policy(dead, 2))
    dead.set(RedriveAllowPolicy="")
    make(RedrivePolicy=policy(dead, 2))


# --- emptied ----------------------------------------------------------------------------------------------------------


def test_purged_of_all_and_not_twice_in_a_minute(sqs: Any, make: Make) -> None:
    queue = make()
    for number in range(3):
        queue.send(str(number))
    taken = queue.receive(most=1)
    sqs.purge_queue(QueueUrl=queue.url)
    assert queue.receive() == []
    said = queue.attributes()
    assert said["ApproximateNumberOfMessages"] == said["ApproximateNumberOfMessagesNotVisible"] == "0"
    queue.ack(taken[0])
    queue.send("after")
    assert queue.bodies() == ["after"]
    with pytest.raises(sqs.exceptions.PurgeQueueInProgress) as caught:
        sqs.purge_queue(QueueUrl=queue.url)
    assert text_of(caught) == f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds."
