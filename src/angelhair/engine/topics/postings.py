"""A publication as a message of the outbox: with those it goes to, and what each of them needs (R16)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b, sha256

from angelhair import limits
from angelhair.engine.topics.values import (
    BY_GROUP,
    CONFIRMED,
    Posting,
    Publication,
    Subscription,
    Target,
    Topic,
)
from angelhair.errors import InvalidRequest
from angelhair.model import FIFO, HIDDEN, MessageId, NewMessage

OUTBOX, FIFO_OUTBOX, HTTP_DELIVERIES = "outbox", "outbox.fifo", "http-deliveries"
"""Queues of an account that no door knows: they lie in an account of their own."""

_LENGTH_BYTES = 4
_ID_BYTES = 16
_JSON_GROWTH = 6
"""Bytes of JSON for a byte of a text, at most."""


def hidden_account(account: str) -> str:
    """Where an account's internal queues are. No account that a user has begins like this."""
    return HIDDEN + account


def targets_of(subscriptions: Sequence[Subscription]) -> list[Target]:
    """Each endpoint once: a read in several pages may have met one that ends and, further on, the one that follows."""
    found = {
        (one.protocol, one.endpoint): Target(one.id, one.protocol, one.endpoint, one.raw, one.dead_letter_queue)
        for one in sorted(subscriptions, key=lambda one: one.created_at_ms)
        if one.status == CONFIRMED
    }
    return list(found.values())


def posting_of(topic: Topic, publication: Publication, publication_id: str, now_ms: int) -> Posting:
    """A fifo topic's needs a group and a key, or a body to make the key of."""
    key = publication.key
    if topic.settings.kind == FIFO:
        if publication.group is None:
            raise InvalidRequest("group", "is needed in a fifo topic")
        if key is None and topic.settings.content_dedup:
            key = sha256(publication.body).hexdigest()
        if key is None:
            raise InvalidRequest("key", "is needed in a fifo topic, unless it goes by the content")
    return Posting(
        publication_id if key is None else "", topic.account, topic.name, topic.settings.kind, now_ms, publication.body,
        publication.attributes, publication.group, key, publication.subject, publication.bodies, None,
        publication.notes,
    )


def fits_into_envelopes(publication: Publication) -> bool:
    """Whether the message of a subscription that is not raw can be put into its queue: there the body is a text of
    JSON, in which quotes take twice their room, and what is no text up to six times."""
    room_bytes = limits.BODY_BYTES - limits.ENVELOPE_BYTES - 2 * len((publication.attributes or "").encode())
    bodies = [publication.body, *(body.encode() for body in publication.bodies.values())]
    return all(
        len(body) * _JSON_GROWTH <= room_bytes
        or len(json.dumps(body.decode(errors="replace"), ensure_ascii=False).encode()) <= room_bytes
        for body in bodies
    )


def outbox_message(topic: Topic, posting: Posting, targets: Sequence[Target]) -> NewMessage:
    body = pack(posting, targets)
    if topic.settings.kind != FIFO:
        return NewMessage(body, key=None if posting.key is None else _digest(topic.incarnation, posting.key))
    # All fifo topics of the account share one outbox: groups and keys are told apart by the topic's incarnation.
    group = _digest(topic.incarnation, posting.group or "")
    scope = group if topic.settings.dedup_scope == BY_GROUP else topic.incarnation
    return NewMessage(body, key=_digest(scope, posting.key or ""), group=group)


def pack(posting: Posting, targets: Sequence[Target]) -> bytes:
    head = json.dumps({
        **posting._asdict(), "body": None, "bodies": dict(posting.bodies), "notes": dict(posting.notes),
        "place": None if posting.place is None else str(posting.place), "targets": targets,
    }).encode()
    return len(head).to_bytes(_LENGTH_BYTES) + head + posting.body


def unpack(body: bytes, place: MessageId) -> tuple[Posting, list[Target]]:
    """`place`: of the outbox's message, from which a publication with a key has its id. Raises `ValueError` for
    what no version of ours has written; what a newer one wrote beside, it passes over."""
    end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES])
    try:
        head = json.loads(body[_LENGTH_BYTES:end])
        targets = [Target(*target[: len(Target._fields)]) for target in head["targets"]]
        known = head["place"]
        posting = Posting(**{name: head[name] for name in Posting._fields} | {"body": body[end:]})
    except (KeyError, TypeError) as error:
        raise ValueError("this is not a publication") from error
    if known is not None:
        posting = posting._replace(place=MessageId.parse(known))
    if not posting.id:
        fifo = posting.kind == FIFO
        posting = posting._replace(id=id_of_place(posting.account, fifo, place), place=place if fifo else None)
    return posting, targets


def id_of_place(account: str, fifo: bool, place: MessageId) -> str:
    """The id of a publication with a key: the same for who publishes it once more."""
    return _digest(account, FIFO_OUTBOX if fifo else OUTBOX, str(place))


def _digest(*parts: str) -> str:
    return blake2b("\x00".join(parts).encode(), digest_size=_ID_BYTES).hexdigest()
