"""From the codes of refusals back to the errors that the server raised: the caller sees what the engine saw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from angelhair.client.plans import Answer
from angelhair.errors import (
    AngelhairError,
    InvalidReceipt,
    InvalidRequest,
    MessageGone,
    NotAllowed,
    OutcomeUnknown,
    QueueExists,
    QueueNotFound,
    RequestError,
    StaleReceipt,
    SubscriptionNotFound,
    TopicExists,
    TopicNotFound,
    Unavailable,
)

# A server that answers one of these has looked at nothing beyond the request's head.
DID_NOT_HAPPEN = {"unavailable", "too_many_connections", "too_many_requests", "request_timeout"}

FIRST_SERVER_ERROR = 500
TOO_MANY_REQUESTS = 429


def refusal(answer: Answer, queue: str, topic: str = "") -> AngelhairError:
    """What an answer that is not 2xx means. One that is not ours, a proxy's perhaps, is told by its status."""
    try:
        said = json.loads(answer.body)
        return from_code(said["code"], said["message"], said, queue, answer.status, topic)
    except (ValueError, KeyError, TypeError):
        what = f"the answer is {answer.status}, and not Angelhair's"
        if answer.status == TOO_MANY_REQUESTS:
            return Unavailable(what)
        return OutcomeUnknown(what) if answer.status >= FIRST_SERVER_ERROR else RequestError(what)


def from_code(
    code: str, message: str, said: Mapping[str, Any], queue: str, status: int = FIRST_SERVER_ERROR, topic: str = ""
) -> AngelhairError:
    """An error of the server's, for a whole request or for one item of many."""
    field = str(said.get("field") or "request")
    # Our errors put what they are about before their message, and so did the server's: once is enough.
    bare = message.removeprefix(f"{field}: ")
    match code:
        case "unauthorized" | "forbidden":
            return NotAllowed(message)
        case "queue_not_found":
            return _in_its_words(QueueNotFound("", queue), message)
        case "queue_exists":
            return _in_its_words(QueueExists("", queue, tuple(said.get("differing") or ())), message)
        case "topic_not_found":
            return _in_its_words(TopicNotFound("", topic), message)
        case "topic_exists":
            return _in_its_words(TopicExists("", topic, tuple(said.get("differing") or ())), message)
        case "subscription_not_found":
            return _in_its_words(SubscriptionNotFound(topic, queue), message)
        case "stale_receipt":
            return StaleReceipt(message)
        case "message_gone":
            return MessageGone(message)
        case "invalid_receipt":
            return InvalidReceipt(message.removeprefix("the receipt "))
        case "invalid_request":
            return InvalidRequest(field, bare)
        case "body_too_large":
            return InvalidRequest("body", message.removeprefix("body: "))
        case "no_dead_letter_queue":
            return InvalidRequest("dead_letter_queue", message)
        case "dead_letters_elsewhere":
            return InvalidRequest("queue", message)
        case _ if code in DID_NOT_HAPPEN:
            return Unavailable(message)
        case _ if status >= FIRST_SERVER_ERROR and code != "not_implemented":
            # Whatever went wrong in the server, it does not say that nothing was done.
            return OutcomeUnknown(f"{code}: {message}")
        case _:
            return RequestError(f"{code}: {message}")


def _in_its_words(error: AngelhairError, message: str) -> AngelhairError:
    """The server knows the account; we do not."""
    error.args = (message,)
    return error
