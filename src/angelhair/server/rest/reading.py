"""The page at /docs: the table of routes, set for reading. One file, no script, nothing loaded from anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from http import HTTPStatus
from typing import Any

from angelhair.server.rest.errors import CODES
from angelhair.server.rest.openapi import GROUPS, REQUEST_ID, by_status
from angelhair.server.rest.query import Parameter
from angelhair.server.rest.route import Route

ADDRESS = "http://127.0.0.1:9324"

STYLE = """
:root { color-scheme: light dark; --page: #fbfaf7; --ink: #22252b; --soft: #646a75; --card: #ffffff; --line: #e4e1d8;
  --code: #f3f1ea; --get: #1f6f54; --put: #2a5bb0; --post: #7a4fb3; --patch: #96620c; --delete: #b0362f; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --ink: #dcdfe4; --soft: #969daa; --card: #1e2127;
  --line: #31353d; --code: #14161a; --get: #6fcfa8; --put: #85b1ff; --post: #c3a1f5; --patch: #e5b567;
  --delete: #ff8f87; } }
* { box-sizing: border-box; }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
.frame { display: grid; grid-template: "nav top" auto "nav main" 1fr / 17rem minmax(0, 1fr); max-width: 76rem;
  margin: 0 auto; }
header { grid-area: top; padding: 2rem 1.5rem 0; }
nav { grid-area: nav; position: sticky; top: 0; align-self: start; height: 100vh; overflow: auto;
  padding: 2rem 1.25rem; font-size: .86rem; }
nav section { break-inside: avoid; padding-bottom: 1.2rem; }
nav h2 { margin: 0 0 .3rem; }
nav h2, article h4 { font-size: .72rem; letter-spacing: .09em; text-transform: uppercase; color: var(--soft); }
nav a { display: block; padding: .17rem .45rem; margin-left: -.45rem; border-radius: .35rem; color: inherit;
  text-decoration: none; }
nav a:hover, nav a:focus-visible { background: var(--card); }
main { grid-area: main; padding: 0 1.5rem 5rem; min-width: 0; }
a { color: var(--put); }
h1 { font-size: 2rem; line-height: 1.25; letter-spacing: -.02em; margin: 0 0 .4rem; }
h1 small { display: inline-block; font-size: .9rem; font-weight: 400; color: var(--soft); letter-spacing: 0; }
main > section > h2 { margin: 2.6rem 0 .1rem; font-size: 1.3rem; }
main > section > p { color: var(--soft); margin: 0 0 1rem; }
article { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: 1.1rem 1.3rem;
  margin: 0 0 1.1rem; scroll-margin-top: 1rem; }
article:target { outline: 2px solid var(--put); }
article h3 { margin: 0; font-size: 1rem; font-weight: 600; overflow-wrap: anywhere; }
article h3 code { background: none; padding: 0; font-size: .95rem; }
article h4 { margin: 1.1rem 0 .35rem; }
.method { font: 700 .74rem ui-monospace, monospace; margin-right: .5rem; }
.get { color: var(--get); } .put { color: var(--put); } .post { color: var(--post); }
.patch { color: var(--patch); } .delete { color: var(--delete); }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .84rem; }
code { background: var(--code); border-radius: .25rem; padding: .08em .3em; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem;
  margin: .4rem 0; overflow: auto; }
