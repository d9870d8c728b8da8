"""Checks that several actions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from angelhair import limits
from angelhair.server.sns.addresses import SubscriptionAddress, TopicAddress, parse_subscription_arn, parse_topic_arn
from angelhair.server.sns.errors import InvalidParameter, ResourceNotFound, TagLimitExceeded
from angelhair.server.sns.outputs import Tag


def need(value: str | None, parameter: str) -> str:
    if not value:
        raise InvalidParameter(parameter, "no value for required parameter")
    return value


def need_topic(arn: str | None, parameter: str = "TopicArn") -> TopicAddress:
    return parse_topic_arn(need(arn, parameter), parameter)


def need_subscription(arn: str) -> SubscriptionAddress:
    return parse_subscription_arn(need(arn, "SubscriptionArn"))


def tagged_topic(arn: str) -> TopicAddress:
    """Tags are asked of resources; what is no topic is a resource that there is not."""
    try:
        return need_topic(arn, "ResourceArn")
    except InvalidParameter:
        if not arn.startswith("arn:"):
            raise
        raise ResourceNotFound from None


def checked_tags(tags: Sequence[Tag]) -> dict[str, str]:
    if len(tags) > limits.AWS_TAGS:
        raise TagLimitExceeded
    check_tag_keys(tag.key for tag in tags)
    for tag in tags:
        if len(tag.value) > limits.AWS_TAG_VALUE_LENGTH:
            raise InvalidParameter("Tags", f"Tag values have at most {limits.AWS_TAG_VALUE_LENGTH} characters")
    found = {tag.key: tag.value for tag in tags}
    if len(found) != len(tags):
        raise InvalidParameter("Duplicated keys are not allowed.")
    return found


def check_tag_keys(keys: Iterable[str]) -> None:
    for key in keys:
        if not 1 <= len(key) <= limits.AWS_TAG_KEY_LENGTH:
            raise InvalidParameter("Tags", f"Tag keys have 1 to {limits.AWS_TAG_KEY_LENGTH} characters")
        if key.lower().startswith("aws:"):
            raise InvalidParameter("Tags", "Tag keys beginning with aws: are reserved")


def check_next_token(token: str | None) -> None:
    if token is not None and not 1 <= len(token) <= limits.AWS_NEXT_TOKEN_LENGTH:
        raise InvalidParameter("NextToken")
