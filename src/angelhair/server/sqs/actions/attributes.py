"""GetQueueAttributes, SetQueueAttributes."""

from __future__ import annotations

from angelhair.engine.catalog import Queue, Rewritten
from angelhair.errors import QueueNotFound
from angelhair.model import DATABAG
from angelhair.server.aws.arns import parse_arn
from angelhair.server.sqs.actions import kept
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.checked import QueueAttributes, RedrivePolicy, SetQueueAttributes
from angelhair.server.sqs.checks.attributes import ALL, BEYOND, SETTABLE, throughput_without_scope
from angelhair.server.sqs.checks.databags import check_attributes_of
from angelhair.server.sqs.checks.policies import missing_dead_letter_queue
from angelhair.server.sqs.errors import invalid_value
from angelhair.server.sqs.inputs import GetQueueAttributesRequest
from angelhair.server.sqs.outputs import GetQueueAttributesResult, Nothing

COUNTS = {
    "ApproximateNumberOfMessages": "visible",
    "ApproximateNumberOfMessagesNotVisible": "in_flight",
    "ApproximateNumberOfMessagesDelayed": "delayed",
}
"""What the engine calls them. They are asked for only when somebody wants one: they are read from the store."""


async def get_queue_attributes(call: Call, wanted: GetQueueAttributesRequest) -> GetQueueAttributesResult:
    queue = await call.queue(wanted.queue_url)
    if not wanted.attribute_names:
        return GetQueueAttributesResult()
    names = set(wanted.attribute_names)
    values = _values(call, queue, names)
    if ALL in names or names & COUNTS.keys():
        stats = await call.service.engine.stats(queue.account, queue.name)
        values |= {name: str(getattr(stats, field)) for name, field in COUNTS.items()}
    return GetQueueAttributesResult({name: values[name] for name in values if ALL in names or name in names})


def _values(call: Call, queue: Queue, names: set[str]) -> dict[str, str]:
    values = {
        "QueueArn": call.arn_of(queue.name),
        "CreatedTimestamp": str(queue.created_at_ms // 1000),
        "LastModifiedTimestamp": str(queue.changed_at_ms // 1000),
    }
    values |= kept.beyond_sqs(queue)
    for name in (*SETTABLE, *(names & BEYOND.keys())):
        value = kept.redrive_policy(queue, call.arn_of) if name == kept.REDRIVE else kept.attribute(queue, name)
        if value is not None:
            values[name] = value
    return values


async def set_queue_attributes(call: Call, wanted: SetQueueAttributes) -> Nothing:
    queue = await call.queue(wanted.queue_url)
    attributes = wanted.attributes
    check_attributes_of(queue.settings, attributes)
    await check_dead_letters(call, queue.name, attributes)
    changes = kept.changes_of(attributes)
    _check_throughput(queue, attributes)
    await call.service.rewrite_queue(
        queue.account, queue.name, lambda found: Rewritten(changes, kept.noted(found.notes, attributes))
    )
    return Nothing()


def _check_throughput(queue: Queue, attributes: QueueAttributes) -> None:
    """What is set now, or else was before, has to go together."""
    scope = attributes.texts.get(kept.SCOPE) or kept.attribute(queue, kept.SCOPE)
    limit = attributes.texts.get("FifoThroughputLimit") or kept.attribute(queue, "FifoThroughputLimit")
    if limit == "perMessageGroupId" and scope != "messageGroup":
        raise throughput_without_scope()


async def check_dead_letters(call: Call, name: str, attributes: QueueAttributes) -> None:
    """The queue that is to take the dead letters of this one exists, and lets itself be used for that."""
    policy = attributes.redrive_policy
    if not isinstance(policy, RedrivePolicy):
        return
    text = attributes.texts[kept.REDRIVE]
    if policy.dead_letter_queue == name:
        raise invalid_value(text, kept.REDRIVE, "Dead letter target must not be the queue itself.")
    arn = parse_arn(policy.dead_letter_target_arn)
    if arn is None or call.is_elsewhere(arn.account):
        raise missing_dead_letter_queue(text)
    try:
        target = await call.service.engine.find_queue(call.account, policy.dead_letter_queue)
    except QueueNotFound:
        raise missing_dead_letter_queue(text) from None
    if target.settings.kind == DATABAG:
        reason = "Dead letter target must not be a databag, from which nothing can be moved back."
        raise invalid_value(text, kept.REDRIVE, reason)
    if not kept.admits_dead_letters_of(target, call.arn_of(name)):
        reason = "Queue does not have permissions to redrive to the dead letter queue."
        raise invalid_value(text, kept.REDRIVE, reason)
