"""A subscription that was confirmed with `AuthenticateOnUnsubscribe` is ended by nobody who only has its link."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.aws.keys.keyed import keyed
from tests.aws.listener import listening


@pytest.mark.parametrize("authenticated", [True, False])
def test_a_link_unsubscribes_unless_its_subscriber_said_otherwise(tmp_path: Path, authenticated: bool) -> None:
    with listening() as endpoint, keyed(tmp_path, "--allow-private-endpoints") as server:
        sns = server.client(server.key(), "sns")
        topic = sns.create_topic(Name="news")["TopicArn"]
        sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=endpoint.url)
        token = endpoint.next().message["Token"]
        wanted = {"AuthenticateOnUnsubscribe": "true"} if authenticated else {}
        arn = sns.confirm_subscription(TopicArn=topic, Token=token, **wanted)["SubscriptionArn"]
        sns.publish(TopicArn=topic, Message="hello")
        link = endpoint.next().message["UnsubscribeURL"]
        if authenticated:
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(link)
            caught.value.close()
            assert caught.value.code == 403
            assert sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]["PendingConfirmation"] == "false"
            sns.unsubscribe(SubscriptionArn=arn)
        else:
            with urllib.request.urlopen(link) as answer:
                assert answer.status == 200
        assert endpoint.next().message["Type"] == "UnsubscribeConfirmation"
        with pytest.raises(sns.exceptions.NotFoundException):
            sns.get_subscription_attributes(SubscriptionArn=arn)
