"""What the door keeps between requests: the signing key, topics it has just looked at, messages to endpoints."""

from __future__ import annotations

from collections import OrderedDict
from hmac import compare_digest

from angelhair import limits
from angelhair.engine.topics.postings import HTTP_DELIVERIES, pack
from angelhair.engine.topics.values import STANDARD, Posting, Subscription, Target, Topic
from angelhair.model import NewMessage
from angelhair.server.service import Service
from angelhair.server.sns.deliveries.courier import Courier
from angelhair.server.sns.deliveries.names import StillLooking, Unresolved
from angelhair.server.sns.deliveries.places import Forbidden, Places
from angelhair.server.sns.envelope import CONFIRMATION, FAREWELL, Envelopes, notes_of
from angelhair.server.sns.errors import InvalidParameter
from angelhair.server.sns.signing import Signer


class Desk:
    """To be made inside a running loop."""

    def __init__(self, service: Service, own_url: str, allow_private_endpoints: bool) -> None:
        self._service = service
        self.places = Places(allow_private_endpoints)
        self.signer = Signer(service.engine)
        self.envelopes = Envelopes(self.signer, own_url)
        self.courier = Courier(service, self.envelopes, self.places)
        self._topics: OrderedDict[tuple[str, str], tuple[Topic, int]] = OrderedDict()
        """And until when each may be believed, on the monotonic clock."""

    async def ready(self) -> None:
        await self.signer.ready()

    async def stop(self) -> None:
        await self.courier.stop()
        await self.places.stop()
        await self.signer.stop()

    # --- topics -------------------------------------------------------------------------------------------------------

    async def topic(self, account: str, name: str) -> Topic:
        """As it is, or was a moment ago."""
        now_ms = self._service.clock.now().monotonic_ms
        known = self._topics.get((account, name))
        if known is not None and now_ms < known[1]:
            return known[0]
        topic = await self._service.topics.verbs.find(account, name)
        self._topics[account, name] = topic, now_ms + round(limits.SNS_TOPIC_REMEMBERED_SECONDS * 1000)
        self._topics.move_to_end((account, name))
        while len(self._topics) > limits.SNS_TOPICS_REMEMBERED:
            self._topics.popitem(last=False)
        return topic

    def forget(self, account: str, name: str) -> None:
        self._topics.pop((account, name), None)

    # --- endpoints ----------------------------------------------------------------------------------------------------

    async def check_endpoint(self, url: str) -> None:
        """An endpoint that nothing will ever be sent to is refused now, when somebody is there to hear it."""
        try:
            await self.places.find(url)
        except Forbidden:
            raise InvalidParameter(
                "Endpoint", "it is an address of the server's own network, which the server is not allowed to post to; "
                "--allow-private-endpoints allows it",
            ) from None
        except (Unresolved, StillLooking):
            # It may have an address when it matters.
            return

    async def ask_to_confirm(
        self, account: str, topic: str, subscription: Subscription, region: str, url: str
    ) -> None:
        text = (
            f"You have chosen to subscribe to the topic {topic}.\n"
            "To confirm the subscription, visit the SubscribeURL included in this message."
        )
        await self._tell(account, topic, subscription, text, CONFIRMATION, region, url)

    async def say_farewell(self, account: str, topic: str, subscription: Subscription, region: str, url: str) -> None:
        text = (
            f"You have chosen to deactivate subscription {subscription.id} of the topic {topic}.\n"
            "Nothing more will be sent. To get messages again, subscribe again."
        )
        await self._tell(account, topic, subscription, text, FAREWELL, region, url)

    async def _tell(
        self, account: str, topic: str, subscription: Subscription, text: str, kind: str, region: str, url: str
    ) -> None:
        notes = notes_of(region, url, "1", type=kind, token=subscription.token)
        posting = Posting(
            self._service.engine.identities.fresh(), account, topic, STANDARD, self._service.clock.now().wall_ms,
            text.encode(), None, None, None, None, {}, None, notes,
        )
        target = Target(subscription.id, subscription.protocol, subscription.endpoint, False, None)
        (outcome,) = await self._service.topics.put_hidden(
            account, HTTP_DELIVERIES, [NewMessage(pack(posting, [target]))]
        )
        if isinstance(outcome, Exception):
            raise outcome
        self.courier.start(account)

    # --- tokens -------------------------------------------------------------------------------------------------------

    def is_token(self, subscription: Subscription, token: str) -> bool:
        return compare_digest(subscription.token.encode(), token.encode())

    async def may_leave(self, subscription_id: str, token: str) -> bool:
        """Whether the token is of the link that the subscription's own messages have."""
        await self.ready()
        return compare_digest(self.signer.token(subscription_id).encode(), token.encode())
