"""docs/scenarios.md lists every sentence of the stories and no other, and its example can be pasted; a slip is said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.queues import World, open_session
from tests.scenarios import sentences, story
from tests.scenarios.test_scenarios import happens

Teller = Callable[[str], str]
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


LISTED = [line.lstrip("> ") for block in blocks("sentences") for line in block.splitlines()]


def test_every_listed_sentence_is_one() -> None:
    unknown = [line for line in LISTED if not any(pattern.fullmatch(line) for pattern, _ in sentences.SENTENCES)]
    assert unknown == []


def test_every_sentence_is_listed() -> None:
    missing = [
        pattern.pattern for pattern, _ in sentences.SENTENCES if not any(pattern.fullmatch(line) for line in LISTED)
    ]
    assert missing == []


def test_every_setting_is_listed() -> None:
    page = " ".join(LISTED)
    assert [pattern for pattern, _ in sentences.SETTINGS if not re.search(pattern, page)] == []
    for line in LISTED:
        if found := re.fullmatch(r"(?:a queue )?orders (?:with|gets) (.+)", line):
            assert sentences.settings(found[1])


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Teller]:
    with open_session("memory", tmp_path) as session:
        yield lambda text: session.run(happens(World(session), text))


def test_the_example_can_be_pasted(told: Teller) -> None:
    (example,) = blocks("story")
    happened = told(example)
    assert [line for line in happened.splitlines() if not line.startswith("    ")] == example.splitlines()
    answers = [line.strip() for line in happened.splitlines() if line.startswith("    ")]
    assert answers[:4] == ["made", "confirmed as 0", 'gets 0 "a vase", delivery 1', "done"]
    assert answers[4] == 'gets 0 "a vase", delivery 2'
    assert answers[5].startswith("refused: ")
    assert answers[6] == "acked"


QUEUE = "> a queue orders with buckets of 2\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("> consumer waltzes\n", "no sentence reads 'consumer waltzes'; the sentences that there are stand in docs"),
        ("> a queue orders with a view\n", "no setting reads 'a view'; the sentences that there are stand in docs"),
        (QUEUE + "> producer writes 20 of orders\n", "nobody has taken 20 of orders"),
        (QUEUE + "> consumer acks 20 of orders\n", "nobody has received 20 of orders"),
        (QUEUE + "> producer puts 1 message into orders\n> consumer asks orders for 1\n"
         "> consumer acks 0 of orders with the receipt of delivery 2\n", "nobody has received delivery 2 of 0"),
        (QUEUE + "> consumer acks 1-0 to 1-1 of orders\n", "a run of ids is of the first lane"),
        ("> server B dies\n", "there is no server B"),
        (QUEUE + ">> server A works\n", "takes no lines with '>> ' below it"),
        ("> when server A next reads the marks, just before:\n", "wants lines with '>> ' below it"),
    ],
)
def test_a_slip_is_said(told: Teller, text: str, why: str) -> None:
    with pytest.raises(story.Slip, match=re.escape(why)):
        told(text)


def test_a_slip_names_its_file_and_line(
    told: Teller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"A story\n\n{QUEUE}> when server A next changes the ids, just before:\n>> producer waltzes\n" \
        "> producer puts 1 message into orders\n"
    (tmp_path / "40_mine.txt").write_text(text)
    monkeypatch.setattr(story, "FOLDER", tmp_path)
    with pytest.raises(story.Slip, match=r"^40_mine.txt, line 5: no sentence reads 'producer waltzes'"):
        told(text)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (">producer puts 1 message into orders", "a sentence begins with '> ' or '>> ', and has words"),
        (">", "a sentence begins with '> ' or '>> ', and has words"),
        (">> server A works", "there is no sentence above"),
    ],
)
def test_a_sentence_without_its_space_is_not_taken_for_prose(
    told: Teller, line: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "40_mine.txt").write_text(f"A story\n\n{line}\n")
    monkeypatch.setattr(story, "FOLDER", tmp_path)
    with pytest.raises(story.Slip, match=re.escape(f"40_mine.txt, line 3: {why}")):
        told("> a queue orders with buckets of 2\n")
