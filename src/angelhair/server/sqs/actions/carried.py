"""What a message of SQS carries when it is sent."""

from __future__ import annotations

from angelhair.server.aws.carried import Carried, encode
from angelhair.server.sqs.checked import OutgoingMessage


def pack(message: OutgoingMessage, message_id: str, sender: str, dedup: str | None = None, life: str = "") -> str:
    return encode(Carried(message_id, sender, message.group_id, dedup, message.trace_header, message.attributes, life))
