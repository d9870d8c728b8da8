"""Put: one message, its body as it comes; or a list of them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from angelhair import limits
from angelhair.engine.engine import PutOutcome
from angelhair.errors import AngelhairError, InvalidRequest
from angelhair.model import TIMELINE, MessageId, NewMessage, validate_message
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, shapes
from angelhair.server.rest.content import attributes_with, check_size, content_type_of, delay_until_ms, one_body
from angelhair.server.rest.decoding import decode
from angelhair.server.rest.errors import invalid, judge, raise_if_all_failed
from angelhair.server.rest.patterns import DUE_PATTERN
from angelhair.server.rest.times import in_ms
from angelhair.server.service import Service

PARAMETERS = query.parameters(
    query.seconds(
        "delay", "Seconds before the message can be received; by default the queue's `delay`. Not with `due`.",
        limits.DURATION_MAXIMUM_MS // 1000, 5,
    ),
    query.Parameter(
        "due", "When it can be received: RFC 3339, or seconds since 1970. The past means now. Not with `delay`.",
        {
            "anyOf": [
                {"type": "string", "pattern": DUE_PATTERN},
                {"type": "number", "minimum": 0, "maximum": limits.DUE_MAXIMUM_SECONDS},
            ]
        },
        "2026-11-15T13:00:00Z", query.due_ms,
    ),
    query.Parameter(
        "key", "An idempotency key: within the queue's `dedup_window`, puts with the same key are one message.",
        {"type": "string", "minLength": 1, "maxLength": limits.KEY_LENGTH}, "order-4711",
    ),
    query.Parameter(
        "group", "Whose message it is: if the queue is `fair`, who floods it is served after the others.",
        {"type": "string", "minLength": 1, "maxLength": limits.GROUP_LENGTH}, "customer-7",
    ),
    query.whole(
        "priority", "A higher one is served first; one above what the queue's `priorities` allow is its highest.",
        0, limits.PRIORITIES_MAXIMUM - 1, 0,
    ),
)

_items_decoder = msgspec.json.Decoder(shapes.NewMessages)


async def put_message(service: Service, request: Request, queue: str) -> Response:
    """The door's hottest path: no shape is decoded, the body is not copied."""
    message = NewMessage(check_size(request.body), content_type_of(request))
    if request.query:
        message = await _with_parameters(message, request, service, queue)
    (outcome,) = await service.put(request.account, queue, (message,))
    if not isinstance(outcome, MessageId):
        raise outcome
    return json_response(201, shapes.Put(str(outcome), queue))


async def _with_parameters(message: NewMessage, request: Request, service: Service, queue: str) -> NewMessage:
    given = query.read(request.query, PARAMETERS)
    delay_ms, due_ms, key = given.get("delay"), given.get("due"), given.get("key")
    if due_ms is not None:
        if delay_ms is not None:
            raise invalid("due", "and delay cannot both be given")
        if not await _has_due_times(service, request, queue):
            delay_ms, due_ms = delay_until_ms(due_ms, service.clock), None
    group, priority = given.get("group"), given.get("priority", 0)
    if group is not None:
        message = message._replace(attributes=attributes_with(request.headers.get("content-type") or None, group))
    return message._replace(delay_ms=delay_ms, key=key, group=group, priority=priority, due_ms=due_ms)


async def _has_due_times(service: Service, request: Request, queue: str) -> bool:
    """A timeline keeps the time itself; elsewhere it is so long a delay."""
    return (await service.engine.find_queue(request.account, queue)).settings.kind == TIMELINE


async def put_messages(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    items = decode(request, _items_decoder)
    kept = any(item.due is not UNSET for item in items) and await _has_due_times(service, request, queue)
    messages = [_message(item, index, service, kept) for index, item in enumerate(items)]
    outcomes = await service.put(request.account, queue, messages)
    ids = [shapes.PutId(str(outcome)) for outcome in outcomes if isinstance(outcome, MessageId)]
    if len(ids) == len(outcomes):
        return json_response(201, shapes.PutAll(ids, queue))
    raise_if_all_failed(outcomes)
    if not ids and len({(type(outcome), str(outcome)) for outcome in outcomes}) == 1:
        (reason, *_) = outcomes
        assert isinstance(reason, AngelhairError)
        raise reason
    return json_response(207, shapes.PutSome([_said(outcome) for outcome in outcomes], queue))


def _said(outcome: PutOutcome) -> shapes.PutOutcome:
    if isinstance(outcome, MessageId):
        return shapes.PutOutcome(id=str(outcome))
    verdict = judge(outcome)
    return shapes.PutOutcome(error=shapes.ItemError(verdict.code, verdict.message))


def _message(item: shapes.NewMessageItem, index: int, service: Service, due_is_kept: bool) -> NewMessage:
    where = f"[{index}]."
    body = one_body(item.body, item.body_base64, where)
    if body is None:
        raise invalid(f"{where}body", "is missing; it, or body_base64, must be given")
    delay_ms = None if item.delay is UNSET else in_ms(item.delay)
    due_ms: int | None = None
    if item.due is not UNSET:
        if delay_ms is not None:
            raise invalid(f"{where}due", "and delay cannot both be given")
        due = item.due
        field = f"{where}due"
        due_ms = query.due_ms(field, due) if isinstance(due, str) else query.due_number_ms(field, due)
        if not due_is_kept:
            delay_ms, due_ms = delay_until_ms(due_ms, service.clock), None
    try:
        group = None if item.group is UNSET else item.group
        attributes = attributes_with(None if item.content_type is UNSET else item.content_type, group)
        message = NewMessage(
            body, attributes, delay_ms, None if item.key is UNSET else item.key, group=group,
            priority=0 if item.priority is UNSET else item.priority, due_ms=due_ms,
        )
        validate_message(message)
    except InvalidRequest as error:
        raise invalid(where + error.field, error.message) from None
    return message
