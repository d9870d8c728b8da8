"""The SNS door: recognises a request, runs its action, and answers in XML."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from angelhair.errors import RequestError
from angelhair.server.auth.actions import ADMINISTRATIVE
from angelhair.server.aws.faults import REFUSED
from angelhair.server.aws.shape import Shape
from angelhair.server.gate import Caller, Gate, policy_of
from angelhair.server.http.messages import Request, Response
from angelhair.server.service import Service
from angelhair.server.sns import kept
from angelhair.server.sns.actions import (
    permissions,
    protection,
    publishing,
    subscribing,
    subscriptions,
    tagging,
    topics,
)
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.addresses import SubscriptionAddress
from angelhair.server.sns.answering import answer, decode, refuse
from angelhair.server.sns.checked import OfSubscription
from angelhair.server.sns.desk import Desk
from angelhair.server.sns.errors import AuthorizationError
from angelhair.server.sns.faults import as_sns_error
from angelhair.server.sns.recognising import Asked, recognise
from angelhair.server.sns.targets import target_of

ACTIONS: dict[str, Callable[[Call, Any], Awaitable[Shape]]] = {
    "AddPermission": permissions.add_permission,
    "ConfirmSubscription": subscribing.confirm_subscription,
    "CreateTopic": topics.create_topic,
    "DeleteTopic": topics.delete_topic,
    "GetDataProtectionPolicy": protection.get_data_protection_policy,
    "GetSubscriptionAttributes": subscriptions.get_subscription_attributes,
    "GetTopicAttributes": topics.get_topic_attributes,
    "ListSubscriptions": subscriptions.list_subscriptions,
    "ListSubscriptionsByTopic": subscriptions.list_subscriptions_by_topic,
    "ListTagsForResource": tagging.list_tags_for_resource,
    "ListTopics": topics.list_topics,
    "Publish": publishing.publish,
    "PublishBatch": publishing.publish_batch,
    "PutDataProtectionPolicy": protection.put_data_protection_policy,
    "RemovePermission": permissions.remove_permission,
    "SetSubscriptionAttributes": subscriptions.set_subscription_attributes,
    "SetTopicAttributes": topics.set_topic_attributes,
    "Subscribe": subscribing.subscribe,
    "TagResource": tagging.tag_resource,
    "Unsubscribe": subscribing.unsubscribe,
    "UntagResource": tagging.untag_resource,
}

SERVICES = frozenset({"sns"})
"""What a signature has to be for."""

CERTIFICATE = "/SimpleNotificationService-"
PEM = "application/x-pem-file"


class SnsDoor:
    """To be made inside a running loop. `own_url`: what this server calls itself where no client says how it calls
    it; `public_url`: what it is called by everybody, if the operator says so."""

    def __init__(
        self, service: Service, gate: Gate, own_url: str, public_url: str | None = None,
        allow_private_endpoints: bool = False,
    ) -> None:
        self._service = service
        self._gate = gate
        self._public_url = None if public_url is None else public_url.rstrip("/")
        self.desk = Desk(service, self._public_url or own_url, allow_private_endpoints)
        service.topics.render = self.desk.envelopes.render
        service.topics.prepare = self.desk.envelopes.prepare

    def start(self) -> None:
        """Brings messages to HTTP endpoints, also those that servers which are gone did not."""
        self._service.topics.on_account(self.desk.courier.start)

    async def stop(self) -> None:
        await self.desk.stop()

    async def handle(self, request: Request) -> Response | None:
        """None when the request is not for this door."""
        try:
            if request.path.startswith(CERTIFICATE) and request.method == "GET":
                return await self._certificate(request)
            asked = recognise(request)
            if asked is None:
                return None
            request.route = f"sns:{asked.action}"
            unsigned = await self._from_a_link(request, asked)
            caller = unsigned or await self._gate.admit(request, SERVICES, asked.action)
            wanted = decode(asked)
            call = await self._allowed(request, caller, asked.action, wanted)
            return answer(asked, request, await self._act(call, asked.action, wanted))
        except REFUSED as error:
            return refuse(request, as_sns_error(error))

    async def _certificate(self, request: Request) -> Response | None:
        found = await self.desk.signer.certificate(request.path)
        request.route = "sns:certificate"
        return None if found is None else Response(200, found, PEM)

    async def _from_a_link(self, request: Request, asked: Asked) -> Caller | None:
        """Who follows a link in a message has no key. What it does, only the receivers of messages can: the link has a
        token that they alone know."""
        if not self._gate.enforced or "authorization" in request.headers or "X-Amz-Credential" in asked.form:
            return None
        token = asked.form.get("Token")
        if asked.action not in ("ConfirmSubscription", "Unsubscribe") or not token:
            return None
        wanted = decode(asked)
        if isinstance(wanted, OfSubscription):
            if not await self.desk.may_leave(wanted.subscription.id, token) or await self._is_kept(wanted.subscription):
                raise AuthorizationError
            return Caller(wanted.subscription.account, region=wanted.subscription.region)
        return Caller(wanted.topic.account, region=wanted.topic.region)

    async def _is_kept(self, address: SubscriptionAddress) -> bool:
        """Whether it was confirmed by somebody who wants a signature of whoever ends it."""
        try:
            found = await self._service.topics.verbs.find_subscription(address.account, address.topic, address.id)
        except RequestError:
            # The action says so.
            return False
        return bool(found.notes.get(kept.LEFT_BY_SIGNATURE))

    async def _allowed(self, request: Request, caller: Caller, action: str, wanted: Any) -> Call:
        """The call, if the caller may make it."""
        target = target_of(wanted)
        request.queue = target.name
        # Without access keys there is one account, whatever number a client gives it.
        account = (target.owner if caller.key is not None else None) or caller.account
        region = target.region or caller.region
        call = Call(self._service, request, caller, account, region, self.desk, self._public_url)
        if caller.key is None:
            return call
        self._gate.check_key(caller, request, action, target.names)
        if target.name is not None and action != "CreateTopic":
            try:
                policy = policy_of(await self._service.topics.verbs.find(account, target.name))
            except RequestError:
                # Of one's own account the action says that there is none; of another, nobody is told.
                policy = None
            arn = call.arn_of(target.name)
            self._gate.check_policy(caller, request, action, account, arn, policy, "sns", target.circumstances)
        return call

    async def _act(self, call: Call, action: str, wanted: Any) -> Shape:
        if action not in ADMINISTRATIVE:
            return await ACTIONS[action](call, wanted)
        with self._gate.audit.administering(call.request, action, REFUSED, lambda error: as_sns_error(error).code):
            return await ACTIONS[action](call, wanted)
