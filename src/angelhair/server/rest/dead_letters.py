"""Dead letters: look into them, and send them back."""

from __future__ import annotations

import msgspec

from angelhair.model import validate_name
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, shapes
from angelhair.server.rest.decoding import decode_object
from angelhair.server.rest.errors import Refusal, invalid
from angelhair.server.rest.looking import seen
from angelhair.server.rest.queues import NO_STORE
from angelhair.server.service import Service

_redrive_decoder = msgspec.json.Decoder(shapes.Redrive)


async def peek_dead(service: Service, request: Request, queue: str, batch: str) -> Response:
    query.read(request.query, query.NONE)
    count = query.BATCH.value(batch)
    dead_letters = (await service.engine.find_queue(request.account, queue)).settings.dead_letter_queue
    if dead_letters is None:
        raise Refusal("no_dead_letter_queue", f"queue {queue!r} has no dead-letter queue")
    peeked = await service.engine.peek(request.account, dead_letters, count)
    return json_response(200, shapes.SeenDead(dead_letters, [seen(message) for message in peeked]), NO_STORE)


async def redrive(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    wanted = decode_object(request, _redrive_decoder) if request.body else shapes.Redrive()
    if wanted.destination is not None:
        validate_name("destination", wanted.destination)
        if wanted.destination == queue:
            raise invalid("destination", "cannot be the queue itself")
    moved = await service.redrive(request.account, queue, wanted.destination, wanted.count)
    if not moved and wanted.destination is None:
        await _check_holds_dead_letters(service, request.account, queue)
    return json_response(200, shapes.Moved(moved))


async def _check_holds_dead_letters(service: Service, account: str, queue: str) -> None:
    """Of a queue that sends its dead letters elsewhere nothing comes back, however often it is asked; but one that is
    the dead-letter queue of another may have one itself, and be empty."""
    holder = (await service.engine.find_queue(account, queue)).settings.dead_letter_queue
    if holder is None:
        return
    sources, _ = await service.engine.list_dead_letter_sources(account, queue, most=1)
    if not sources:
        what = f"{queue!r} sends its dead letters to {holder!r}"
        raise Refusal("dead_letters_elsewhere", f"{what}; POST /queues/{holder}/redrive sends them back")
