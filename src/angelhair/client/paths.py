"""Where things are below the server's address. What would change the meaning of a path is refused before it is sent."""

from __future__ import annotations

from urllib.parse import quote

from angelhair.client.values import Delivered, Receipt
from angelhair.errors import InvalidReceipt
from angelhair.model import validate_name, validate_topic_name


def of_queue(queue: str, *rest: str) -> str:
    """An empty name, or one of dots, would be another path: `DELETE /queues/a/message/..` is not an ack."""
    return "/".join(("/queues", quote(validate_name("queue", queue), safe=""), *rest))


def of_consumer(queue: str, consumer: str) -> str:
    return of_queue(queue, "consumers", quote(validate_name("consumer", consumer), safe=""))


def of_topic(topic: str, queue: str | None = None) -> str:
    """The topic, or its subscription of a queue."""
    path = f"/topics/{quote(validate_topic_name(topic), safe='')}"
    return path if queue is None else f"{path}/queues/{quote(validate_name('queue', queue), safe='')}"


def of_message(delivered: Delivered) -> str:
    queue, receipt = receipt_of(delivered)
    if not isinstance(receipt, str) or not receipt.strip("."):
        raise InvalidReceipt("is not a receipt of this service")
    return of_queue(queue, "message", quote(receipt, safe=""))


def receipt_of(delivered: Delivered) -> Receipt:
    """The text of a receipt alone, which is what people try first, does not say which queue it is of."""
    try:
        return Receipt(delivered.queue, delivered.receipt)
    except AttributeError:
        wanted = "must come in a message that was received, or in a Receipt(queue, text)"
        raise InvalidReceipt(f"{wanted}, not in {type(delivered).__name__}") from None
