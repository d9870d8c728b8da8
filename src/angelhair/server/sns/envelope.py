"""What a subscriber gets: the message as it was published, or SNS's notification around it, signed."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from msgspec.structs import replace

from angelhair import limits
from angelhair.engine.topics.values import QUEUE, Posting, Rendered, Target, as_published
from angelhair.model import FIFO
from angelhair.server.aws.carried import Carried, as_uuid, decode, encode, sequence_number
from angelhair.server.sns.addresses import subscription_arn, topic_arn
from angelhair.server.sns.signing import Signer
from angelhair.settings import REGION

NOTIFICATION = "Notification"
CONFIRMATION = "SubscriptionConfirmation"
FAREWELL = "UnsubscribeConfirmation"

SIGNED = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    CONFIRMATION: ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    FAREWELL: ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}
"""What a signature is over, in this order; what a message does not have is left out."""


def notes_of(region: str, url: str, version: str, **more: str) -> dict[str, str]:
    """What a publication takes along, to be found here again."""
    return {"region": region, "url": url, "version": version, **more}


class Envelopes:
    def __init__(self, signer: Signer, own_url: str) -> None:
        """`own_url`: for links in what came through a door that does not say how its clients call this server."""
        self._signer = signer
        self._own_url = own_url
        self._signatures: OrderedDict[tuple[bytes, str], str] = OrderedDict()

    async def prepare(self, items: Sequence[tuple[Posting, Target]]) -> None:
        """Signs what is to be rendered, one by one: others have their turn in between."""
        enveloped = [item for item in items if item[1].protocol == QUEUE and not item[1].raw]
        if enveloped:
            await self._signer.ready()
        for posting, target in enveloped:
            self.notification(posting, target)
            await asyncio.sleep(0)

    def render(self, posting: Posting, target: Target) -> Rendered:
        """For a queue. Raises `NotReady` on a server that has not read the signing key, which `prepare` sees to."""
        if target.raw and not posting.notes:
            # Published through another door: byte for byte, with what that one keeps of it.
            return as_published(posting, target)
        carried = Carried() if posting.attributes is None else decode(posting.attributes)
        dedup = posting.key if posting.kind == FIFO else None
        if target.raw:
            return Rendered(body_for(posting, target).encode(), encode(replace(carried, dedup=dedup)))
        message = encoded(self.notification(posting, target))
        return Rendered(message, encode(replace(carried, dedup=dedup, attributes={})))

    def notification(self, posting: Posting, target: Target) -> dict[str, Any]:
        message = self._common(posting, NOTIFICATION, body_for(posting, target))
        message["UnsubscribeURL"] = self.unsubscribe_url(posting, target)
        attributes = {} if posting.attributes is None else decode(posting.attributes).attributes
        if attributes:
            message["MessageAttributes"] = {
                name: {
                    "Type": value.data_type,
                    "Value": value.string_value if value.binary_value is None else _base64(value.binary_value),
                }
                for name, value in attributes.items()
            }
        return message

    def confirmation(self, posting: Posting) -> dict[str, Any]:
        """For an endpoint that is asked whether it wants to be subscribed, or is told that it is not any more."""
        return self._common(posting, posting.notes["type"], posting.body.decode())

    def subscribe_url(self, posting: Posting) -> str:
        token = posting.notes["token"]
        return self._link(posting, "ConfirmSubscription", TopicArn=self.topic_arn(posting), Token=token)

    def unsubscribe_url(self, posting: Posting, target: Target) -> str:
        token = self._signer.token(target.subscription)
        return self._link(posting, "Unsubscribe", SubscriptionArn=self.subscription_arn(posting, target), Token=token)

    def topic_arn(self, posting: Posting) -> str:
        return topic_arn(posting.notes.get("region", REGION), posting.account, posting.topic)

    def subscription_arn(self, posting: Posting, target: Target) -> str:
        region = posting.notes.get("region", REGION)
        return subscription_arn(region, posting.account, posting.topic, target.subscription)

    def _link(self, posting: Posting, action: str, **parameters: str) -> str:
        return f"{self._url(posting)}/?{urlencode({'Action': action, 'Version': '2010-03-31', **parameters})}"

    def _url(self, posting: Posting) -> str:
        return posting.notes.get("url", self._own_url)

    def _common(self, posting: Posting, kind: str, body: str) -> dict[str, Any]:
        version = posting.notes.get("version", "1")
        at = datetime.fromtimestamp(posting.published_at_ms / 1000, UTC)
        message: dict[str, Any] = {"Type": kind, "MessageId": as_uuid(posting.id)}
        if posting.place is not None:
            message["SequenceNumber"] = sequence_number(posting.place)
        if kind != NOTIFICATION:
            message["Token"] = posting.notes["token"]
        message["TopicArn"] = self.topic_arn(posting)
        if posting.subject is not None:
            message["Subject"] = posting.subject
        message["Message"] = body
        if kind != NOTIFICATION:
            message["SubscribeURL"] = self.subscribe_url(posting)
        message["Timestamp"] = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
        message["SignatureVersion"] = version
        message["Signature"] = self._signature(posting, message, version)
        message["SigningCertURL"] = f"{self._url(posting)}{self._signer.certified.path}"
        return message

    def _signature(self, posting: Posting, message: Mapping[str, Any], version: str) -> str:
        """RSA is slow: what has been signed already, for another subscriber or by `prepare`, is not signed again."""
        text = "".join(f"{name}\n{message[name]}\n" for name in SIGNED[message["Type"]] if name in message)
        key = (sha256(text.encode()).digest(), version)
        known = self._signatures.get(key)
        if known is None:
            known = self._signatures[key] = self._signer.sign(text, version)
            if len(self._signatures) > limits.SNS_SIGNATURES_REMEMBERED:
                self._signatures.popitem(last=False)
        return known


def encoded(message: Mapping[str, Any]) -> bytes:
    """Laid out as SNS does it."""
    return json.dumps(message, indent=2, separators=(",", " : "), ensure_ascii=False).encode()


def body_for(posting: Posting, target: Target) -> str:
    body = posting.bodies.get(target.protocol)
    return posting.body.decode(errors="replace") if body is None else body


def _base64(value: bytes) -> str:
    return b64encode(value).decode()
