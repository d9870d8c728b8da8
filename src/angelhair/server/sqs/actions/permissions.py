"""AddPermission, RemovePermission: statements of a queue's policy, by their labels."""

from __future__ import annotations

import json
from typing import Any

from angelhair import limits
from angelhair.engine.catalog import Queue, Rewritten
from angelhair.server.sqs.actions import kept
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.errors import InvalidParameterValue, OverLimit, invalid_value
from angelhair.server.sqs.inputs import AddPermissionRequest, RemovePermissionRequest
from angelhair.server.sqs.outputs import Nothing

VERSION = "2012-10-17"


async def add_permission(call: Call, wanted: AddPermissionRequest) -> Nothing:
    queue = await call.queue(wanted.queue_url)
    arn = call.arn_of(queue.name)
    principals = [f"arn:aws:iam::{account}:root" for account in wanted.aws_account_ids]
    actions = [f"SQS:{action}" for action in wanted.actions]
    statement = {
        "Sid": wanted.label,
        "Effect": "Allow",
        "Principal": {"AWS": principals[0] if len(principals) == 1 else principals},
        "Action": actions[0] if len(actions) == 1 else actions,
        "Resource": arn,
    }

    def rewrite(found: Queue) -> Rewritten:
        policy = _policy(found) or {"Version": VERSION, "Id": f"{arn}/SQSDefaultPolicy", "Statement": []}
        statements = policy["Statement"]
        if any(known.get("Sid") == wanted.label for known in statements):
            raise invalid_value(wanted.label, "Label", "Already exists.")
        if len(statements) >= limits.AWS_POLICY_STATEMENTS:
            most = limits.AWS_POLICY_STATEMENTS
            raise OverLimit(f"{len(statements) + 1} statements were found, maximum allowed is {most}.")
        return _with_policy(found, {**policy, "Statement": [*statements, statement]})

    await call.service.rewrite_queue(queue.account, queue.name, rewrite)
    return Nothing()


async def remove_permission(call: Call, wanted: RemovePermissionRequest) -> Nothing:
    queue = await call.queue(wanted.queue_url)

    def rewrite(found: Queue) -> Rewritten:
        policy = _policy(found) or {"Statement": []}
        left = [known for known in policy["Statement"] if known.get("Sid") != wanted.label]
        if len(left) == len(policy["Statement"]):
            reason = "can't find label on existing policy."
            raise InvalidParameterValue(
                f"Value {wanted.label} for parameter Label is invalid. Reason: {reason}"
            )
        return _with_policy(found, {**policy, "Statement": left} if left else None)

    await call.service.rewrite_queue(queue.account, queue.name, rewrite)
    return Nothing()


def _policy(queue: Queue) -> dict[str, Any] | None:
    text = kept.attribute(queue, kept.POLICY)
    if text is None:
        return None
    policy: dict[str, Any] = json.loads(text)
    statements = policy.get("Statement", [])
    # A policy with one statement may have it without a list around it.
    return {**policy, "Statement": statements if isinstance(statements, list) else [statements]}


def _with_policy(queue: Queue, policy: dict[str, Any] | None) -> Rewritten:
    attributes = dict(queue.notes.get(kept.ATTRIBUTES, {}))
    attributes.pop(kept.POLICY, None)
    if policy is not None:
        attributes[kept.POLICY] = json.dumps(policy)
    return Rewritten({}, {**queue.notes, kept.ATTRIBUTES: attributes})
