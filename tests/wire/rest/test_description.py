"""What the door says about itself: the document, the page, and that both are the table."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import httpx
import msgspec
import pytest

from angelhair.engine import receipts
from angelhair.engine.timeline import receipts as timeline_receipts
from angelhair.model import NOT_OF_KIND, DueId, MessageId, QueueSettings
from angelhair.server.rest import patterns, shapes
from angelhair.server.rest.errors import CODES
from angelhair.server.rest.operators import OPERATORS
from angelhair.server.rest.reading import curl
from angelhair.server.rest.route import Route
from angelhair.server.rest.routes import ROUTES, VERBS

DESCRIBED = (*ROUTES, *OPERATORS)


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    said = answer.json()
    assert isinstance(said, dict)
    return said


def test_about(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.json().keys() == {"name", "version", "links"}
    assert answer.json()["name"] == "angelhair"
    assert {"/queues", "/openapi.json", "/docs"} < set(answer.json()["links"].values())


def test_every_route_and_every_status(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.template, route.method) for route in DESCRIBED}
    for route in DESCRIBED:
        responses = document["paths"][route.template][route.method.lower()]["responses"]
        refusals = {str(CODES[code].status) for code in route.codes}
        assert set(responses) == {str(status) for status in route.answers} | refusals
        assert not refusals & {str(status) for status in route.answers}


def test_what_asks_for_a_key_says_so(document: dict[str, Any]) -> None:
    """Where there are access keys: every verb of a queue does, what tells of the server itself does not."""
    assert set(document["components"]["securitySchemes"]) == {"key", "signature"}
    assert {name for choice in document["security"] for name in choice} == {"key", "signature"}
    for template, methods in document["paths"].items():
        for operation in methods.values():
            is_verb = template.startswith(("/queues", "/topics", "/cluster"))
            assert (operation.get("security") != []) is is_verb
            assert {"401", "403"}.issubset(operation["responses"]) is is_verb
    assert all(route.action for route in VERBS), "a route without an action is for keys without limits alone"


def test_what_no_operation_declares_is_in_the_description(client: httpx.Client, document: dict[str, Any]) -> None:
    """A method that a path does not have belongs to no operation; the words of the whole document have it."""
    assert "405" in document["info"]["description"] and "`Allow`" in document["info"]["description"]
    for template in document["paths"]:
        answer = client.request("PROPFIND", template)
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed"), template


def test_schemas_are_closed(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert len(schemas) > 30
    for name, schema in schemas.items():
        assert schema["additionalProperties"] is False, name
        assert schema["description"], name


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    references = set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)))
    assert references
    for reference in references:
        place: Any = document
        for part in reference.split("/"):
            place = place[part]
        assert place
    operations = {route.name for route in DESCRIBED}
    assert len(operations) == len(DESCRIBED)
    assert set(re.findall(r'"links": {"(\w+)": {"operationId"', json.dumps(document))) <= operations


def examples() -> list[tuple[str, Any, object]]:
    found = []
    for route in DESCRIBED:
        found += [(f"{route.name} {status}", answer.shape, answer.example) for status, answer in route.answers.items()]
        if route.body is not None:
            found.append((f"{route.name} body", route.body.shape, route.body.example))
    return [(name, shape, example) for name, shape, example in found if shape is not None]


@pytest.mark.parametrize(("shape", "example"), [item[1:] for item in examples()], ids=[item[0] for item in examples()])
def test_examples_fit_their_shapes(shape: Any, example: object) -> None:
    text = msgspec.json.encode(example)
    assert json.loads(msgspec.json.encode(msgspec.json.decode(text, type=shape))) == json.loads(text)


def test_parameters_take_their_own_examples() -> None:
    parameters = [parameter for route in DESCRIBED for parameter in (*route.path, *route.query)]
    assert parameters
    for parameter in parameters:
        assert parameter.value(str(parameter.example)) is not None


def test_settings_are_the_models() -> None:
    """A setting that the model gains must be shown, described and sorted into changeable or fixed here."""
    # What a timeline calls its lanes has a name of its own beside theirs.
    model = {name.removesuffix("_ms") for name in QueueSettings.__dataclass_fields__} | {"shards"}
    assert set(shapes.Settings.__struct_fields__) == model
    assert set(shapes.SETTINGS) == model
    assert set(shapes.NewQueue.__struct_fields__) == model
    fixed = {*QueueSettings.FIXED, *QueueSettings.FIXED_OF_TIMELINE}
    assert set(shapes.Changes.__struct_fields__) == model - fixed
    # What some kind of queue does not have is left out there.
    absent = {name.removesuffix("_ms") for names in NOT_OF_KIND.values() for name in names} | {"lanes", "shards"}
    optional = {field.name for field in msgspec.structs.fields(shapes.Settings) if not field.required}
    assert optional == absent


def test_receipts_have_the_published_form() -> None:
    for number in (0, 1, 2**62):
        receipt = receipts.encode("0f" * 16, b"secret", 4_294_967_295, number, 2**32 - 1)
        assert re.fullmatch(patterns.RECEIPT_PATTERN[1:-1], receipt)
    longest = timeline_receipts.Receipt(4_294_967_295, 2**128 - 1, 2**32 - 1, 2**62)
    assert re.fullmatch(patterns.RECEIPT_PATTERN[1:-1], timeline_receipts.encode("0f" * 16, b"secret", longest))


def test_ids_have_the_published_form() -> None:
    for identity in (MessageId(0, 17), DueId(3, 1 << 120)):
        assert re.fullmatch(patterns.ID_PATTERN[1:-1], str(identity))
        assert MessageId.parse(str(identity)) == identity


# --- the page ---------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in ("src", "href", "srcset", "action"):
                self.loads.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_page_works_without_a_network(client: httpx.Client) -> None:
    answer = client.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    page = Page(answer.text)
    assert page.open == [], "every tag is closed"
    assert page.loads == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "url(" not in answer.text and "@import" not in answer.text
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link == "/openapi.json" or link.removeprefix("#") in page.ids


def test_page_has_everything(client: httpx.Client) -> None:
    page = Page(client.get("/docs").text)
    for route in DESCRIBED:
        assert route.name in page.ids
        assert route.summary in page.text
        assert curl(route) in page.text
        for parameter in route.query:
            assert parameter.name in page.text
    assert all(code in page.text for code in CODES)


@pytest.mark.parametrize("route", DESCRIBED, ids=lambda route: route.name)
def test_the_pages_calls_are_calls(client: httpx.Client, route: Route) -> None:
    """What the page says to type is what the route takes."""
    words = re.findall(r"'[^']*'|\S+", curl(route))
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    body = words[words.index("-d") + 1].strip("'") if "-d" in words else ""
    client.put("/queues/orders")
    answer = client.request(method, words[-1].removeprefix("http://127.0.0.1:9324"), content=body)
    known = {*route.answers, *(CODES[code].status for code in route.refusals)}
    assert method == route.method
    assert answer.status_code in known
    if answer.status_code == 400:
        assert answer.json()["code"] == "invalid_receipt", "the receipt is only an example"
