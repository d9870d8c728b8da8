"""Putting messages, one or many.

A put whose answer was lost may have happened, so it is repeated only under an idempotency key. With retries on, every
put has one: the caller's, or one that is made here and never leaves the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from angelhair import limits
from angelhair.client import reading
from angelhair.client.bodies import body_bytes, body_fields, check_text
from angelhair.client.paths import of_queue
from angelhair.client.plans import Call, Plan, Repeat, Request
from angelhair.client.refusals import from_code
from angelhair.client.retrying import Manner, exchange, exchange_items
from angelhair.client.values import Draft, PutOutcome, Seconds
from angelhair.client.verbs.queues import JSON
from angelhair.errors import AngelhairError, InvalidRequest, RequestError

BRACKETS_BYTES = 2


def put(
    manner: Manner,
    queue: str,
    body: bytes | str,
    *,
    content_type: str | None = None,
    delay: Seconds | None = None,
    due: datetime | None = None,
    key: str | None = None,
    group: str | None = None,
    priority: int | None = None,
) -> Plan[str]:
    """Puts one message and returns its id. Text is put as UTF-8."""
    given = Draft(body, content_type, delay, due, key, group, priority)
    draft = _keyed(manner, queue, given)
    try:
        return (yield from put_draft(manner, queue, draft, _repeat([draft])))
    except InvalidRequest as error:
        if draft == given or not _knows_no_keys(error):
            raise
        manner.note_keyless(queue)
        return (yield from put_draft(manner, queue, given, _repeat([given])))


def put_draft(manner: Manner, queue: str, draft: Draft, repeat: Repeat) -> Plan[str]:
    """As it is, with a key or without."""
    fields = _fields(draft)
    query = {name: str(value) for name, value in fields.items() if name != "content_type"}
    request = Request("PUT", of_queue(queue, "message"), query, body_bytes(draft.body), draft.content_type)
    return (yield from exchange(manner, Call(request, read_id, repeat, queue=queue)))


def put_many(manner: Manner, queue: str, messages: Iterable[bytes | str | Draft]) -> Plan[list[PutOutcome]]:
    """Puts any number of messages, in as few requests as the server takes; an outcome for each, in their order.

    Raises only if the server refused everything: then nothing was put.
    """
    if isinstance(messages, str | bytes | bytearray | memoryview):
        raise InvalidRequest("messages", "must be a list of messages; put takes a single one")
    given = [each if isinstance(each, Draft) else Draft(each) for each in messages]
    drafts = [_keyed(manner, queue, draft) for draft in given]
    try:
        return (yield from put_drafts(manner, queue, drafts, _repeat))
    except InvalidRequest as error:
        if drafts == given or not _knows_no_keys(error):
            raise
        manner.note_keyless(queue)
        return (yield from put_drafts(manner, queue, given, _repeat))


def _knows_no_keys(error: InvalidRequest) -> bool:
    """A timeline has none. The one that was made here nobody has asked for: it goes without, and is sent once."""
    return error.field == "key" or error.message.startswith("key: ")


def put_drafts(
    manner: Manner, queue: str, drafts: Sequence[Draft], repeat: Callable[[Sequence[Draft]], Repeat]
) -> Plan[list[PutOutcome]]:
    path = of_queue(queue, "messages")
    outcomes: list[str | AngelhairError] = []
    for portion in _portions([(draft, _item(draft)) for draft in drafts]):

        def ask(items: Sequence[tuple[Draft, bytes]]) -> Call[list[str | AngelhairError]]:
            body = b"[" + b",".join(encoded for _, encoded in items) + b"]"
            request = Request("PUT", path, {}, body, JSON)
            return Call(request, _outcomes_of(queue, len(items)), repeat([draft for draft, _ in items]), queue=queue)

        outcomes += yield from exchange_items(manner, portion, ask)
    if outcomes and all(isinstance(outcome, RequestError) for outcome in outcomes):
        raise next(outcome for outcome in outcomes if isinstance(outcome, RequestError))
    return [
        PutOutcome(None, outcome) if isinstance(outcome, AngelhairError) else PutOutcome(outcome, None)
        for outcome in outcomes
    ]


def _keyed(manner: Manner, queue: str, draft: Draft) -> Draft:
    if draft.key is not None or manner.retry is None or manner.is_keyless(queue):
        return draft
    return draft._replace(key=str(uuid4()))


def _repeat(drafts: Sequence[Draft]) -> Repeat:
    return Repeat.SAFE if all(draft.key is not None for draft in drafts) else Repeat.UNSAFE


def _fields(draft: Draft) -> dict[str, Any]:
    """What is said about a message, beside its body."""
    if draft.due is not None:
        if not isinstance(draft.due, datetime):
            raise InvalidRequest("due", f"must be a datetime that is aware of its time zone, not {draft.due!r}")
        if draft.due.tzinfo is None:
            raise InvalidRequest("due", "must be aware of its time zone")
    check_content_type(draft.content_type)
    for name, text in (("key", draft.key), ("group", draft.group)):
        if text is not None:
            check_text(name, text)
    fields = {
        "content_type": draft.content_type,
        "delay": draft.delay,
        "due": None if draft.due is None else draft.due.isoformat(timespec="milliseconds"),
        "key": draft.key,
        "group": draft.group,
        "priority": draft.priority,
    }
    return {name: value for name, value in fields.items() if value is not None}


def check_content_type(content_type: str | None) -> None:
    if content_type is not None:
        check_text("content_type", content_type)
        if not (content_type.isascii() and content_type.isprintable()):
            raise InvalidRequest("content_type", "may hold printable characters of ASCII only")


def _item(draft: Draft) -> bytes:
    return json.dumps(body_fields(body_bytes(draft.body)) | _fields(draft), ensure_ascii=False).encode()


def _portions(items: list[tuple[Draft, bytes]]) -> Iterator[list[tuple[Draft, bytes]]]:
    """As many as one request may hold, by number and by size."""
    portion: list[tuple[Draft, bytes]] = []
    size_bytes = BRACKETS_BYTES
    for item in items:
        # One byte for the comma.
        item_bytes = len(item[1]) + 1
        if portion and (
            len(portion) == limits.BATCH_MESSAGES or size_bytes + item_bytes > limits.HTTP_BODY_BYTES
        ):
            yield portion
            portion, size_bytes = [], BRACKETS_BYTES
        portion.append(item)
        size_bytes += item_bytes
    if portion:
        yield portion


def _outcomes_of(queue: str, count: int) -> Any:
    def outcome(item: Mapping[str, Any]) -> str | AngelhairError:
        error = item.get("error")
        return str(item["id"]) if error is None else from_code(error["code"], error["message"], error, queue)

    def read(found: Mapping[str, Any]) -> list[str | AngelhairError]:
        outcomes = [outcome(item) for item in found["messages"]]
        if len(outcomes) != count:
            raise ValueError(f"{len(outcomes)} outcomes for {count} messages")
        return outcomes

    return reading.reads(read)


def _id(found: Mapping[str, Any]) -> str:
    return str(found["id"])


read_id = reading.reads(_id)


