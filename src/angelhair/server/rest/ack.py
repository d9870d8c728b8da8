"""What is done with a receipt: ack one, ack many, change what was delivered."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from angelhair.errors import MessageGone
from angelhair.model import WantedChange
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, shapes
from angelhair.server.rest.content import one_body
from angelhair.server.rest.decoding import decode, decode_object
from angelhair.server.rest.errors import invalid, judge, raise_if_all_failed
from angelhair.server.rest.queues import NO_CONTENT
from angelhair.server.rest.times import in_ms
from angelhair.server.service import Service

_acks_decoder = msgspec.json.Decoder(shapes.Acks)
_change_decoder = msgspec.json.Decoder(shapes.MessageChange)


async def ack_message(service: Service, request: Request, queue: str, receipt: str) -> Response:
    query.read(request.query, query.NONE)
    (outcome,) = await service.ack(request.account, queue, (receipt,))
    # A message that is gone was settled, perhaps by an earlier try with this very receipt: what was asked for is so.
    if outcome is not None and not isinstance(outcome, MessageGone):
        raise outcome
    return NO_CONTENT


async def ack_messages(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    receipts = decode(request, _acks_decoder).receipts
    outcomes = await service.ack(request.account, queue, receipts)
    raise_if_all_failed(outcomes)
    failed = []
    for receipt, outcome in zip(receipts, outcomes, strict=True):
        if outcome is not None and not isinstance(outcome, MessageGone):
            verdict = judge(outcome)
            failed.append(shapes.AckFailed(receipt, verdict.code, verdict.message))
    return json_response(200, shapes.Acked(len(receipts) - len(failed), failed))


async def change_message(service: Service, request: Request, queue: str, receipt: str) -> Response:
    query.read(request.query, query.NONE)
    wanted = decode_object(request, _change_decoder)
    body = one_body(wanted.body, wanted.body_base64)
    visibility_ms = None if wanted.visibility is UNSET else in_ms(wanted.visibility)
    if body is None and visibility_ms is None:
        raise invalid("body", "nothing is to change: visibility, body or body_base64 must be given")
    (outcome,) = await service.change(request.account, queue, (WantedChange(receipt, visibility_ms, body),))
    if outcome is not None:
        raise outcome
    return NO_CONTENT
