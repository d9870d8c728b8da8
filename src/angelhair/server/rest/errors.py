"""How this door says no: one code for each thing that a client may do next, one status for each code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from msgspec import UNSET

from angelhair import limits
from angelhair.errors import (
    AngelhairError,
    InvalidReceipt,
    InvalidRequest,
    OutcomeUnknown,
    QueueExists,
    QueueNotFound,
    RequestError,
    StaleReceipt,
    StoreError,
    SubscriptionNotFound,
    TopicExists,
    TopicNotFound,
    Unavailable,
)
from angelhair.server.auth import Refused
from angelhair.server.auth.refusals import UnknownKey
from angelhair.server.http.messages import Response, json_response
from angelhair.server.rest.own_shapes import Error

T = TypeVar("T")


class Code(NamedTuple):
    status: int
    meaning: str


CODES = {
    "invalid_request": Code(400, "a value is missing, unknown or out of bounds; `field` names it"),
    "invalid_receipt": Code(400, "the receipt is forged, damaged or another queue's"),
    "malformed_json": Code(400, "the body is not JSON"),
    "malformed_request": Code(400, "this is not HTTP/1.1 as this server understands it"),
    "unauthorized": Code(401, "no access key is named, or its signature or secret is wrong"),
    "forbidden": Code(403, "the access key is not for this action or this queue, or the queue's policy denies it"),
    "queue_not_found": Code(404, "there is no queue of this name"),
    "topic_not_found": Code(404, "there is no topic of this name"),
    "subscription_not_found": Code(404, "the queue is not subscribed to the topic"),
    "no_dead_letter_queue": Code(404, "the queue has no dead-letter queue"),
    "not_found": Code(404, "there is no such route"),
    "method_not_allowed": Code(405, "the route does not know this method; `Allow` has those that it knows"),
    "request_timeout": Code(408, "the request took too long to arrive"),
    "queue_exists": Code(409, "the queue exists with other settings; `differing` names them"),
    "topic_exists": Code(409, "the topic exists with other settings; `differing` names them"),
    "dead_letters_elsewhere": Code(409, "the queue holds no dead letters: it sends its own to another"),
    "stale_receipt": Code(409, "the message was delivered again, moved or settled since; do not repeat"),
    "body_too_large": Code(413, "the body is too large"),
    "url_too_long": Code(414, "the URL is too long"),
    "unsupported_media_type": Code(415, "the content type says that the body is not JSON"),
    "headers_too_large": Code(431, "there are too many headers, or they are too large"),
    "internal_error": Code(500, "the server met an error that it does not know"),
    "not_implemented": Code(501, "the transfer encoding is not understood"),
    "unavailable": Code(503, "the store is unavailable; it did not happen, and trying again is safe"),
    "too_many_connections": Code(503, "the server has as many connections as it takes"),
    "outcome_unknown": Code(504, "it may have happened, or may yet; try again under the same key, or read back"),
}

WHO = (("WWW-Authenticate", 'Basic realm="angelhair", charset="UTF-8"'),)
"""What makes clients and browsers ask for a key."""

RETRY_AFTER = (("Retry-After", str(limits.RETRY_AFTER_SECONDS)),)

_HEADERS = {401: WHO, 503: RETRY_AFTER}
_DENIED = "AccessDenied"

_FIELDS = {"name": "queue"}
"""What the engine calls by another name than this door."""


class Refusal(Exception):
    """What this door refuses by itself."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field


def invalid(field: str, message: str) -> Refusal:
    """A value that this door has looked at; `InvalidRequest` comes from behind it, with names of its own."""
    return Refusal("invalid_request", f"{field}: {message}", field)


class Verdict(NamedTuple):
    code: str
    message: str
    field: str | None = None
    differing: Sequence[str] = ()


def judge(error: Exception) -> Verdict:
    """An error in this door's words. What it does not know is raised, and becomes a 500 with a log entry."""
    match error:
        case Refusal():
            return Verdict(error.code, error.message, error.field)
        case Refused(code="MissingAuthenticationToken"):
            shown = "its id and secret as user and password, or a signature"
            return Verdict("unauthorized", f"this server asks for an access key: {shown}")
        case UnknownKey():
            # Amazon's sentence, which the others get, is about a token that nobody here has heard of.
            which = f"access key {error.shown_id}" if error.shown_id else "the access key"
            why = f"{which} is unknown or disabled, or its secret is wrong; see 'angelhair key list'"
            return Verdict("unauthorized", why)
        case Refused():
            return Verdict("forbidden" if error.code == _DENIED else "unauthorized", error.message)
        case Unavailable():
            return Verdict("unavailable", str(error))
        case OutcomeUnknown():
            return Verdict("outcome_unknown", str(error))
        case InvalidReceipt():
            return Verdict("invalid_receipt", f"the receipt {error.message}", "receipt")
        case InvalidRequest():
            field = _FIELDS.get(error.field, error.field)
            return Verdict("invalid_request", f"{field}: {error.message}", field)
        case QueueNotFound():
            return Verdict("queue_not_found", f"there is no queue {error.name!r}")
        case QueueExists():
            differing = [name.removesuffix("_ms") for name in error.differing]
            message = (
                f"queue {error.name!r} exists with another value of {', '.join(differing)}; what is left out counts as "
                f"its default. PATCH /queues/{error.name} (angelhair queue set) changes settings"
            )
            return Verdict("queue_exists", message, differing=differing)
        case TopicNotFound():
            return Verdict("topic_not_found", f"there is no topic {error.name!r}")
        case SubscriptionNotFound():
            return Verdict("subscription_not_found", f"{error.what!r} is not subscribed to topic {error.topic!r}")
        case TopicExists():
            message = f"the topic exists with another value of {', '.join(error.differing)}"
            return Verdict("topic_exists", message, differing=error.differing)
        case StaleReceipt():
            return Verdict("stale_receipt", str(error))
    raise error


def response_to(error: Exception, request_id: str) -> Response:
    verdict = judge(error)
    status = CODES[verdict.code].status
    # A field's name may be empty: JSON allows it.
    field = UNSET if verdict.field is None else verdict.field
    said = Error(verdict.code, verdict.message, request_id, field, list(verdict.differing) or UNSET)
    return json_response(status, said, _HEADERS.get(status, ()))


def raise_if_all_failed(outcomes: Sequence[T | AngelhairError]) -> None:
    """A request of which nothing was done, for one reason, is answered by that reason, whatever its size."""
    for kind in (Unavailable, OutcomeUnknown):
        if all(isinstance(outcome, kind) for outcome in outcomes):
            error = outcomes[0]
            assert isinstance(error, AngelhairError)
            raise error


REFUSED = (Refusal, RequestError, StoreError, Refused)
"""What a handler, or the gate before it, may raise and `judge` knows."""
