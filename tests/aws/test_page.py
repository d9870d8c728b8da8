"""docs/sqs.md, sns.md and coming-from-sqs.md: their programs run; the tables have all that the models of Amazon have,
and what goes beyond them, each row with a test that is there."""

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
from tests.wire.sns.amazon import subscription_attributes, topic_attributes

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)")
SQS, SNS = (botocore.session.get_session().get_service_model(service) for service in ("sqs", "sns"))


class Page:
    def __init__(self, service: str) -> None:
        self.text = (ROOT / "docs" / f"{service}.md").read_text(encoding="utf-8")

    def rows(self, title: str) -> dict[str, str]:
        """The rows of a table, by what stands in their first cell."""
        table = self.text[self.text.index(f"| {title} |") :].partition("\n\n")[0]
        return {found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` \|.*$", table, re.MULTILINE)}

    def block(self, kind: str) -> str:
        (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        return str(found)


PAGES = {name: Page(name) for name in ("sqs", "sns", "coming-from-sqs")}


@pytest.mark.parametrize(("service", "model"), [("sqs", SQS), ("sns", SNS)])
def test_every_action_of_the_model_has_a_test(service: str, model: botocore.model.ServiceModel) -> None:
    actions = PAGES[service].rows("Action")
    assert list(actions) == sorted(model.operation_names)
    assert [name for name, row in actions.items() if not LINK.search(row)] == []


@pytest.mark.parametrize(
    ("service", "title", "names"),
    [("sqs", "Queue attribute", set(SQS.shape_for("QueueAttributeName").enum) - {"All"}),
     ("sns", "Topic attribute", topic_attributes()), ("sns", "Subscription attribute", subscription_attributes())],
)
def test_every_attribute_of_the_model_has_a_test(service: str, title: str, names: set[str]) -> None:
    attributes = PAGES[service].rows(title)
    assert sorted(attributes) == sorted(names)
    assert [name for name, row in attributes.items() if not LINK.search(row)] == []


@pytest.mark.parametrize("service", PAGES)
def test_the_tests_that_are_named_are_there(service: str) -> None:
    for name, path in LINK.findall(PAGES[service].text):
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path} has no {name}"


def test_every_attribute_beyond_the_model_has_a_test() -> None:
    page = PAGES["sqs"].text
    named = set(re.findall(r"`(Angelhair\.\w+)`", page))
    assert named == {*BEYOND, PRIORITY, PEEK}
    for line in page.splitlines():
        if line.startswith(("| `Angelhair.", "| `SendMessage` with", "| `ReceiveMessage` with")):
            assert LINK.search(line), line


@pytest.mark.parametrize("name", PAGES)
def test_the_program_prints_what_the_page_shows(server: RunningServer, name: str) -> None:
    program = PAGES[name].block("python").replace("http://127.0.0.1:9324", server.url)
    ran = subprocess.run(
        [sys.executable, "-c", program], env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, PAGES[name].block("output"), "")
