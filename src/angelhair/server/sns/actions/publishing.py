"""Publish, PublishBatch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from angelhair.batching.topics import PublishOutcome
from angelhair.engine.topics.values import Publication, Published, Topic
from angelhair.model import FIFO
from angelhair.server.aws.carried import Carried, as_uuid, encode, sequence_number
from angelhair.server.aws.errors import AwsError
from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sns import kept, outputs
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.addresses import TopicAddress
from angelhair.server.sns.checked import Outgoing, Publish, PublishBatch
from angelhair.server.sns.envelope import notes_of
from angelhair.server.sns.errors import BatchRequestTooLong, InvalidParameter
from angelhair.server.sns.faults import as_sns_error


async def publish(call: Call, wanted: Publish) -> outputs.PublishResult:
    topic = await _topic(call, wanted.topic)
    if wanted.message.size_bytes > kept.maximum_message_bytes(topic):
        raise InvalidParameter("Message too long")
    publication = _publication(call, topic, wanted.message)
    (outcome,) = await _published(call, topic, [publication])
    if not isinstance(outcome, Published):
        raise outcome
    return outputs.PublishResult(*_told(outcome))


async def publish_batch(call: Call, wanted: PublishBatch) -> outputs.PublishBatchResult:
    topic = await _topic(call, wanted.topic)
    if sum(entry.message.size_bytes for entry in wanted.entries) > kept.maximum_message_bytes(topic):
        raise BatchRequestTooLong
    failed = list(wanted.failed)
    sending = []
    for entry in wanted.entries:
        try:
            sending.append((entry.id, _publication(call, topic, entry.message)))
        except AwsError as error:
            failed.append(outputs.BatchResultErrorEntry.of(entry.id, error))
    outcomes = await _published(call, topic, [publication for _, publication in sending])
    successful = []
    for (entry_id, _), outcome in zip(sending, outcomes, strict=True):
        if isinstance(outcome, Published):
            successful.append(outputs.PublishBatchResultEntry(entry_id, *_told(outcome)))
        else:
            failed.append(outputs.BatchResultErrorEntry.of(entry_id, as_sns_error(outcome)))
    return outputs.PublishBatchResult(successful, failed)


async def _topic(call: Call, address: TopicAddress) -> Topic:
    """As it is, or was a moment ago. Whether it is still there is seen when something is published to it."""
    await call.desk.ready()
    return await call.desk.topic(call.account, address.name)


async def _published(call: Call, topic: Topic, publications: Sequence[Publication]) -> list[PublishOutcome]:
    if not publications:
        return []
    return await call.service.topics.publish(call.account, topic.name, publications)


def _publication(call: Call, topic: Topic, message: Outgoing) -> Publication:
    if topic.settings.kind == FIFO and message.deduplication_id is None and not topic.settings.content_dedup:
        raise InvalidParameter(
            "The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided "
            "explicitly"
        )
    carried = Carried("", call.caller.id, message.group_id, message.deduplication_id, None, message.attributes)
    return Publication(
        message.body.encode(), encode(carried), message.group_id, message.deduplication_id, message.subject,
        message.bodies, _values(message.attributes),
        notes=notes_of(call.region, call.url, kept.attribute(topic, "SignatureVersion") or "1"),
    )


def _values(attributes: Mapping[str, MessageAttributeValue]) -> dict[str, tuple[str, str]]:
    """As filter policies see them: types and texts. Binary ones they do not see."""
    return {
        name: (value.data_type, value.string_value)
        for name, value in attributes.items()
        if value.string_value is not None
    }


def _told(outcome: Published) -> tuple[str, str | None]:
    return as_uuid(outcome.id), None if outcome.place is None else sequence_number(outcome.place)
