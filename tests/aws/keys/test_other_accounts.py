"""Accounts beside each other: what is one's own, what a policy gives to another, and what it never can."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.aws.keys.keyed import DENIED, Key, Keyed, refusal, until


def test_two_accounts_have_queues_of_one_name_and_see_their_own(ours: Any, theirs: Any, name: str) -> None:
    """The trap: a listing that shows everybody's."""
    mine, other = (client.create_queue(QueueName=name)["QueueUrl"] for client in (ours, theirs))
    assert mine != other
    ours.send_message(QueueUrl=mine, MessageBody="mine")
    theirs.send_message(QueueUrl=other, MessageBody="theirs")
    for client, url, body in ((ours, mine, "mine"), (theirs, other, "theirs")):
        assert client.list_queues(QueueNamePrefix=name)["QueueUrls"] == [url]
        assert [each["Body"] for each in client.receive_message(QueueUrl=url)["Messages"]] == [body]
        # A name alone means one's own.
        assert client.get_queue_url(QueueName=name)["QueueUrl"] == url
    assert refusal(theirs.send_message, QueueUrl=mine, MessageBody="x") == DENIED
    assert refusal(theirs.delete_queue, QueueUrl=mine) == DENIED
    ours.delete_queue(QueueUrl=mine)
    theirs.delete_queue(QueueUrl=other)


def test_a_permission_lets_another_account_do_just_that(
    ours: Any, theirs: Any, shop: Key, partner: Key, name: str
) -> None:
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    missing = url.replace(name, "no-such-queue")
    ours.add_permission(
        QueueUrl=url, Label="partner", AWSAccountIds=[partner.account], Actions=["SendMessage", "GetQueueUrl"]
    )
    theirs.send_message(QueueUrl=url, MessageBody="from the partner")
    assert theirs.send_message_batch(QueueUrl=url, Entries=[{"Id": "a", "MessageBody": "b"}])["Successful"]
    assert theirs.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=shop.account)["QueueUrl"] == url
    assert refusal(theirs.receive_message, QueueUrl=url) == DENIED
    assert refusal(theirs.send_message, QueueUrl=missing, MessageBody="x") == DENIED, "nobody learns what there is"
    found = ours.receive_message(QueueUrl=url, AttributeNames=["SenderId"], MaxNumberOfMessages=10)["Messages"]
    assert {each["Attributes"]["SenderId"] for each in found} == {partner.id}
    ours.remove_permission(QueueUrl=url, Label="partner")
    assert refusal(theirs.send_message, QueueUrl=url, MessageBody="x") == DENIED
    ours.delete_queue(QueueUrl=url)


def test_a_policy_never_gives_away_what_is_the_owners(ours: Any, theirs: Any, name: str) -> None:
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    arn = ours.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    everything = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*"}
    ours.set_queue_attributes(QueueUrl=url, Attributes={"Policy": _policy(everything)})
    theirs.send_message(QueueUrl=url, MessageBody="x")
    assert theirs.receive_message(QueueUrl=url)["Messages"]
    assert theirs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"] == arn
    for verb, more in (
        (theirs.delete_queue, {}), (theirs.set_queue_attributes, {"Attributes": {"DelaySeconds": "1"}}),
        (theirs.tag_queue, {"Tags": {"a": "b"}}), (theirs.untag_queue, {"TagKeys": ["a"]}),
        (theirs.list_queue_tags, {}), (theirs.remove_permission, {"Label": "x"}),
        (theirs.add_permission, {"Label": "x", "AWSAccountIds": ["1" * 12], "Actions": ["*"]}),
    ):
        assert refusal(verb, QueueUrl=url, **more) == DENIED
    assert refusal(theirs.start_message_move_task, SourceArn=arn) == DENIED
    assert refusal(theirs.list_message_move_tasks, SourceArn=arn) == DENIED
    ours.delete_queue(QueueUrl=url)


