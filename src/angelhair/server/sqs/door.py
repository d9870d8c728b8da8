"""The SQS door: recognises a request, runs its action, and answers in the protocol that the client speaks."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from angelhair.server.http.messages import Request, Response
from angelhair.server.service import Service
from angelhair.server.sqs.actions import attributes, moving, permissions, queues, receiving, sending, settling, tagging
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.answering import answer, decode, refuse
from angelhair.server.sqs.errors import Protocol, SqsError
from angelhair.server.sqs.faults import REFUSED, as_sqs_error
from angelhair.server.sqs.movers import Movers
from angelhair.server.sqs.recognising import recognise
from angelhair.server.sqs.shape import Shape
from angelhair.settings import ACCOUNT, REGION

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

_REGION = re.compile(r"/[0-9]{8}/([a-z0-9-]{1,64})/sqs/aws4_request")


class SqsDoor:
    """To be made inside a running loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._movers = Movers(service, ACCOUNT)

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
            wanted = decode(asked, request)
            request.route = f"sqs:{asked.action}"
            call = Call(self._service, request, protocol, ACCOUNT, _region_of(request), self._movers)
            return answer(asked, request, await ACTIONS[asked.action](call, wanted))
        except SqsError as error:
            return refuse(protocol, request, error)
        except REFUSED as error:
            return refuse(protocol, request, as_sqs_error(error))


def _region_of(request: Request) -> str:
    """Where the client thinks that we are: it says so in its signature."""
    found = _REGION.search(request.headers.get("authorization") or request.query)
    return REGION if found is None else found[1]
