"""Delivery policies: how often, and after which pauses, an HTTP endpoint is tried again."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from angelhair import limits
from angelhair.server.aws.policies import json_object
from angelhair.server.sns.errors import InvalidParameter

FUNCTIONS = ("linear", "arithmetic", "geometric", "exponential")


class RetryPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """What SNS does unless it is told otherwise: three more tries, twenty seconds apart."""

    min_delay_target: int = 20
    max_delay_target: int = 20
    num_retries: int = 3
    num_no_delay_retries: int = 0
    num_min_delay_retries: int = 0
    num_max_delay_retries: int = 0
    backoff_function: str = "linear"


DEFAULT = RetryPolicy()
CONTENT_TYPE = "text/plain; charset=UTF-8"


def check_delivery_policy(name: str, text: str, of_topic: bool) -> str | None:
    """As it was given."""
    if not text:
        return None
    policy = json_object(text)
    if policy is None:
        raise InvalidParameter(name, "DeliveryPolicy: must be a JSON object")
    part = policy.get("http", {}) if of_topic else policy
    member = "defaultHealthyRetryPolicy" if of_topic else "healthyRetryPolicy"
    retry = part.get(member) if isinstance(part, dict) else ()
    if retry is not None:
        _check(name, retry)
    return text


def _check(name: str, retry: Any) -> None:
    try:
        policy = msgspec.convert(retry, RetryPolicy)
    except msgspec.ValidationError as error:
        raise InvalidParameter(name, f"DeliveryPolicy: {error}") from None
    phases = policy.num_no_delay_retries, policy.num_min_delay_retries, policy.num_max_delay_retries
    longest = limits.SNS_RETRY_DELAY_MAXIMUM_SECONDS
    wrong = None
    if not 0 <= policy.num_retries <= limits.SNS_RETRIES_MAXIMUM:
        wrong = f"numRetries must be between 0 and {limits.SNS_RETRIES_MAXIMUM}"
    elif not 1 <= policy.min_delay_target <= policy.max_delay_target <= longest:
        wrong = f"minDelayTarget must be at least 1, and maxDelayTarget between it and {longest}"
    elif min(phases) < 0 or sum(phases) > policy.num_retries:
        wrong = "the retries of the phases must not be more than numRetries"
    elif policy.backoff_function not in FUNCTIONS:
        wrong = f"backoffFunction must be one of {', '.join(FUNCTIONS)}"
    if wrong is not None:
        raise InvalidParameter(name, f"DeliveryPolicy: {wrong}")


def retry_policy(subscription: str | None, topic: str | None) -> RetryPolicy:
    """What is in force: the subscription's, unless its topic says that it does not count; else the topic's."""
    of_topic = (json_object(topic) or {}).get("http", {}) if topic else {}
    own = (json_object(subscription) or {}).get("healthyRetryPolicy") if subscription else None
    chosen = own
    if own is None or of_topic.get("disableSubscriptionOverrides") is True:
        chosen = of_topic.get("defaultHealthyRetryPolicy", own if not of_topic else None)
    return DEFAULT if chosen is None else msgspec.convert(chosen, RetryPolicy)


def delay_seconds(policy: RetryPolicy, failures: int) -> float | None:
    """Until the next try, after so many have failed; None when that was the last."""
    retry = failures
    if retry > policy.num_retries:
        return None
    if retry <= policy.num_no_delay_retries:
        return 0
    retry -= policy.num_no_delay_retries
    if retry <= policy.num_min_delay_retries:
        return policy.min_delay_target
    retry -= policy.num_min_delay_retries
    growing = policy.num_retries - policy.num_no_delay_retries - policy.num_min_delay_retries
    growing -= policy.num_max_delay_retries
    if retry > growing:
        return policy.max_delay_target
    return _grown(policy, retry, growing)


def _grown(policy: RetryPolicy, step: int, steps: int) -> float:
    """From the least to the longest delay, reached with the last step."""
    least, most = policy.min_delay_target, policy.max_delay_target
    match policy.backoff_function:
        case "geometric":
            # The last step may be a rounding error beyond.
            return min(least * math.pow(most / least, step / steps), most)
        case "exponential":
            share = (2.0**step - 1) / (2.0**steps - 1)
        case "arithmetic":
            share = step * (step + 1) / (steps * (steps + 1))
        case _:
            share = step / steps
    return least + (most - least) * share
