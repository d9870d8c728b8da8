"""The SQS door: recognises a request, runs its action, and answers in the protocol that the client speaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from angelhair.errors import RequestError
from angelhair.server.auth.actions import ADMINISTRATIVE
from angelhair.server.aws.errors import AccessDenied, Protocol
from angelhair.server.aws.faults import REFUSED
from angelhair.server.aws.shape import Shape
from angelhair.server.gate import Caller, Gate, policy_of
from angelhair.server.http.messages import Request, Response
from angelhair.server.service import Service
from angelhair.server.sqs.actions import attributes, moving, permissions, queues, receiving, sending, settling, tagging
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.answering import answer, decode, refuse
from angelhair.server.sqs.faults import as_sqs_error
from angelhair.server.sqs.flights import Flights
from angelhair.server.sqs.movers import Movers
from angelhair.server.sqs.recognising import recognise
from angelhair.server.sqs.targets import target_of

ACTIONS: dict[str, Callable[[Call, Any], Awaitable[Shape]]] = {
    "AddPermission": permissions.add_permission,
    "CancelMessageMoveTask": moving.cancel_message_move_task,
    "ChangeMessageVisibility": settling.change_message_visibility,
    "ChangeMessageVisibilityBatch": settling.change_message_visibility_batch,
    "CreateQueue": queues.create_queue,
    "DeleteMessage": settling.delete_message,
    "DeleteMessageBatch": settling.delete_message_batch,
    "DeleteQueue": queues.delete_queue,
    "GetQueueAttributes": attributes.get_queue_attributes,
    "GetQueueUrl": queues.get_queue_url,
    "ListDeadLetterSourceQueues": queues.list_dead_letter_source_queues,
    "ListMessageMoveTasks": moving.list_message_move_tasks,
    "ListQueueTags": tagging.list_queue_tags,
    "ListQueues": queues.list_queues,
    "PurgeQueue": queues.purge_queue,
    "ReceiveMessage": receiving.receive_message,
    "RemovePermission": permissions.remove_permission,
    "SendMessage": sending.send_message,
    "SendMessageBatch": sending.send_message_batch,
    "SetQueueAttributes": attributes.set_queue_attributes,
    "StartMessageMoveTask": moving.start_message_move_task,
    "TagQueue": tagging.tag_queue,
    "UntagQueue": tagging.untag_queue,
}

SERVICES = frozenset({"sqs"})
"""What a signature has to be for."""


class SqsDoor:
    """To be made inside a running loop."""

    def __init__(self, service: Service, gate: Gate) -> None:
        self._service = service
        self._gate = gate
        self._movers = Movers(service)
        self._flights = Flights(service.batching.receive, service.engine.stats, service.clock)

    def start(self) -> None:
        """Looks after move tasks whose servers are gone."""
        self._movers.start()

    async def stop(self) -> None:
        await self._movers.stop()

    @property
    def moving(self) -> int:
        """Move tasks that this server is working on."""
        return self._movers.working

    async def handle(self, request: Request) -> Response | None:
        """None when the request is not for this door."""
        protocol = Protocol.QUERY
        try:
            asked = recognise(request)
            if asked is None:
                return None
            protocol = asked.protocol
            caller = await self._gate.admit(request, SERVICES, asked.action)
            wanted = decode(asked, request)
            request.route = f"sqs:{asked.action}"
            call = await self._allowed(request, protocol, caller, asked.action, wanted)
            return answer(asked, request, await self._act(call, asked.action, wanted))
        except REFUSED as error:
            return refuse(protocol, request, as_sqs_error(error))

    async def _allowed(
        self, request: Request, protocol: Protocol, caller: Caller, action: str, wanted: Any
    ) -> Call:
        """The call, if the caller may make it."""
        if caller.key is None:
            return self._call(request, protocol, caller, caller.account)
        target = target_of(action, wanted)
        request.queue = target.name
        call = self._call(request, protocol, caller, target.owner or caller.account)
        self._gate.check_key(caller, request, action, target.names)
        if target.name is not None:
            try:
                policy = policy_of(await self._service.engine.find_queue(call.account, target.name))
            except RequestError:
                # Of one's own account the action says that there is none; of another, nobody is told.
                policy = None
            self._gate.check_policy(caller, request, action, call.account, call.arn_of(target.name), policy)
        elif call.account != caller.account:
            raise AccessDenied
        return call

    def _call(self, request: Request, protocol: Protocol, caller: Caller, account: str) -> Call:
        return Call(self._service, request, protocol, caller, account, self._movers, self._flights)

    async def _act(self, call: Call, action: str, wanted: Any) -> Shape:
        if action not in ADMINISTRATIVE:
            return await ACTIONS[action](call, wanted)
        with self._gate.audit.administering(call.request, action, REFUSED, lambda error: as_sqs_error(error).code):
            return await ACTIONS[action](call, wanted)
