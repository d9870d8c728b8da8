"""AddPermission, RemovePermission: statements of a queue's policy, by their labels."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.catalog import Queue, Rewritten
from angelhair.server.aws.policies import (
    LabelTaken,
    NoSuchLabel,
    grant,
    statements_in,
    with_statement,
    without_statement,
)
from angelhair.server.sqs.actions import kept
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.errors import InvalidParameterValue, OverLimit, invalid_value
from angelhair.server.sqs.inputs import AddPermissionRequest, RemovePermissionRequest
from angelhair.server.sqs.outputs import Nothing


async def add_permission(call: Call, wanted: AddPermissionRequest) -> Nothing:
    queue = await call.queue(wanted.queue_url)
    arn = call.arn_of(queue.name)
    actions = [f"SQS:{action}" for action in wanted.actions]
    statement = grant(wanted.label, wanted.aws_account_ids, actions, arn)

    def rewrite(found: Queue) -> Rewritten:
        text = kept.attribute(found, kept.POLICY)
        try:
            changed = with_statement(text, f"{arn}/SQSDefaultPolicy", statement)
        except LabelTaken:
            raise invalid_value(wanted.label, "Label", "Already exists.") from None
        count, most = len(statements_in(changed) or ()), limits.AWS_POLICY_STATEMENTS
        if count > most:
            raise OverLimit(f"{count} statements were found, maximum allowed is {most}.")
        return _with_policy(found, changed)

    await call.service.rewrite_queue(queue.account, queue.name, rewrite)
    return Nothing()


async def remove_permission(call: Call, wanted: RemovePermissionRequest) -> Nothing:
    queue = await call.queue(wanted.queue_url)

    def rewrite(found: Queue) -> Rewritten:
        try:
            return _with_policy(found, without_statement(kept.attribute(found, kept.POLICY), wanted.label))
        except NoSuchLabel:
            reason = "can't find label on existing policy."
            raise InvalidParameterValue(
                f"Value {wanted.label} for parameter Label is invalid. Reason: {reason}"
            ) from None

    await call.service.rewrite_queue(queue.account, queue.name, rewrite)
    return Nothing()


def _with_policy(queue: Queue, policy: str | None) -> Rewritten:
    attributes = dict(queue.notes.get(kept.ATTRIBUTES, {}))
    attributes.pop(kept.POLICY, None)
    if policy is not None:
        attributes[kept.POLICY] = policy
    return Rewritten({}, {**queue.notes, kept.ATTRIBUTES: attributes})
