"""What a message was at first: the id and the date that its producer was given, when it has waited elsewhere since.

A message with a long delay waits in the delay line, and has a number in a bucket not before it is due. The id that its
producer is given is made of a token: nobody counts it, and no bucket waits for it. It stands, with the first date, at
the end of the message's origin, and deliveries show these two.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from angelhair.model import DueId, MessageId

_AT_THE_END = re.compile(r"~(\d+-[0-9a-f-]{36})@(\d+)\Z")
_ID_BYTES = 16


class First(NamedTuple):
    id: MessageId
    enqueued_at: int


def first_id(lane: int, token: str) -> DueId:
    """Of two tokens never the same. The lane says of which rank the message is."""
    return DueId(lane, int.from_bytes(blake2b(token.encode(), digest_size=_ID_BYTES).digest()))


def with_first(origin: str | None, first: First) -> str:
    """An origin that also says what the message was at first."""
    return f"{origin or ''}~{first.id}@{first.enqueued_at}"


def split_origin(text: str | None) -> tuple[str | None, First | None]:
    """An origin as users see it, and what the message was at first, if it says so."""
    found = None if text is None else _AT_THE_END.search(text)
    if text is None or found is None:
        return text, None
    return text[: found.start()] or None, First(MessageId.parse(found[1]), int(found[2]))
