"""ListSubscriptions, ListSubscriptionsByTopic, GetSubscriptionAttributes, SetSubscriptionAttributes."""

from __future__ import annotations

from typing import cast

from angelhair import limits
from angelhair.engine.topics.values import PENDING, QUEUE, Subscription, queue_of
from angelhair.errors import SubscriptionNotFound, TopicNotFound
from angelhair.server.aws.arns import FIFO, queue_arn
from angelhair.server.aws.tokens import token_of, value_of
from angelhair.server.sns import kept, outputs
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.actions.consent import check_dead_letters
from angelhair.server.sns.addresses import is_topic_name
from angelhair.server.sns.checked import OfSubscription, OfTopic
from angelhair.server.sns.checks.attributes import checked_subscription_attributes
from angelhair.server.sns.errors import InvalidParameter
from angelhair.server.sns.inputs import (
    GetSubscriptionAttributesRequest,
    ListSubscriptionsRequest,
    SetSubscriptionAttributesRequest,
)

PENDING_ARN = "PendingConfirmation"
PROTOCOLS = {QUEUE: "sqs"}
"""What SNS calls them, where that is another word."""


async def list_subscriptions_by_topic(call: Call, wanted: OfTopic[str | None]) -> outputs.ListSubscriptionsResult:
    topic, after = wanted.topic.name, _after(wanted.wanted)
    known = await call.topics.subscriptions(call.account, topic)
    found = [(topic, one) for one in known if one.id > after[1]]
    return _page(call, found[: limits.SNS_PAGE + 1])


async def list_subscriptions(call: Call, wanted: ListSubscriptionsRequest) -> outputs.ListSubscriptionsResult:
    """All of the account, topic by topic."""
    topic, last = _after(wanted.next_token)
    found: list[tuple[str, Subscription]] = []
    if topic:
        found = [(topic, one) for one in await _of(call, topic) if one.id > last]
    more = True
    while more and len(found) <= limits.SNS_PAGE:
        names, more = await call.topics.list(call.account, after=topic or None, most=limits.SNS_PAGE)
        for topic in names:
            found += [(topic, one) for one in await _of(call, topic)]
            if len(found) > limits.SNS_PAGE:
                break
    return _page(call, found[: limits.SNS_PAGE + 1])


async def _of(call: Call, topic: str) -> list[Subscription]:
    """None, when the topic was deleted meanwhile."""
    try:
        return list(await call.topics.subscriptions(call.account, topic)) if is_topic_name(topic) else []
    except TopicNotFound:
        return []


def _after(token: str | None) -> tuple[str, str]:
    if token is None:
        return "", ""
    topic, parted, subscription = (value_of(token) or "").partition("/")
    if not parted:
        raise InvalidParameter("NextToken")
    return topic, subscription


def _page(call: Call, found: list[tuple[str, Subscription]]) -> outputs.ListSubscriptionsResult:
    page = found[: limits.SNS_PAGE]
    token = token_of(f"{page[-1][0]}/{page[-1][1].id}") if len(found) > limits.SNS_PAGE else None
    return outputs.ListSubscriptionsResult([_said(call, topic, one) for topic, one in page], token)


def _said(call: Call, topic: str, one: Subscription) -> outputs.Subscription:
    arn = PENDING_ARN if one.status == PENDING else call.subscription_arn(topic, one.id)
    return outputs.Subscription(
        arn, call.account, PROTOCOLS.get(one.protocol, one.protocol), endpoint_said(call, one), call.arn_of(topic)
    )


def endpoint_said(call: Call, one: Subscription) -> str:
    return queue_arn(call.region, *queue_of(one.endpoint)) if one.protocol == QUEUE else one.endpoint


async def get_subscription_attributes(
    call: Call, wanted: OfSubscription[GetSubscriptionAttributesRequest]
) -> outputs.GetSubscriptionAttributesResult:
    address = wanted.subscription
    found = await call.subscription(address)
    return outputs.GetSubscriptionAttributesResult({
        "SubscriptionArn": call.subscription_arn(address.topic, found.id),
        "TopicArn": call.arn_of(address.topic),
        "Owner": call.account,
        "Protocol": PROTOCOLS.get(found.protocol, found.protocol),
        "Endpoint": endpoint_said(call, found),
        "PendingConfirmation": "true" if found.status == PENDING else "false",
        "ConfirmationWasAuthenticated": "true" if found.protocol == QUEUE else "false",
        "SubscriptionPrincipal": f"arn:aws:iam::{call.account}:root",
        **kept.subscription_attributes(found),
    })


async def set_subscription_attributes(
    call: Call, wanted: OfSubscription[SetSubscriptionAttributesRequest]
) -> outputs.Nothing:
    address, request = wanted.subscription, wanted.wanted
    texts = {request.attribute_name: request.attribute_value or ""}
    attributes = checked_subscription_attributes(texts, at_subscribe=False)
    await check_dead_letters(call, address.topic, attributes)

    def rewrite(found: Subscription) -> Subscription:
        changed = kept.subscription_with(found, attributes, address.topic.endswith(FIFO), at_subscribe=False)
        return cast(Subscription, changed)

    try:
        await call.topics.rewrite_subscription(call.account, address.topic, address.id, rewrite)
    except TopicNotFound:
        raise SubscriptionNotFound(address.topic, address.id) from None
    return outputs.Nothing()
