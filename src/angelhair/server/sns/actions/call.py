"""One request to an action: who asks, and which topic is meant."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair.engine.topics.values import Subscription, Topic
from angelhair.engine.topics.verbs import Topics
from angelhair.errors import SubscriptionNotFound, TopicNotFound
from angelhair.server.gate import Caller
from angelhair.server.http.messages import Request
from angelhair.server.service import Service
from angelhair.server.sns.addresses import SubscriptionAddress, TopicAddress, subscription_arn, topic_arn
from angelhair.server.sns.desk import Desk


@dataclass(frozen=True, slots=True)
class Call:
    service: Service
    request: Request
    caller: Caller
    account: str
    """Whose topics are meant; the caller's own, or another that lets the caller."""
    region: str
    """What the client calls the place where we are: it shows in ARNs and means nothing else."""
    desk: Desk
    public_url: str | None
    """What this server is called from outside, if somebody said so."""

    @property
    def topics(self) -> Topics:
        return self.service.topics.verbs

    async def topic(self, address: TopicAddress) -> Topic:
        return await self.topics.find(self.account, address.name)

    async def subscription(self, address: SubscriptionAddress) -> Subscription:
        """Raises `SubscriptionNotFound`, also when its topic is gone."""
        try:
            return await self.topics.find_subscription(self.account, address.topic, address.id)
        except TopicNotFound:
            raise SubscriptionNotFound(address.topic, address.id) from None

    def arn_of(self, topic: str) -> str:
        return topic_arn(self.region, self.account, topic)

    def subscription_arn(self, topic: str, subscription_id: str) -> str:
        return subscription_arn(self.region, self.account, topic, subscription_id)

    @property
    def url(self) -> str:
        """What links in messages begin with: what this server is called, or else what the client called it."""
        if self.public_url is not None:
            return self.public_url
        return f"{'https' if self.request.secure else 'http'}://{self.request.headers.get('host') or 'localhost'}"

    def endpoint_account(self, account: str) -> str:
        """Without access keys there is one account, whatever number a client gives it."""
        return self.account if self.caller.key is None else account