pre code { background: none; padding: 0; }
pre.call { white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
td, th { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0; border-top: 1px solid var(--line); }
th { font-weight: 500; color: var(--soft); border-top: 0; font-size: .78rem; }
td:first-child { white-space: nowrap; width: 11rem; }
td small { display: block; color: var(--soft); }
details { margin-top: .5rem; } summary { cursor: pointer; color: var(--soft); font-size: .86rem; }
@media (max-width: 52rem) { .frame { grid-template: "top" "nav" "main" / minmax(0, 1fr); }
  header { padding: 1.5rem 1rem 0; } main { padding: 0 1rem 3rem; } article { padding: 1rem; }
  nav { position: static; height: auto; padding: 1rem 1rem 0; columns: 12rem 2; column-gap: 1.2rem; } }
@media (max-width: 32rem) { nav { columns: 8rem 2; } tr { display: grid; border-top: 1px solid var(--line); }
  tr { padding: .45rem 0; } td { border: 0; padding: .1rem 0; width: auto !important; } td small { display: inline; } }
@media print { nav { display: none; } .frame { display: block; } }
"""


def page(routes: Sequence[Route], document: dict[str, Any]) -> str:
    info = document["info"]
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<title>Angelhair: REST</title><style>{STYLE}</style></head><body><div class=frame>",
        f"<header><h1>Angelhair <small>REST, version {escape(info['version'])}</small></h1>",
        f"<p>{_prose(info['description'])}</p>",
        "<p>Fields that are not called optional are always there. "
        'For programs: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p></header>',
        _contents(routes),
        "<main>",
    ]
    for group, description in GROUPS.items():
        parts.append(f"<section><h2>{escape(group)}</h2><p>{escape(description)}</p>")
        parts += [_article(route, document) for route in routes if route.group == group]
        parts.append("</section>")
    parts.append(_errors())
    parts.append("</main></div></body></html>")
    return "\n".join(parts)


def _contents(routes: Sequence[Route]) -> str:
    parts = ["<nav aria-label=Routes>"]
    for group in GROUPS:
        parts.append(f"<section><h2>{escape(group)}</h2>")
        parts += [
            f'<a href="#{route.name}">{escape(route.summary)}</a>' for route in routes if route.group == group
        ]
        parts.append("</section>")
    parts.append('<section><h2>Refusals</h2><a href="#refusals">Codes and statuses</a></section></nav>')
    return "\n".join(parts)


def _article(route: Route, document: dict[str, Any]) -> str:
    operation = document["paths"][route.template][route.method.lower()]
    parts = [
        f'<article id="{route.name}"><h3><span class="method {route.method.lower()}">{route.method}</span>'
        f"<code>{escape(route.template)}</code></h3>",
        f"<p>{escape(route.summary)}. {_prose(route.description)}</p>",
        f"<pre class=call><code>{escape(curl(route))}</code></pre>",
    ]
    if route.query:
        parts.append("<h4>Parameters</h4>" + _table([_parameter_row(item) for item in route.query]))
    if route.body is not None:
        content = operation["requestBody"]["content"].get("application/json")
        parts.append(f"<h4>Body</h4><p>{_prose(route.body.description)}</p>")
        if content is not None:
            parts.append(_fields(content["schema"], document) + _example(content.get("example")))
    for status, answer in route.answers.items():
        content = operation["responses"][str(status)].get("content", {}).get("application/json", {})
        parts.append(f"<h4>{status} {HTTPStatus(status).phrase}</h4><p>{_prose(answer.description)}</p>")
        if "example" in content:
            parts.append(_example(content["example"]))
            parts.append(f"<details><summary>Fields</summary>{_fields(content['schema'], document)}</details>")
    refusals = [
        f"<td><code>{status}</code></td><td>{', '.join(f'<code>{code}</code>' for code in codes)}</td>"
        for status, codes in by_status(route.codes).items()
    ]
    parts.append(f"<details><summary>Refusals</summary>{_table(refusals)}</details></article>")
    return "\n".join(parts)


def curl(route: Route) -> str:
    path = route.template
    for parameter in route.path:
        path = path.replace("{" + parameter.name + "}", str(parameter.example))
    url = f"{ADDRESS}{path}"
    return f"curl {route.curl} {url}" if route.curl else f"curl {url}"


def _parameter_row(parameter: Parameter) -> str:
    return (
        f"<td><code>{parameter.name}</code></td><td>{escape(_kind(dict(parameter.schema)))}</td>"
        f"<td>{_prose(parameter.description)}</td>"
    )


def _fields(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """The fields of an object, or of the objects in a list, one table for each shape that is met on the way."""
    names = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema))
    seen: list[str] = []
    while names:
        name = names.pop(0)
        if name not in seen:
            seen.append(name)
            names += re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document["components"]["schemas"][name]))
    parts = []
    for position, name in enumerate(seen):
        component = document["components"]["schemas"][name]
        rows = [
            _field_row(field, kind, field in component["required"]) for field, kind in component["properties"].items()
        ]
        title = f"<code>{name}</code>: " if position or schema.get("type") == "array" else ""
        parts.append(f"<p>{title}{_prose(component['description'])}</p>{_table(rows)}")
    return "\n".join(parts)


def _field_row(name: str, schema: dict[str, Any], always: bool) -> str:
    remark = "" if always else "<small>optional</small>"
    if "default" in schema:
        remark = f"<small>default: {escape(json.dumps(schema['default']))}</small>"
    return (
        f"<td><code>{name}</code></td><td>{escape(_kind(schema))} {remark}</td>"
        f"<td>{_prose(schema.get('description', ''))}</td>"
    )


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_kind(schema['items'])}"
    least, most = schema.get("minimum"), schema.get("maximum", schema.get("exclusiveMaximum"))
    if least is not None and most is not None:
        return f"{kind}, {least:,} to {most:,}"
    length = schema.get("maxLength")
    return f"{kind}, up to {length:,} characters" if length else kind


def _example(example: object) -> str:
    if example is None:
        return ""
    return f"<pre><code>{escape(json.dumps(example, indent=2, ensure_ascii=False))}</code></pre>"


def _table(rows: Sequence[str]) -> str:
    return "<div class=scroll><table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table></div>"


def _errors() -> str:
    rows = [
        f"<td><code>{code}</code></td><td>{known.status}</td><td>{_prose(known.meaning)}</td>"
        for code, known in CODES.items()
    ]
    message = "batch: must be a whole number between 1 and 1000"
    shape = _example({"code": "invalid_request", "message": message, "request_id": REQUEST_ID, "field": "batch"})
    return (
        '<section><h2 id="refusals">Refusals</h2><p>All have this shape; <code>field</code> where one thing in the '
        f"request is to blame.</p><article>{shape}{_table(rows)}</article></section>"
    )


def _prose(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
