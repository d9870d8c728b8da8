"""Subscriptions: protocols, endpoints, attributes, tokens."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import urlsplit

from angelhair import limits
from angelhair.engine.topics.values import HTTP, HTTPS, QUEUE, queue_endpoint
from angelhair.server.aws.arns import FIFO, parse_arn
from angelhair.server.sns.addresses import TopicAddress
from angelhair.server.sns.checked import OfSubscription, OfTopic, Subscribe
from angelhair.server.sns.checks.common import check_next_token, need, need_subscription, need_topic
from angelhair.server.sns.errors import InvalidParameter
from angelhair.server.sns.inputs import (
    ConfirmSubscriptionRequest,
    GetSubscriptionAttributesRequest,
    ListSubscriptionsByTopicRequest,
    ListSubscriptionsRequest,
    SetSubscriptionAttributesRequest,
    SubscribeRequest,
    UnsubscribeRequest,
)

PROTOCOLS = {"sqs": QUEUE, "http": HTTP, "https": HTTPS}
"""Those that this server delivers to, in the engine's words."""

ELSEWHERE = frozenset({"email", "email-json", "sms", "application", "lambda", "firehose"})
"""Protocols of SNS that it does not."""

Asked = TypeVar(
    "Asked", GetSubscriptionAttributesRequest, SetSubscriptionAttributesRequest, UnsubscribeRequest
)


def check_subscribe(request: SubscribeRequest) -> Subscribe:
    topic = need_topic(request.topic_arn)
    said = need(request.protocol, "Protocol")
    protocol = PROTOCOLS.get(said)
    if protocol is None:
        if said in ELSEWHERE:
            raise InvalidParameter(f"{said} endpoints are not served here: use sqs, http or https")
        raise InvalidParameter(f"Amazon SNS does not support this protocol string: {said}")
    endpoint = need(request.endpoint, "Endpoint")
    endpoint = _queue(topic, endpoint) if protocol == QUEUE else _url(topic, endpoint, said)
    return Subscribe(topic, protocol, endpoint, request.attributes, request.return_subscription_arn)


def _queue(topic: TopicAddress, endpoint: str) -> str:
    arn = parse_arn(endpoint)
    if arn is None:
        raise InvalidParameter("SQS endpoint ARN")
    if arn.name.endswith(FIFO) and not topic.name.endswith(FIFO):
        # Twice is Amazon's way to say it.
        raise InvalidParameter(
            "Invalid parameter: Endpoint", "FIFO SQS Queues can not be subscribed to standard SNS topics"
        )
    return queue_endpoint(arn.account, arn.name)


def _url(topic: TopicAddress, endpoint: str, protocol: str) -> str:
    if topic.name.endswith(FIFO):
        raise InvalidParameter("Invalid parameter: Endpoint", "FIFO topics do not deliver to HTTP endpoints")
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidParameter("Endpoint") from None
    if parts.scheme.lower() != protocol:
        raise InvalidParameter("Endpoint must match the specified protocol")
    is_plain = endpoint.isascii() and endpoint.isprintable() and " " not in endpoint
    if not host or port == 0 or not is_plain or len(endpoint) > limits.ENDPOINT_LENGTH:
        raise InvalidParameter("Endpoint")
    return endpoint


def check_subscription(request: Asked) -> OfSubscription[Asked]:
    return OfSubscription(need_subscription(request.subscription_arn), request)


def check_set(request: SetSubscriptionAttributesRequest) -> OfSubscription[SetSubscriptionAttributesRequest]:
    need(request.attribute_name, "AttributeName")
    return check_subscription(request)


def check_confirm(request: ConfirmSubscriptionRequest) -> OfTopic[ConfirmSubscriptionRequest]:
    topic = need_topic(request.topic_arn)
    need(request.token, "Token")
    return OfTopic(topic, request)


def check_list(request: ListSubscriptionsRequest) -> ListSubscriptionsRequest:
    check_next_token(request.next_token)
    return request


def check_list_by_topic(request: ListSubscriptionsByTopicRequest) -> OfTopic[str | None]:
    topic = need_topic(request.topic_arn)
    check_next_token(request.next_token)
    return OfTopic(topic, request.next_token)
