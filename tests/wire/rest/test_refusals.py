"""How the door says no: one shape on every route, for every reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from angelhair.server.rest.errors import CODES
from angelhair.server.rest.route import Route
from angelhair.server.rest.routes import ROUTES
from tests.wire.rest.calls import Rest, refused, spoken
from tests.wire.server import RunningServer

Make = Callable[..., Rest]

PATHS = sorted({route.template for route in ROUTES})
METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")


def filled(template: str) -> str:
    return template.replace("{queue}", "nobody").replace("{batch}", "1").replace("{receipt}", "A" * 48)


def routes_of(template: str) -> dict[str, Route]:
    return {route.method: route for route in ROUTES if route.template == template}


# --- paths and methods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [
    "/nothing", "/queues/", "/queues/a/", "/queues//message", "/queues/a/nothing", "/queues/a/messages",
    "/queues/a/message/",
    "/queues/a/message/r/more", "/Queues", "//", "/queues/a/messages/1/2", "/openapi.json/", "/queues%2Fa",
])
def test_unknown_routes(client: httpx.Client, path: str) -> None:
    """But for one: a list of messages is put at /messages, which therefore knows PUT only."""
    answer = client.get(client.base_url.copy_with(raw_path=path.encode()))
    if path == "/queues/a/messages":
        said = refused(answer, 405, "method_not_allowed")
        assert said == (
            "GET is not allowed here; PUT, OPTIONS are; receive with GET /queues/{queue}/messages/{batch}"
        )
    else:
        refused(answer, 404, "not_found")


@pytest.mark.parametrize("template", PATHS)
def test_wrong_verbs(client: httpx.Client, template: str) -> None:
    known = routes_of(template)
    allowed = set(known) | {"OPTIONS"}
    if "GET" in known and known["GET"].safe:
        allowed.add("HEAD")
    for method in (*METHODS, "PROPFIND", "TRACE"):
        if method in allowed:
            continue
        answer = client.request(method, filled(template))
        assert set(answer.headers["allow"].split(", ")) == allowed
        if method == "HEAD":
            assert (answer.status_code, answer.content) == (405, b"")
        else:
            refused(answer, 405, "method_not_allowed")


@pytest.mark.parametrize("template", PATHS)
def test_options(client: httpx.Client, template: str) -> None:
    answer = client.options(filled(template))
    assert (answer.status_code, answer.content) == (204, b"")
    assert set(routes_of(template)) < set(answer.headers["allow"].split(", "))


def test_head_is_get_without_the_body(make: Make) -> None:
    queue = make()
    queue.put()
    for rest in ("", "/peek/1", "/pointers", "/buckets"):
        head, get = queue.call("HEAD", rest), queue.call("GET", rest)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
        assert int(head.headers["content-length"]) > 0
    assert queue.call("HEAD", "/dead/1").status_code == 404


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_unknown_parameters(make: Make, route: Route) -> None:
    """On every route, before anything is done."""
    queue = make()
    queue.put()
    path = filled(route.template).replace("nobody", queue.name)
    example = _example(route)
    answer = queue.client.request(route.method, f"{path}?colour=red", **example)
    message = refused(answer, 400, "invalid_request", "colour")
    assert all(parameter.name in message for parameter in route.query)
    assert queue.receive()[0]["deliveries"] == 1


def _example(route: Route) -> dict[str, Any]:
    bodies: dict[str, object] = {
        "make_queue": {}, "change_queue": {}, "put_messages": [{"body": "x"}], "change_message": {"visibility": 1},
        "ack_messages": {"receipts": ["x"]}, "redrive_messages": {}, "move_back": {"lane": 0, "bucket": 0},
    }
    return {"json": bodies[route.name]} if route.name in bodies else {}


# --- JSON -------------------------------------------------------------------------------------------------------------

WITH_JSON = [route for route in ROUTES if route.body is not None and route.body.shape is not None]


@pytest.mark.parametrize("body", [
    b"{", b"}", b"nonsense", b"{'a': 1}", b"[1,]", b"\xff\xfe{\x00}\x00", b'{"a": NaN}', b"{} {}", b"\x00",
    b'{"\xff": 1}',
    b'{"\\ud800": 1}', b"\xef\xbb\xbf{}", b"[" * 100_000, b" ",
], ids=repr)
@pytest.mark.parametrize("route", WITH_JSON, ids=lambda route: route.name)
def test_malformed_json(client: httpx.Client, route: Route, body: bytes) -> None:
    answer = client.request(route.method, filled(route.template), content=body)
    # What is the wrong kind of thing from its first character on may be refused for that.
    if answer.status_code == 400 and answer.json()["code"] == "invalid_request":
        assert body[:1] in b"[{"
        refused(answer, 400, "invalid_request", answer.json()["field"])
    else:
        refused(answer, 400, "malformed_json")


@pytest.mark.parametrize("body", [
    rb'["\ud800"]', rb'[{"body": "\ud800"}]', rb'[{"body": "\ud800 and more"}]', rb'[{"body": "\udc00"}]',
])
def test_half_a_character_is_called_so(client: httpx.Client, name: str, body: bytes) -> None:
    """And not a body of which the end is missing."""
    said = refused(client.put(f"/queues/{name}/messages", content=body), 400, "malformed_json")
    assert said == "the body is not JSON: a text in it has half of a surrogate pair, which is no character"
    said = refused(client.put(f"/queues/{name}/messages", content=body[:-1]), 400, "malformed_json")
    assert ("truncated" in said) is not (rb"\ud800 and" in body or rb"\udc00" in body)


@pytest.mark.parametrize("content_type", ["text/xml", "application/xml; charset=utf-8", "multipart/form-data", "x/y"])
@pytest.mark.parametrize("route", WITH_JSON, ids=lambda route: route.name)
def test_plainly_something_else(client: httpx.Client, route: Route, content_type: str) -> None:
    answer = client.request(route.method, filled(route.template), content=b"{}", headers={"content-type": content_type})
    refused(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("content_type", [
    "application/json", "APPLICATION/JSON; charset=UTF-8", "application/problem+json", "text/json", "text/plain",
    "application/x-www-form-urlencoded", "application/octet-stream", "",
])
def test_what_clients_say_when_told_nothing_better(client: httpx.Client, name: str, content_type: str) -> None:
    answer = client.put(f"/queues/{name}", content=b'{"delay": 1}', headers={"content-type": content_type})
    assert answer.status_code == 201
    assert answer.json()["settings"]["delay"] == 1


# --- the shape --------------------------------------------------------------------------------------------------------


def test_the_clients_own_request_id(client: httpx.Client) -> None:
    answer = client.get("/queues/nobody", headers={"x-request-id": "mine-1"})
    assert answer.json()["request_id"] == "mine-1"
    refused(answer, 404, "queue_not_found")


def test_refused_before_the_door(server: RunningServer) -> None:
    for request, status, code in (
        (b"GET /queues HTTP/1.1\r\n\r\n", 400, "malformed_request"),
        (b"nonsense\r\n\r\n", 400, "malformed_request"),
        (b"GET /queues/%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed_request"),
        (b"GET /queues?" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "url_too_long"),
        (b"GET /queues HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 17_000 + b"\r\n\r\n", 431, "headers_too_large"),
        (b"PUT /queues/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "not_implemented"),
    ):
        answer = spoken(server, request)
        assert (answer.status_code, answer.json()["code"]) == (status, code), request[:60]
        assert answer.json().keys() == {"code", "message", "request_id"}
        assert CODES[code].status == status


def test_messages_are_for_people(client: httpx.Client, name: str) -> None:
    """No word of ours that a client's author could not know."""
    for body in ('{"delay": "x"}', '{"lanes": null}', '{"archive": 3}', '{"retention": []}', '{"lanes": 2.5}', "[]"):
        message = client.put(f"/queues/{name}", content=body).json()["message"]
        assert not re.search(r"`|\bint\b|\bstr\b|float|Struct|object at", message), message
