"""Repair: have buckets looked into again (A8)."""

from __future__ import annotations

import msgspec

from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, shapes
from angelhair.server.rest.decoding import decode_object
from angelhair.server.service import Service

_decoder = msgspec.json.Decoder(shapes.MoveBack)


async def move_back(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    wanted = decode_object(request, _decoder)
    repair = await service.engine.move_back(request.account, queue, wanted.lane, wanted.bucket)
    return json_response(200, shapes.MovedBack(wanted.lane, repair))
