"""CreateTopic, DeleteTopic, ListTopics, GetTopicAttributes, SetTopicAttributes."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.topics.values import CONFIRMED, Topic, TopicRewritten
from angelhair.errors import TopicExists, TopicNotFound
from angelhair.model import FIFO
from angelhair.server.aws.tokens import token_of, value_of
from angelhair.server.sns import kept, outputs
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.addresses import is_topic_name
from angelhair.server.sns.checked import CreateTopic, OfTopic
from angelhair.server.sns.checks.attributes import OF_TOPICS, checked_topic_attribute
from angelhair.server.sns.errors import InvalidParameter
from angelhair.server.sns.inputs import (
    DeleteTopicRequest,
    GetTopicAttributesRequest,
    ListTopicsRequest,
    SetTopicAttributesRequest,
)


async def create_topic(call: Call, wanted: CreateTopic) -> outputs.CreateTopicResult:
    """One that exists is as good, if it has the attributes and tags that were named; those that were not may be any."""
    settings = kept.settings_of(wanted.attributes, wanted.is_fifo)
    notes = kept.noted({kept.TAGS: wanted.tags} if wanted.tags else {}, wanted.attributes)
    if wanted.data_protection_policy is not None:
        notes[kept.PROTECTION] = wanted.data_protection_policy
    try:
        topic, made = await call.topics.create(call.account, wanted.name, settings, notes)
    except TopicExists:
        topic, made = await call.topics.find(call.account, wanted.name), False
    if not made:
        _check_same(topic, wanted)
    return outputs.CreateTopicResult(call.arn_of(wanted.name))


def _check_same(topic: Topic, wanted: CreateTopic) -> None:
    if any(kept.attribute(topic, name) != text for name, text in wanted.attributes.items()):
        raise InvalidParameter("Attributes", "Topic already exists with different attributes")
    if wanted.tags and dict(kept.tags(topic)) != wanted.tags:
        raise InvalidParameter("Tags", "Topic already exists with different tags")


async def delete_topic(call: Call, wanted: OfTopic[DeleteTopicRequest]) -> outputs.Nothing:
    """One that is not there is as good as deleted."""
    try:
        await call.topics.delete(call.account, wanted.topic.name)
    except TopicNotFound:
        pass
    call.desk.forget(call.account, wanted.topic.name)
    return outputs.Nothing()


async def list_topics(call: Call, wanted: ListTopicsRequest) -> outputs.ListTopicsResult:
    after = None if wanted.next_token is None else value_of(wanted.next_token)
    if wanted.next_token is not None and after is None:
        raise InvalidParameter("NextToken")
    names, more = await call.topics.list(call.account, after=after, most=limits.SNS_PAGE)
    # Other doors allow names that no topic of SNS can have.
    found = [outputs.Topic(call.arn_of(name)) for name in names if is_topic_name(name)]
    return outputs.ListTopicsResult(found, token_of(names[-1]) if more and names else None)


async def get_topic_attributes(
    call: Call, wanted: OfTopic[GetTopicAttributesRequest]
) -> outputs.GetTopicAttributesResult:
    topic, (_, subscriptions) = await call.topics.read(call.account, wanted.topic.name)
    confirmed = sum(one.status == CONFIRMED for one in subscriptions)
    arn = call.arn_of(topic.name)
    values = {
        "TopicArn": arn,
        "Owner": call.account,
        "Policy": kept.default_policy(arn, call.account),
        "DisplayName": "",
        "SubscriptionsConfirmed": str(confirmed),
        "SubscriptionsPending": str(len(subscriptions) - confirmed),
        "SubscriptionsDeleted": "0",
        "EffectiveDeliveryPolicy": kept.effective_delivery_policy(topic),
    }
    if topic.settings.kind == FIFO:
        values["FifoTopic"] = "true"
    values |= {name: text for name in OF_TOPICS if (text := kept.attribute(topic, name)) is not None}
    return outputs.GetTopicAttributesResult(values)


async def set_topic_attributes(call: Call, wanted: OfTopic[SetTopicAttributesRequest]) -> outputs.Nothing:
    name, value = wanted.wanted.attribute_name, wanted.wanted.attribute_value or ""

    def rewrite(topic: Topic) -> TopicRewritten:
        text = checked_topic_attribute(name, value, topic.settings.kind == FIFO)
        changes = {} if text is None else kept.changes_of({name: text})
        return TopicRewritten(changes, kept.noted(topic.notes, {name: text}))

    await call.service.topics.rewrite(call.account, wanted.topic.name, rewrite)
    call.desk.forget(call.account, wanted.topic.name)
    return outputs.Nothing()
