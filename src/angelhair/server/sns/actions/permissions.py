"""AddPermission, RemovePermission: statements of a topic's policy, by their labels."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.topics.values import Topic, TopicRewritten
from angelhair.server.aws.policies import (
    LabelTaken,
    NoSuchLabel,
    grant,
    statements_in,
    with_statement,
    without_statement,
)
from angelhair.server.sns import kept
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.checked import OfTopic
from angelhair.server.sns.errors import InvalidParameter
from angelhair.server.sns.inputs import AddPermissionRequest, RemovePermissionRequest
from angelhair.server.sns.outputs import Nothing

POLICY = "Policy"


async def add_permission(call: Call, wanted: OfTopic[AddPermissionRequest]) -> Nothing:
    request, arn = wanted.wanted, call.arn_of(wanted.topic.name)
    actions = [f"SNS:{action}" for action in request.action_name]
    statement = grant(request.label, request.aws_account_id, actions, arn)

    def rewrite(topic: Topic) -> TopicRewritten:
        text = kept.attribute(topic, POLICY) or kept.default_policy(arn, call.account)
        try:
            changed = with_statement(text, "__default_policy_ID", statement)
        except LabelTaken:
            raise InvalidParameter("Statement already exists") from None
        if len(statements_in(changed) or ()) > limits.AWS_POLICY_STATEMENTS:
            raise InvalidParameter(POLICY, f"A policy has at most {limits.AWS_POLICY_STATEMENTS} statements")
        return TopicRewritten({}, kept.noted(topic.notes, {POLICY: changed}))

    await call.service.topics.rewrite(call.account, wanted.topic.name, rewrite)
    return Nothing()


async def remove_permission(call: Call, wanted: OfTopic[RemovePermissionRequest]) -> Nothing:
    """A label that is not there is as good as removed, to SNS."""

    def rewrite(topic: Topic) -> TopicRewritten:
        text = kept.attribute(topic, POLICY)
        try:
            text = without_statement(text, wanted.wanted.label)
        except NoSuchLabel:
            pass
        return TopicRewritten({}, kept.noted(topic.notes, {POLICY: text}))

    await call.service.topics.rewrite(call.account, wanted.topic.name, rewrite)
    return Nothing()
