"""Subscribe, ConfirmSubscription, Unsubscribe."""

from __future__ import annotations

from dataclasses import replace

from angelhair import limits
from angelhair.engine.topics.values import (
    CONFIRMED,
    PENDING,
    QUEUE,
    NewSubscription,
    Subscription,
    queue_endpoint,
    queue_of,
)
from angelhair.errors import InvalidRequest, TopicNotFound
from angelhair.server.aws.arns import FIFO
from angelhair.server.sns import kept, outputs
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.actions.consent import check_consent, check_dead_letters
from angelhair.server.sns.checked import OfSubscription, OfTopic, Subscribe
from angelhair.server.sns.checks.attributes import checked_subscription_attributes
from angelhair.server.sns.errors import InvalidParameter, SubscriptionLimitExceeded
from angelhair.server.sns.inputs import ConfirmSubscriptionRequest, UnsubscribeRequest

PENDING_SAID = "pending confirmation"


async def subscribe(call: Call, wanted: Subscribe) -> outputs.SubscribeResult:
    """An endpoint is subscribed once; asked for again, with the attributes that it has, it is the same subscription."""
    topic = wanted.topic.name
    attributes = checked_subscription_attributes(wanted.attributes, at_subscribe=True)
    is_queue = wanted.protocol == QUEUE
    endpoint = _own(call, wanted.endpoint) if is_queue else wanted.endpoint
    new = NewSubscription(wanted.protocol, endpoint, raw=False, status=CONFIRMED if is_queue else PENDING)
    new = kept.subscription_with(new, attributes, topic.endswith(FIFO), at_subscribe=True)
    if is_queue:
        await check_consent(call, topic, *queue_of(endpoint))
    else:
        await call.desk.check_endpoint(wanted.endpoint)
    await check_dead_letters(call, topic, attributes)
    await call.desk.ready()
    try:
        subscription, made = await call.topics.subscribe(call.account, topic, new)
    except InvalidRequest as error:
        raise SubscriptionLimitExceeded if error.field == "subscriptions" else error from None
    if not made and kept.has_other(subscription, new, attributes):
        raise InvalidParameter("Attributes", "Subscription already exists with different attributes")
    arn = call.subscription_arn(topic, subscription.id)
    if subscription.status == PENDING:
        # Asked for again, it is sent again: that is how a lost one is got back.
        await call.desk.ask_to_confirm(call.account, topic, subscription, call.region, call.url)
        return outputs.SubscribeResult(arn if wanted.return_arn else PENDING_SAID)
    return outputs.SubscribeResult(arn)


def _own(call: Call, endpoint: str) -> str:
    account, name = queue_of(endpoint)
    return queue_endpoint(call.endpoint_account(account), name)


async def confirm_subscription(
    call: Call, wanted: OfTopic[ConfirmSubscriptionRequest]
) -> outputs.ConfirmSubscriptionResult:
    """By the token that was sent to the endpoint. Done twice it is as good."""
    topic, token = wanted.topic.name, wanted.wanted.token
    # Of somebody without a key it would mean nothing: whom should be asked for a signature?
    signed = wanted.wanted.authenticate_on_unsubscribe == "true" and call.caller.key is not None
    for one in await call.topics.subscriptions(call.account, topic):
        if call.desk.is_token(one, token):
            await _confirm(call, topic, one, signed)
            return outputs.ConfirmSubscriptionResult(call.subscription_arn(topic, one.id))
    raise InvalidParameter("Token")


async def _confirm(call: Call, topic: str, subscription: Subscription, signed: bool) -> None:
    if subscription.status == CONFIRMED:
        return
    age_ms = call.service.clock.now().wall_ms - subscription.created_at_ms
    if age_ms > limits.SNS_TOKEN_SECONDS * 1000:
        raise InvalidParameter("Token", "The token has expired")
    more = {kept.LEFT_BY_SIGNATURE: True} if signed else {}
    await call.topics.rewrite_subscription(
        call.account, topic, subscription.id,
        lambda found: replace(found, status=CONFIRMED, notes={**found.notes, **more}),
    )


async def unsubscribe(call: Call, wanted: OfSubscription[UnsubscribeRequest]) -> outputs.Nothing:
    """What is not there is as good as unsubscribed. An endpoint is told, and how to come back."""
    address = wanted.subscription
    try:
        known = await call.topics.subscriptions(call.account, address.topic)
    except TopicNotFound:
        return outputs.Nothing()
    for one in known:
        if one.id == address.id:
            if one.status == PENDING:
                raise InvalidParameter(
                    "SubscriptionArn", "This subscription is pending confirmation and cannot be unsubscribed"
                )
            await call.topics.unsubscribe(call.account, address.topic, one.id)
            if one.protocol != QUEUE:
                await call.desk.say_farewell(call.account, address.topic, one, call.region, call.url)
    return outputs.Nothing()
