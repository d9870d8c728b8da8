"""Takes what endpoints are to get out of its queue, posts it, and settles what became of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextvars import Context
from typing import Any

from angelhair import limits
from angelhair.engine.topics.postings import HTTP_DELIVERIES, pack, unpack
from angelhair.engine.topics.values import CONFIRMED, Posting, Subscription, Target, shown
from angelhair.errors import AngelhairError, QueueNotFound, SubscriptionNotFound, TopicNotFound
from angelhair.model import Ask, Delivery, MessageId, NewMessage, WantedChange
from angelhair.server.aws.carried import as_uuid
from angelhair.server.service import Service
from angelhair.server.sns import kept
from angelhair.server.sns.checks.delivery_policies import (
    CONTENT_TYPE,
    DEFAULT,
    RetryPolicy,
    delay_seconds,
    retry_policy,
)
from angelhair.server.sns.deliveries.names import StillLooking, Unresolved
from angelhair.server.sns.deliveries.places import Forbidden, Places
from angelhair.server.sns.deliveries.posting import Answer, Poster
from angelhair.server.sns.envelope import NOTIFICATION, Envelopes, body_for, encoded
from angelhair.server.sns.signing import NotReady

_log = logging.getLogger(__name__)

TRIES = "tries"
"""Among the notes of what is tried again: how often it was posted. How often it was received is another matter: a store
that is away, or a server that dies, must not take tries from an endpoint."""


class Courier:
    """To be made inside a running loop."""

    def __init__(self, service: Service, envelopes: Envelopes, places: Places) -> None:
        self._service = service
        self._topics = service.topics
        self._envelopes = envelopes
        self._places = places
        self._poster: Poster | None = None
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._posting: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(limits.SNS_POSTS_AT_ONCE)

    def start(self, account: str) -> None:
        """Works for this account from now on."""
        if account not in self._looking:
            self._looking[account] = self._spawned(self._look(account), f"courier of {account}")

    async def stop(self) -> None:
        """What is being posted is not waited for: it comes back on another server."""
        tasks = [*self._looking.values(), *self._posting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._poster is not None:
            await self._poster.close()

    @staticmethod
    def _spawned(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work, name=name, context=Context())

    async def _look(self, account: str) -> None:
        """One at a time, and only when there is room to post it: what waits here would come back meanwhile."""
        while True:
            async with self._room:
                pass
            for delivery in await self._found(account):
                await self._room.acquire()
                task = self._spawned(self._bring(account, delivery), "delivery")
                self._posting.add(task)
                task.add_done_callback(self._done)

    async def _found(self, account: str) -> list[Delivery]:
        try:
            wait_seconds = limits.SNS_DELIVERIES_WAIT_SECONDS
            return await self._topics.receive_hidden(account, HTTP_DELIVERIES, Ask(1), wait_seconds)
        except AngelhairError as error:
            _log.warning("deliveries to endpoints wait for the store: %s", error)
        except Exception:  # noqa: BLE001 - a courier that died would be missed by nobody but its endpoints
            _log.exception("deliveries to endpoints met an error that is not known; they go on")
        await asyncio.sleep(limits.FANOUT_LOOK_SECONDS)
        return []

    def _done(self, task: asyncio.Task[None]) -> None:
        self._posting.discard(task)
        self._room.release()

    # --- one delivery -------------------------------------------------------------------------------------------------

    async def _bring(self, account: str, delivery: Delivery) -> None:
        try:
            posting, (target,) = unpack(delivery.body, delivery.id)
        except ValueError as error:
            _log.error("a delivery of account %s cannot be read, and stays: %s", account, error)
            return
        notes = dict(posting.notes)
        failures = int(notes.pop(TRIES, 0))
        posting = posting._replace(notes=notes)
        try:
            await self._brought(account, delivery, posting, target, failures)
        except (NotReady, StillLooking):
            await self._again(account, delivery, limits.FANOUT_LOOK_SECONDS)
        except AngelhairError as error:
            # It comes back by itself.
            _log.warning("a delivery to %s waits for the store: %s", shown(target.endpoint), error)
        except Exception:  # noqa: BLE001 - as above: it comes back by itself
            _log.exception("a delivery to %s met an error that is not known; it is tried again", shown(target.endpoint))

    async def _brought(
        self, account: str, delivery: Delivery, posting: Posting, target: Target, failures: int
    ) -> None:
        kind = posting.notes.get("type", NOTIFICATION)
        subscription: Subscription | None = None
        policy = DEFAULT
        if kind == NOTIFICATION:
            try:
                subscription, policy = await self._as_it_is(posting, target)
            except (TopicNotFound, SubscriptionNotFound):
                # Who has left wants nothing more, not even what was published before.
                await self._ack(account, delivery)
                return
        body, headers = self._message(posting, target, kind, subscription)
        answer, why = await self._post(target.endpoint, body, headers)
        if answer is Answer.TAKEN:
            self._topics.count("posted", 1)
            await self._ack(account, delivery)
            return
        delay = delay_seconds(policy, failures + 1) if answer is Answer.FAILED else None
        if delay is not None:
            self._topics.count("retried", 1)
            _log.info("%s is tried again in %.0f seconds: %s", shown(target.endpoint), delay, why)
            counted = posting._replace(notes={**posting.notes, TRIES: str(failures + 1)})
            await self._again(account, delivery, delay, pack(counted, [target]))
            return
        await self._give_up(account, delivery, posting, target, subscription, why)

    async def _as_it_is(self, posting: Posting, target: Target) -> tuple[Subscription, RetryPolicy]:
        topic, (_, known) = await self._topics.verbs.read(posting.account, posting.topic)
        found = next((one for one in known if one.id == target.subscription and one.status == CONFIRMED), None)
        if found is None:
            raise SubscriptionNotFound(posting.topic, target.subscription)
        own = found.notes.get(kept.ATTRIBUTES, {}).get("DeliveryPolicy")
        return found, retry_policy(own, kept.attribute(topic, "DeliveryPolicy"))

    def _message(
        self, posting: Posting, target: Target, kind: str, subscription: Subscription | None
    ) -> tuple[bytes, dict[str, str]]:
        headers = {
            "x-amz-sns-message-type": kind,
            "x-amz-sns-message-id": as_uuid(posting.id),
            "x-amz-sns-topic-arn": self._envelopes.topic_arn(posting),
            "Content-Type": CONTENT_TYPE,
        }
        if kind != NOTIFICATION:
            return encoded(self._envelopes.confirmation(posting)), headers
        headers["x-amz-sns-subscription-arn"] = self._envelopes.subscription_arn(posting, target)
        if subscription is not None and subscription.raw:
            headers["x-amz-sns-rawdelivery"] = "true"
            return body_for(posting, target).encode(), headers
        return encoded(self._envelopes.notification(posting, target)), headers

    async def _post(self, endpoint: str, body: bytes, headers: Mapping[str, str]) -> tuple[Answer, str]:
        try:
            place = await self._places.find(endpoint)
        except Forbidden as error:
            return Answer.REFUSED, str(error)
        except Unresolved as error:
            return Answer.FAILED, str(error)
        if self._poster is None:
            self._poster = Poster()
        return await self._poster.post(place, body, headers)

    async def _give_up(
        self, account: str, delivery: Delivery, posting: Posting, target: Target, subscription: Subscription | None,
        why: str,
    ) -> None:
        """To the subscription's dead letters, if it has a queue for them."""
        queue = None if subscription is None else subscription.dead_letter_queue
        if queue is not None and subscription is not None:
            body, attributes = self._envelopes.render(posting, target._replace(raw=subscription.raw))
            message = NewMessage(body, attributes, key=f"~{posting.id}.{target.subscription}", group=posting.group)
            try:
                (outcome,) = await self._service.put(posting.account, queue, [message])
            except QueueNotFound:
                why = f"{why}; its dead-letter queue {queue} is gone"
            else:
                if not isinstance(outcome, MessageId):
                    raise outcome
                await self._ack(account, delivery)
                return
        self._topics.count("dropped", 1)
        _log.warning("a message of topic %s is dropped for %s: %s", posting.topic, shown(target.endpoint), why)
        await self._ack(account, delivery)

    async def _ack(self, account: str, delivery: Delivery) -> None:
        await self._topics.ack_hidden(account, HTTP_DELIVERIES, [delivery.receipt])

    async def _again(self, account: str, delivery: Delivery, seconds: float, body: bytes | None = None) -> None:
        change = WantedChange(delivery.receipt, round(seconds * 1000), body)
        await self._topics.change_hidden(account, HTTP_DELIVERIES, [change])
