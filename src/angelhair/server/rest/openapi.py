"""The table of routes as an OpenAPI 3.1 document: every status, every bound, nothing left open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from angelhair import limits
from angelhair.model import QueueSettings
from angelhair.server.rest import cluster_shapes, own_shapes, shapes, timeline_shapes, topic_shapes
from angelhair.server.rest.errors import CODES
from angelhair.server.rest.query import Parameter
from angelhair.server.rest.queues import value_of
from angelhair.server.rest.route import Answer, RequestBody, Route

DESCRIPTION = """\
Queues over HTTP. A message that was put is delivered at least once: again and again until it is acked, expires, or goes
to the dead-letter queue. Durations are seconds and may have fractions; times are RFC 3339 in UTC. What is not described
here, be it a field or a parameter, is refused, and the refusal names it. HEAD answers like GET, except for receives;
any other method that a path does not have is refused with 405, and `Allow` has those that it has."""

BASE64_PATTERN = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

REQUEST_ID = "000000d7a3f18c2e5b9d04617f2ce8a1"
"""An example of one."""

SECURITY = {
    "key": {
        "type": "http", "scheme": "basic",
        "description": "An access key: its id is the user, its secret the password.",
    },
    "signature": {
        "type": "apiKey", "in": "header", "name": "Authorization",
        "description": "An access key too, which signs: AWS Signature Version 4, for the service `angelhair`.",
    },
}
"""Where the store has no access key, none is asked for."""

_SHAPES = (shapes, cluster_shapes, timeline_shapes, topic_shapes, own_shapes)

GROUPS = {
    "Queues": "Making, changing and removing queues.",
    "Messages": "Putting, receiving and settling messages.",
    "Topics": "What is published to a topic reaches every queue that is subscribed to it.",
    "Timelines": "Who works on the shards of a timeline; messages are put, received and acked as in other queues.",
    "Operating": "Looking into a queue without taking anything, dead letters, and repair.",
    "Server": "The door itself.",
}


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    wanted = [shape for route in routes for shape in _shapes_of(route)] + [own_shapes.Error]
    references, components = msgspec.json.schema_components(wanted, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(map(repr, wanted), references, strict=True))
    for name, component in components.items():
        shape = next(found for part in _SHAPES if (found := getattr(part, name, None)) is not None)
        component.update(shape.beyond)
        for field, known in component["properties"].items():
            if field in shape.meanings:
                known["description"] = shape.meanings[field]
        if "body_base64" in component["properties"]:
            # msgspec says how it is encoded, which for a validator is a remark; the pattern is the rule.
            component["properties"]["body_base64"]["pattern"] = BASE64_PATTERN
    components["Error"]["properties"]["code"]["enum"] = list(CODES)
    for field, known in components["NewQueue"]["properties"].items():
        known["default"] = limits.SHARDS if field == "shards" else value_of(QueueSettings(), field)
    paths: dict[str, dict[str, Any]] = {}
    responses: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, schemas, responses)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Angelhair", "version": version, "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"key": []}, {"signature": []}],
        "tags": [{"name": name, "description": description} for name, description in GROUPS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": dict(sorted(responses.items())),
            "securitySchemes": SECURITY,
        },
    }


def _shapes_of(route: Route) -> list[Any]:
    found = [answer.shape for answer in route.answers.values()] + ([route.body.shape] if route.body else [])
    return [shape for shape in found if shape is not None]


def _operation(route: Route, schemas: dict[str, Any], responses: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.group],
        "summary": route.summary,
        "parameters": [_parameter(item) for item in (*route.path, *route.query)],
        "responses": {str(status): _answer(answer, schemas) for status, answer in route.answers.items()}
        | _refusals(route, responses),
    }
    if route.action is None:
        operation["security"] = []
    if route.description:
        operation["description"] = route.description
    if route.body is not None:
        operation["requestBody"] = _request_body(route.body, schemas)
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.description,
        "schema": dict(parameter.schema),
        "example": parameter.example,
    }


def _request_body(body: RequestBody, schemas: dict[str, Any]) -> dict[str, Any]:
    if body.shape is None:
        content: dict[str, Any] = {"application/octet-stream": {}, "text/plain": {"example": body.example}}
    else:
        content = {"application/json": _media(body.shape, body.example, schemas)}
    return {"description": body.description, "required": body.required, "content": content}


def _answer(answer: Answer, schemas: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"description": answer.description}
    if answer.shape is not None:
        said["content"] = {answer.content_type: _media(answer.shape, answer.example, schemas)}
    elif answer.example is not None:
        said["content"] = {answer.content_type: {}}
    if answer.leads_to:
        said["links"] = {
            name: {"operationId": name, "parameters": dict(taken)} for name, taken in answer.leads_to.items()
        }
    return said


def _media(shape: Any, example: object, schemas: dict[str, Any]) -> dict[str, Any]:
    media = {"schema": schemas[repr(shape)]}
    if example is not None:
        media["example"] = msgspec.json.decode(msgspec.json.encode(example))
    return media


# --- refusals ---------------------------------------------------------------------------------------------------------


def by_status(codes: Sequence[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for code in codes:
        found.setdefault(CODES[code].status, []).append(code)
    return dict(sorted(found.items()))


def _refusals(route: Route, responses: dict[str, Any]) -> dict[str, Any]:
    """References to responses; those with the same codes are described once."""
    said = {}
    for status, codes in by_status(route.codes).items():
        name = "-".join(codes)
        responses.setdefault(name, _refusal(status, codes))
        said[str(status)] = {"$ref": f"#/components/responses/{name}"}
    return said


def _refusal(status: int, codes: Sequence[str]) -> dict[str, Any]:
    examples = {code: {"value": _said(code)} for code in codes}
    error = {"$ref": "#/components/schemas/Error"}
    refusal: dict[str, Any] = {
        "description": "; ".join(f"`{code}`: {CODES[code].meaning}" for code in codes) + ".",
        "content": {"application/json": {"schema": error, "examples": examples}},
    }
    if status == 401:
        challenge = {"description": "How to say who is asking.", "schema": {"type": "string"}}
        refusal["headers"] = {"WWW-Authenticate": challenge}
    if status == 503:
        whole = {"type": "integer", "minimum": 0}
        refusal["headers"] = {"Retry-After": {"description": "Seconds after which to try again.", "schema": whole}}
    return refusal


def _said(code: str) -> dict[str, Any]:
    said: dict[str, Any] = {"code": code, "message": CODES[code].meaning, "request_id": REQUEST_ID}
    differing = {"queue_exists": ["visibility_timeout"], "topic_exists": ["kind"]}.get(code)
    return said if differing is None else {**said, "differing": differing}
