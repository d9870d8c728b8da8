"""Whether the owner of a queue agrees to what a topic would send there."""

from __future__ import annotations

from collections.abc import Mapping

from angelhair.errors import QueueNotFound
from angelhair.server.auth.policies import Verdict, Wish, judge
from angelhair.server.aws.arns import queue_arn
from angelhair.server.gate import policy_of
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.checks.attributes import REDRIVE, dead_letter_arn
from angelhair.server.sns.errors import AuthorizationError, InvalidParameter


async def check_consent(call: Call, topic: str, account: str, name: str) -> None:
    """Nobody has messages put into a queue of another account which that account did not agree to: it asks for it
    itself, or the queue's policy lets the topic send. That the topic is of the queue's account is no consent: who asks
    may be anybody whom the topic lets subscribe."""
    if account == call.caller.account:
        return
    try:
        policy = policy_of(await call.service.engine.find_queue(account, name))
    except QueueNotFound:
        policy = None
    wish = Wish(
        None, "", "sqs:SendMessage", queue_arn(call.region, account, name),
        {"aws:sourcearn": call.arn_of(topic), "aws:sourceaccount": call.account}, service="sns.amazonaws.com",
    )
    if policy is None or judge(policy, wish) is not Verdict.ALLOWED:
        raise AuthorizationError(f"The policy of the queue does not let the topic send: {name}")


async def check_dead_letters(call: Call, topic: str, attributes: Mapping[str, str | None]) -> None:
    """They go to a queue of the topic's own account: in another, nothing would be found of them."""
    arn = dead_letter_arn(attributes.get(REDRIVE))
    if arn is None:
        return
    if call.endpoint_account(arn.account) != call.account:
        raise InvalidParameter("RedrivePolicy: must use a queue of the topic's own account as its dead-letter queue")
    await check_consent(call, topic, call.account, arn.name)
