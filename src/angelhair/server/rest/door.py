"""The door: finds the route of a request, calls it, and says no in its one way."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.errors import RequestError
from angelhair.server.auth.actions import ADMINISTRATIVE
from angelhair.server.gate import Caller, Gate, policy_of
from angelhair.server.http.messages import Request, Response, error_response
from angelhair.server.rest.errors import REFUSED, judge, response_to
from angelhair.server.rest.route import Route
from angelhair.server.rest.routes import ROUTES
from angelhair.server.service import Service

SERVICES = frozenset({"angelhair"})
"""What a signature has to be for."""

FORGOTTEN_NUMBER = ("GET", "/queues/{queue}/messages")
"""How many to receive stands behind it."""

OF_QUEUES = "/queues/"
OF_TOPICS = "/topics/"


class RestDoor:
    def __init__(self, service: Service, gate: Gate) -> None:
        self._service = service
        self._gate = gate
        self._root = _tree(ROUTES)

    async def handle(self, request: Request) -> Response | None:
        """None when no route of this door has such a path."""
        place, arguments = self._root, []
        for segment in request.segments:
            following = place.literal.get(segment)
            if following is None:
                following = place.any
                if following is None or not segment:
                    return None
                arguments.append(segment)
            place = following
        if not place.methods:
            return None
        request.route = place.template
        if arguments:
            request.queue = arguments[0]
        route = place.methods.get(request.method)
        if route is None:
            return _other_method(place, request)
        try:
            if route.action is not None:
                await self._check(route, request, arguments)
            if route.action in ADMINISTRATIVE:
                return await self._administer(route, request, arguments)
            return await route.handler(self._service, request, *arguments)
        except REFUSED as error:
            return response_to(error, request.id)

    async def _check(self, route: Route, request: Request, arguments: Sequence[str]) -> None:
        """Who asks, and may they."""
        action = route.action or route.name
        caller = await self._gate.admit_plainly(request, SERVICES, action)
        if caller.key is None:
            return
        name = arguments[0] if arguments else None
        # A topic's routes have the queue that is subscribed behind the topic; a queue's, no other name.
        names = arguments if route.template.startswith(OF_TOPICS) and arguments else [name]
        self._gate.check_key(caller, request, action, names)
        if name is None:
            return
        if route.template.startswith(OF_QUEUES):
            await self._check_queue(route, request, caller, action, name)
        elif route.template.startswith(OF_TOPICS) and action != "CreateTopic":
            await self._check_topic(request, caller, action, name)

    async def _check_queue(self, route: Route, request: Request, caller: Caller, action: str, name: str) -> None:
        try:
            queue = await self._service.engine.find_queue(caller.account, name)
        except RequestError:
            # The handler says so.
            queue = None
        if route.reaches is not None and caller.key is not None and caller.key.queues is not None:
            self._gate.check_key(caller, request, action, route.reaches(request, queue))
        if queue is not None:
            arn = f"arn:aws:sqs:{caller.region}:{caller.account}:{name}"
            self._gate.check_policy(caller, request, action, caller.account, arn, policy_of(queue))

    async def _check_topic(self, request: Request, caller: Caller, action: str, name: str) -> None:
        try:
            topic = await self._service.topics.verbs.find(caller.account, name)
        except RequestError:
            return
        arn = f"arn:aws:sns:{caller.region}:{caller.account}:{name}"
        self._gate.check_policy(caller, request, action, caller.account, arn, policy_of(topic), "sns")

    async def _administer(self, route: Route, request: Request, arguments: Sequence[str]) -> Response:
        action = route.action or route.name
        with self._gate.audit.administering(request, action, REFUSED, lambda error: judge(error).code):
            return await route.handler(self._service, request, *arguments)


class _Place:
    """What stands behind the segments of a path so far."""

    def __init__(self) -> None:
        self.literal: dict[str, _Place] = {}
        self.any: _Place | None = None
        self.methods: dict[str, Route] = {}
        self.template = ""

    @property
    def allowed(self) -> str:
        return ", ".join([*self.methods, "OPTIONS"])


def _tree(routes: Sequence[Route]) -> _Place:
    root = _Place()
    for route in routes:
        place = root
        for segment in route.template.split("/")[1:]:
            if segment.startswith("{"):
                if place.any is None:
                    place.any = _Place()
                place = place.any
            else:
                place = place.literal.setdefault(segment, _Place())
        place.template = route.template
        place.methods[route.method] = route
        if route.method == "GET" and route.safe:
            # The connection leaves the body out.
            place.methods["HEAD"] = route
    return root


def _other_method(place: _Place, request: Request) -> Response:
    allow = (("Allow", place.allowed),)
    if request.method == "OPTIONS":
        return Response(204, content_type=None, headers=allow)
    message = f"{request.method} is not allowed here; {place.allowed} are"
    if (request.method, place.template) == FORGOTTEN_NUMBER:
        message += f"; receive with {request.method} {place.template}/{{batch}}"
    return error_response(405, "method_not_allowed", message, request.id, headers=allow)
