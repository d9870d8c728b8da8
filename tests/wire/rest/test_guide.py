"""docs/rest.md, docs/topics.md, docs/timelines.md and docs/databags.md, line by line: every call in them is made, in
order, and answered as they say."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import httpx

from angelhair.server.rest.errors import CODES
from angelhair.server.rest.routes import ROUTES
from tests.wire.server import running_server

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = DOCS / "rest.md"
ADDRESS = "http://127.0.0.1:9324"

CALL = re.compile(
    r"^\$ (?:RECEIPT=\$\()?(curl .+?)(?: \| tee /dev/stderr \| (sed .+)\))?\n(\d{3})(?: (.+))?$", re.MULTILINE
)


def calls() -> list[tuple[str, str, int, str]]:
    """The call, the command that takes a receipt out of its answer if there is one, the status, the answer."""
    pages = ("rest.md", "topics.md", "timelines.md", "databags.md")
    found = CALL.findall("".join((DOCS / page).read_text() for page in pages))
    return [(line, taking, int(status), answer or "") for line, taking, status, answer in found]


def spoken(client: httpx.Client, line: str, receipt: str) -> httpx.Response:
    """As curl would send it."""
    words = shlex.split(line.replace("$RECEIPT", receipt))[1:]
    method, headers, body, url = "GET", {}, "", ""
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-d":
            body = words.pop(0)
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        elif word == "-s":
            continue
        elif word == "-w":
            words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        else:
            url = word
    assert url.startswith(ADDRESS)
    return client.request(method, url.removeprefix(ADDRESS), headers=headers, content=body)


def like(answer: str) -> re.Pattern[str]:
    """An answer as the guide prints it, with dots for what it leaves out."""
    return re.compile(".*".join(re.escape(part) for part in answer.split("…")), re.DOTALL)


def test_every_call_in_the_guide(tmp_path: Path) -> None:
    receipt = ""
    made = set()
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url) as client:
        for line, taking, status, expected in calls():
            answer = spoken(client, line, receipt)
            assert answer.status_code == status, f"{line}\n{answer.text}"
            said = answer.text.removesuffix("\n")
            assert like(expected).fullmatch(said), f"{line}\n{said}\nis not\n{expected}"
            made.add((answer.request.method, answer.request.url.path))
            if taking:
                taken = subprocess.run(
                    shlex.split(taking), input=answer.text, capture_output=True, text=True, check=True
                )
                receipt = taken.stdout.strip()
                assert receipt == answer.json()["messages"][-1]["receipt"]
    for route in ROUTES:
        template = re.compile(re.sub(r"{\w+}", "[^/]+", route.template))
        assert any(method == route.method and template.fullmatch(path) for method, path in made), route.template


def test_every_code_is_in_the_guide() -> None:
    table = GUIDE.read_text()
    for code, known in CODES.items():
        assert re.search(rf"^\|[^|]*\b{known.status}\b[^|]*\|[^|]*`{code}`", table, re.MULTILINE), code
