"""What a message carries beside its body: SQS's attributes and its id, as JSON among the engine's attributes.

The id is drawn when the message is sent and stays with it, into a dead-letter queue and back. Messages of FIFO queues,
and those that came through another door, carry none; theirs is made of their first place: so it is the same at every
delivery, and for who sends once more what was sent already. A FIFO queue's message carries in which life of the queue
it was sent: a queue that is made again under its name begins with the same places, and consumers go by ids.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from angelhair import limits
from angelhair.model import Delivery, MessageId, Peeked
from angelhair.server.aws.shape import MessageAttributeValue

_ID_BYTES = 16
_FIRST_SEQUENCE_NUMBER = 10**19


class Carried(msgspec.Struct, omit_defaults=True):
    id: str = ""
    sender: str = ""
    group: str | None = None
    dedup: str | None = None
    trace: str | None = None
    attributes: dict[str, MessageAttributeValue] = {}
    life: str = ""
    """The queue's incarnation, if the id is made of the place."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Carried).decode


def encode(carried: Carried) -> str:
    return _encode(carried).decode()


def decode(text: str) -> Carried:
    try:
        return _decode(text)
    except msgspec.DecodeError:
        # Whoever put this came through another door; the message is worth more than its attributes.
        return Carried()


def id_of_place(account: str, queue: str, message: MessageId, life: str) -> str:
    """The id of a message that has none of its own: the same for all who ask, also for who puts it once more."""
    return _id_of(f"{account}/{queue}/{message}", life)


def unpack(delivery: Delivery | Peeked, account: str, queue: str) -> Carried:
    carried = Carried() if delivery.attributes is None else decode(delivery.attributes)
    if not carried.id:
        carried.id = _id_of(delivery.origin or f"{account}/{queue}/{delivery.id}", carried.life)
    return carried


def _id_of(place: str, life: str) -> str:
    return as_uuid(blake2b(f"{place}/{life}".encode() if life else place.encode(), digest_size=_ID_BYTES).hexdigest())


def as_uuid(digits: str) -> str:
    """32 hexadecimal digits in the form that clients expect of an id."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def sequence_number(message: MessageId) -> str:
    """Twenty digits that only grow in a group: its messages have one lane, and numbers in their order."""
    return str(_FIRST_SEQUENCE_NUMBER + message.number * limits.LANES_MAXIMUM + message.lane)
