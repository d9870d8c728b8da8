"""A subscription that was confirmed with `AuthenticateOnUnsubscribe` is ended by nobody who only has its link."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.aws.keys.keyed import keyed
from tests.aws.listener import Listener, listening


def test_a_link_unsubscribes_unless_its_subscriber_said_otherwise(tmp_path: Path) -> None:
    with listening() as endpoint, keyed(tmp_path, "--allow-private-endpoints") as server:
        sns = server.client(server.key(), "sns")
        arn, link = _subscribed(sns, endpoint, "guarded", AuthenticateOnUnsubscribe="true")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(link)
        caught.value.close()
        assert caught.value.code == 403
        assert sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]["PendingConfirmation"] == "false"
        sns.unsubscribe(SubscriptionArn=arn)
        _check_ended(sns, endpoint, arn)
        arn, link = _subscribed(sns, endpoint, "open")
        with urllib.request.urlopen(link) as answer:
            assert answer.status == 200
        _check_ended(sns, endpoint, arn)


def _subscribed(sns: Any, endpoint: Listener, name: str, **confirming: str) -> tuple[str, str]:
    """The subscription's ARN, and the link that its messages have."""
    topic = sns.create_topic(Name=name)["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=endpoint.url)
    token = endpoint.next().message["Token"]
    arn = sns.confirm_subscription(TopicArn=topic, Token=token, **confirming)["SubscriptionArn"]
    sns.publish(TopicArn=topic, Message="hello")
    return arn, endpoint.next().message["UnsubscribeURL"]


def _check_ended(sns: Any, endpoint: Listener, arn: str) -> None:
    assert endpoint.next().message["Type"] == "UnsubscribeConfirmation"
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.get_subscription_attributes(SubscriptionArn=arn)
