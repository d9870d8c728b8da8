"""Topics as boto3 sees them: made, listed, changed, tagged, granted, deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from angelhair import limits
from tests.aws.queues import AwsQueue
from tests.aws.topics import AwsTopic, bodies

ACCOUNT = "000000000000"

Make = Callable[..., AwsTopic]

AT_ONCE = 40
"""Well within the tags that a topic may have."""
MakeQueue = Callable[..., AwsQueue]


def test_made_again_with_what_it_has_or_says_nothing_of(sns: Any, make_topic: Make) -> None:
    topic = make_topic(DisplayName="Orders")
    tags = [{"Key": "team", "Value": "billing"}]
    assert topic.arn == f"arn:aws:sns:eu-west-1:{ACCOUNT}:{topic.name}"
    assert sns.create_topic(Name=topic.name)["TopicArn"] == topic.arn
    assert sns.create_topic(Name=topic.name, Attributes={"DisplayName": "Orders"})["TopicArn"] == topic.arn
    with pytest.raises(sns.exceptions.InvalidParameterException, match="already exists with different attributes"):
        sns.create_topic(Name=topic.name, Attributes={"DisplayName": "Others"})
    with pytest.raises(sns.exceptions.InvalidParameterException, match="Topic already exists with different tags"):
        sns.create_topic(Name=topic.name, Tags=tags)


@pytest.mark.parametrize("name", ["with space", "dots.inside", "x" * 257, "é"])
def test_a_name_that_no_topic_has(sns: Any, name: str) -> None:
    with pytest.raises(sns.exceptions.InvalidParameterException, match="Invalid parameter: Topic Name"):
        sns.create_topic(Name=name)


def test_all_that_a_new_topic_says_of_itself(make_topic: Make) -> None:
    topic = make_topic()
    said = topic.attributes()
    policy = json.loads(said.pop("Policy"))
    effective = json.loads(said.pop("EffectiveDeliveryPolicy"))
    assert said == {
        "TopicArn": topic.arn, "Owner": ACCOUNT, "DisplayName": "", "SubscriptionsConfirmed": "0",
        "SubscriptionsPending": "0", "SubscriptionsDeleted": "0",
    }
    assert policy["Statement"][0]["Resource"] == topic.arn
    assert effective["http"]["defaultHealthyRetryPolicy"]["numRetries"] == 3


def test_attributes_that_are_set_are_said(make_topic: Make) -> None:
    topic = make_topic(DisplayName="Orders", SignatureVersion="2", TracingConfig="PassThrough", KmsMasterKeyId="key/k")
    policy = {"http": {"defaultHealthyRetryPolicy": {"minDelayTarget": 1, "maxDelayTarget": 9, "numRetries": 5}}}
    topic.set("DeliveryPolicy", json.dumps(policy))
    topic.set("MaximumMessageSize", "1024")
    topic.set("DisplayName", "")
    said = topic.attributes()
    assert (said["DisplayName"], said["SignatureVersion"], said["TracingConfig"]) == ("", "2", "PassThrough")
    assert (said["KmsMasterKeyId"], said["MaximumMessageSize"]) == ("key/k", "1024")
    assert json.loads(said["DeliveryPolicy"]) == policy
    effective = json.loads(said["EffectiveDeliveryPolicy"])["http"]["defaultHealthyRetryPolicy"]
    assert (effective["minDelayTarget"], effective["maxDelayTarget"], effective["numRetries"]) == (1, 9, 5)


def test_where_deliveries_are_to_be_logged_is_kept_and_said(make_topic: Make) -> None:
    topic = make_topic()
    wanted = {}
    for number, protocol in enumerate(("Application", "Firehose", "HTTP", "Lambda", "SQS"), 1):
        wanted[f"{protocol}SuccessFeedbackRoleArn"] = f"arn:aws:iam::123456789012:role/success-{number}"
        wanted[f"{protocol}FailureFeedbackRoleArn"] = f"arn:aws:iam::123456789012:role/failure-{number}"
        wanted[f"{protocol}SuccessFeedbackSampleRate"] = str(number)
    for name, value in wanted.items():
        topic.set(name, value)
    assert wanted.items() <= topic.attributes().items()


@pytest.mark.parametrize(
    ("name", "value"),
    [("Unheard", "1"), ("FifoTopic", "true"), ("ContentBasedDeduplication", "true"), ("SignatureVersion", "3"),
     ("MaximumMessageSize", "1023"), ("MaximumMessageSize", "x"), ("Policy", "{"), ("DisplayName", "x" * 101),
     ("ArchivePolicy", "{}"), ("TracingConfig", "Sometimes"),
     ("DeliveryPolicy", '{"http": {"defaultHealthyRetryPolicy": {"numRetries": 101}}}'),
     ("DeliveryPolicy", '{"http": {"defaultHealthyRetryPolicy": {"minDelayTarget": 30}}}'),
     ("DeliveryPolicy", '{"http": {"defaultHealthyRetryPolicy": {"numNoDelayRetries": 4}}}'),
     ("DeliveryPolicy", '{"http": {"defaultHealthyRetryPolicy": {"backoffFunction": "wild"}}}'),
     ("DeliveryPolicy", '{"http": 5}'), ("DeliveryPolicy", "[]")],
)
def test_an_attribute_that_cannot_be_set(sns: Any, make_topic: Make, name: str, value: str) -> None:
    topic = make_topic()
    before = topic.attributes()
    with pytest.raises(sns.exceptions.InvalidParameterException, match="Invalid parameter"):
        topic.set(name, value)
    assert topic.attributes() == before


def test_listed_in_pages(sns: Any, make_topic: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNS_PAGE", 2)
    made = {make_topic().arn for _ in range(5)}
    pages = list(sns.get_paginator("list_topics").paginate())
    listed = [topic["TopicArn"] for page in pages for topic in page["Topics"]]
    assert made <= set(listed)
    assert len(listed) == len(set(listed))
    assert max(len(page["Topics"]) for page in pages) == 2
    with pytest.raises(sns.exceptions.InvalidParameterException, match="NextToken"):
        sns.list_topics(NextToken="?")


def test_deleted_and_made_again_at_once_it_has_none_of_the_old_subscriptions(
    sns: Any, make_topic: Make, make_queue: MakeQueue
) -> None:
    topic, old, new = make_topic(), make_queue(), make_queue()
    topic.subscribe(old, RawMessageDelivery="true")
    topic.delete()
    topic.delete()
    with pytest.raises(sns.exceptions.NotFoundException, match="Topic does not exist"):
        topic.attributes()
    with pytest.raises(sns.exceptions.NotFoundException, match="Topic does not exist"):
        topic.publish()
    assert sns.create_topic(Name=topic.name)["TopicArn"] == topic.arn
    assert topic.attributes()["SubscriptionsConfirmed"] == "0"
    topic.subscribe(new, RawMessageDelivery="true")
    topic.publish("to the new one")
    assert bodies(new) == ["to the new one"]
    assert old.receive() == []


def test_tags(sns: Any, make_topic: Make) -> None:
    topic = make_topic()
    sns.tag_resource(ResourceArn=topic.arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    sns.tag_resource(ResourceArn=topic.arn, Tags=[{"Key": "b", "Value": "3"}, {"Key": "c", "Value": ""}])
    sns.untag_resource(ResourceArn=topic.arn, TagKeys=["a", "unheard"])
    found = sns.list_tags_for_resource(ResourceArn=topic.arn)["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in found} == {"b": "3", "c": ""}
    with pytest.raises(sns.exceptions.TagLimitExceededException):
        sns.tag_resource(ResourceArn=topic.arn, Tags=[{"Key": f"k{n}", "Value": ""} for n in range(49)])
    with pytest.raises(sns.exceptions.InvalidParameterException):
        sns.tag_resource(ResourceArn=topic.arn, Tags=[{"Key": "aws:x", "Value": ""}])
    with pytest.raises(sns.exceptions.ResourceNotFoundException):
        sns.list_tags_for_resource(ResourceArn=f"{topic.arn}-unheard")


def test_many_who_change_one_topic_at_once_take_turns(sns: Any, make_topic: Make) -> None:
    arn = make_topic().arn
    with ThreadPoolExecutor(AT_ONCE) as threads:
        tagging = [
            threads.submit(sns.tag_resource, ResourceArn=arn, Tags=[{"Key": f"tag-{number}", "Value": "x"}])
            for number in range(AT_ONCE)
        ]
        for each in tagging:
            each.result()
    assert len(sns.list_tags_for_resource(ResourceArn=arn)["Tags"]) == AT_ONCE


def test_permissions_are_statements_of_the_policy(sns: Any, make_topic: Make) -> None:
    topic = make_topic()
    granted: dict[str, Any] = {"AWSAccountId": ["111122223333"], "ActionName": ["Publish", "Subscribe"]}
    sns.add_permission(TopicArn=topic.arn, Label="friends", **granted)
    policy = json.loads(topic.attributes()["Policy"])
    assert [statement["Sid"] for statement in policy["Statement"]] == ["__default_statement_ID", "friends"]
    assert policy["Statement"][1] == {
        "Sid": "friends", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:root"},
        "Action": ["SNS:Publish", "SNS:Subscribe"], "Resource": topic.arn,
    }
    with pytest.raises(sns.exceptions.InvalidParameterException, match="Statement already exists"):
        sns.add_permission(TopicArn=topic.arn, Label="friends", **granted)
    with pytest.raises(sns.exceptions.InvalidParameterException, match="out of service scope"):
        sns.add_permission(TopicArn=topic.arn, Label="others", AWSAccountId=["111122223333"], ActionName=["Fly"])
    sns.remove_permission(TopicArn=topic.arn, Label="friends")
    assert "friends" not in topic.attributes()["Policy"]


def test_a_data_protection_policy_is_kept_and_said(sns: Any, make_topic: Make) -> None:
    topic = make_topic()
    assert "DataProtectionPolicy" not in sns.get_data_protection_policy(ResourceArn=topic.arn)
    sns.put_data_protection_policy(ResourceArn=topic.arn, DataProtectionPolicy='{"Name": "x"}')
    assert sns.get_data_protection_policy(ResourceArn=topic.arn)["DataProtectionPolicy"] == '{"Name": "x"}'
    with pytest.raises(sns.exceptions.InvalidParameterException):
        sns.put_data_protection_policy(ResourceArn=topic.arn, DataProtectionPolicy="no JSON")
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.get_data_protection_policy(ResourceArn=f"{topic.arn}-unheard")


def test_text_messages_and_push_are_refused_in_so_many_words(sns: Any) -> None:
    for refused in (
        lambda: sns.publish(PhoneNumber="+123", Message="hello"),
        lambda: sns.create_platform_application(Name="a", Platform="APNS", Attributes={}),
        sns.get_sms_attributes,
    ):
        with pytest.raises(sns.exceptions.ClientError, match="is not served here") as caught:
            refused()
        assert caught.value.response["Error"]["Code"] == "UnsupportedOperation"
