"""docs/sqs.md and docs/coming-from-sqs.md: their programs run; the tables have all that the model of SQS has, and what
goes beyond it, each row with a test that is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import botocore.session
import pytest

from angelhair.server.sqs.checks.attributes import BEYOND
from angelhair.server.sqs.checks.message_attributes import PRIORITY
from angelhair.server.sqs.checks.receipts import PEEK
from tests.wire.server import RunningServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sqs.md").read_text(encoding="utf-8")
COMING = (ROOT / "docs" / "coming-from-sqs.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)")
MODEL = botocore.session.get_session().get_service_model("sqs")


def rows(title: str) -> dict[str, str]:
    """The rows of a table, by what stands in their first cell."""
    table = PAGE[PAGE.index(f"| {title} |") :].partition("\n\n")[0]
    return {found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` \|.*$", table, re.MULTILINE)}


def block(page: str, kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(found)


def test_every_action_of_the_model_has_a_test() -> None:
    actions = rows("Action")
    assert list(actions) == sorted(MODEL.operation_names)
    assert [name for name, row in actions.items() if not LINK.search(row)] == []


def test_every_queue_attribute_of_the_model_has_a_test_or_says_why_not() -> None:
    attributes = rows("Queue attribute")
    assert sorted(attributes) == sorted(set(MODEL.shape_for("QueueAttributeName").enum) - {"All"})
    unsaid = [name for name, row in attributes.items() if not LINK.search(row)]
    assert [name for name in unsaid if "ot yet" not in attributes[name] and "Kept" not in attributes[name]] == []


def test_the_tests_that_are_named_are_there() -> None:
    for name, path in LINK.findall(PAGE):
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path} has no {name}"


def test_every_attribute_beyond_the_model_has_a_test() -> None:
    named = set(re.findall(r"`(Angelhair\.\w+)`", PAGE))
    assert named == {*BEYOND, PRIORITY, PEEK}
    for line in PAGE.splitlines():
        if line.startswith(("| `Angelhair.", "| `SendMessage` with", "| `ReceiveMessage` with")):
            assert LINK.search(line), line


@pytest.mark.parametrize("page", [PAGE, COMING], ids=["sqs", "coming-from-sqs"])
def test_the_program_prints_what_the_page_shows(server: RunningServer, page: str) -> None:
    program = block(page, "python").replace("http://127.0.0.1:9324", server.url)
    ran = subprocess.run(
        [sys.executable, "-c", program], env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, block(page, "output"), "")
