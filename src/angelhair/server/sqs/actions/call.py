"""One request to an action: who asks, in what words, and which queue is meant."""

from __future__ import annotations

from dataclasses import dataclass

from angelhair.engine.catalog import Queue
from angelhair.errors import QueueNotFound
from angelhair.server.aws.arns import queue_arn
from angelhair.server.aws.errors import Protocol
from angelhair.server.gate import Caller
from angelhair.server.http.messages import Request
from angelhair.server.service import Service
from angelhair.server.sqs.addresses import QueueAddress, queue_address, queue_url
from angelhair.server.sqs.errors import QueueDoesNotExist
from angelhair.server.sqs.flights import Flights
from angelhair.server.sqs.movers import Movers


@dataclass(frozen=True, slots=True)
class Call:
    service: Service
    request: Request
    protocol: Protocol
    caller: Caller
    account: str
    """Whose queues are meant; the caller's own, or another that lets the caller."""
    movers: Movers
    flights: Flights

    def place(self, url: str) -> QueueAddress:
        """The queue behind a URL. Its account is `account`, which the door has looked at."""
        address = queue_address(url)
        self.request.queue = address.name
        return address

    async def queue(self, url: str) -> Queue:
        return await self.named(self.place(url).name)

    async def named(self, name: str) -> Queue:
        try:
            return await self.service.engine.find_queue(self.account, name)
        except QueueNotFound:
            raise QueueDoesNotExist from None

    def is_elsewhere(self, account: str) -> bool:
        """Whether a queue of this account is none of `account`. Without access keys there is one account, whatever
        number a client gives it."""
        return self.caller.key is not None and account != self.account

    def url_of(self, name: str) -> str:
        return queue_url(self.request, self.account, name)

    def arn_of(self, name: str) -> str:
        return queue_arn(self.caller.region, self.account, name)