def test_a_denial_holds_for_ones_own_keys_too_and_can_be_mended(
    server: Keyed, ours: Any, theirs: Any, shop: Key, name: str
) -> None:
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*"}
    denied = {**allowed, "Effect": "Deny", "Action": "sqs:SendMessage"}
    ours.set_queue_attributes(QueueUrl=url, Attributes={"Policy": _policy(allowed, denied)})
    for client in (ours, theirs):
        assert refusal(client.send_message, QueueUrl=url, MessageBody="x") == DENIED
        assert "Messages" not in client.receive_message(QueueUrl=url)
    with server.rest(shop) as line:
        assert line.put(f"/queues/{name}/message", content=b"x").status_code == 403
        assert line.get(f"/queues/{name}/messages/1").status_code == 200
    ours.set_queue_attributes(QueueUrl=url, Attributes={"Policy": _policy({**denied, "Action": "*"})})
    assert refusal(ours.receive_message, QueueUrl=url) == DENIED
    assert refusal(ours.delete_queue, QueueUrl=url) == DENIED
    limited = server.client(server.key(shop.account, queues="queue-*"))
    assert refusal(limited.set_queue_attributes, QueueUrl=url, Attributes={"Policy": ""}) == DENIED
    ours.set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})
    ours.delete_queue(QueueUrl=url)


def test_conditions_of_a_policy_see_the_request(ours: Any, theirs: Any, name: str) -> None:
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    for condition, good in (
        ({"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}, True), ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
        ({"Bool": {"aws:SecureTransport": "true"}}, False), ({"StringEquals": {"aws:PrincipalOrgID": "o-1"}}, False),
        ({"DateLessThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}}, False),
        ({"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}}, True),
    ):
        ours.set_queue_attributes(QueueUrl=url, Attributes={"Policy": _policy({**allowed, "Condition": condition})})
        if good:
            theirs.send_message(QueueUrl=url, MessageBody="x")
        else:
            assert refusal(theirs.send_message, QueueUrl=url, MessageBody="x") == DENIED
    ours.delete_queue(QueueUrl=url)


def _policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def test_dead_letters_and_moves_stay_in_the_account(ours: Any, theirs: Any, partner: Key, name: str) -> None:
    theirs.create_queue(QueueName=f"{name}-dead")
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    arn = f"arn:aws:sqs:eu-west-1:{partner.account}:{name}-dead"
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
    status, code = refusal(ours.set_queue_attributes, QueueUrl=url, Attributes={"RedrivePolicy": policy})
    assert (status, code) == (400, "InvalidParameterValue")
    assert refusal(ours.start_message_move_task, SourceArn=arn) == DENIED
    ours.delete_queue(QueueUrl=url)


def test_background_work_is_done_for_every_account(server: Keyed, ours: Any, shop: Key, name: str) -> None:
    """A delay ends, a message goes to the dead letters and comes back by a move task: all in a second account."""
    dead = ours.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = f"arn:aws:sqs:eu-west-1:{shop.account}:{name}-dead"
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
    url = ours.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "0"})["QueueUrl"]
    ours.send_message(QueueUrl=url, MessageBody="slow", DelaySeconds=1)
    assert "Messages" not in ours.receive_message(QueueUrl=url)
    (message,) = ours.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    assert message["Body"] == "slow"
    assert "Messages" not in ours.receive_message(QueueUrl=url), "it was delivered often enough"
    (letter,) = until(lambda: ours.receive_message(QueueUrl=dead, VisibilityTimeout=0).get("Messages"))
    assert letter["Body"] == "slow"
    ours.start_message_move_task(SourceArn=arn)
    (back,) = until(lambda: ours.receive_message(QueueUrl=url).get("Messages"))
    assert back["Body"] == "slow"
    until(lambda: ours.list_message_move_tasks(SourceArn=arn)["Results"][0]["Status"] == "COMPLETED")
    metrics = httpx.get(f"{server.url}/metrics").text
    assert f'angelhair_messages_put_total{{queue="{shop.account}/{name}"}}' in metrics
    for each in (url, dead):
        ours.delete_queue(QueueUrl=each)
