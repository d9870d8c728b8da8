"""Tells every story in this folder, on every store, and compares what happens with what is written there.

`.venv/bin/pytest tests/scenarios --record` writes what happens now into the files, to be read before it is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.queues import Session, World
from tests.scenarios.sentences import SENTENCES
from tests.scenarios.story import Story

STORIES = sorted(Path(__file__).parent.glob("*.txt"))


@dataclass
class Told:
    """A sentence of a story: its line, what is told inside it, and what came of it."""

    line: int
    text: str
    inner: list[Told] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)
    times: int = 0


def parse(text: str) -> list[Told]:
    """`> ` begins a sentence, `>> ` one that is told inside the last; answers are indented; the rest is prose."""
    told: list[Told] = []
    for index, line in enumerate(text.splitlines()):
        if line.startswith(">> "):
            told[-1].inner.append(Told(index, line[3:].rstrip()))
        elif line.startswith("> "):
            told.append(Told(index, line[2:].rstrip()))
    return told


async def tell(story: Story, sentences: list[Told]) -> None:
    for sentence in sentences:
        meanwhile = _inside(story, sentence.inner) if sentence.inner else None
        sentence.answer = await story.tell(sentence.text, meanwhile)
        sentence.times += 1


def _inside(story: Story, sentences: list[Told]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await tell(story, sentences)

    return run


def render(text: str, told: list[Told]) -> str:
    """The file with its answers replaced by what happened."""
    by_line = {item.line: item for sentence in told for item in (sentence, *sentence.inner)}
    lines: list[str] = []
    for index, line in enumerate(text.splitlines()):
        if not line.startswith("    "):
            lines.append(line)
        if index in by_line:
            lines += [f"    {answer}" for answer in by_line[index].answer]
    return "\n".join(lines) + "\n"


async def happens(world: World, text: str) -> str:
    told = parse(text)
    story = Story(world, SENTENCES)
    await tell(story, told)
    assert all(rule.happened for rule in story.interruptions), "something was to be interrupted, and never came"
    assert all(inner.times == 1 for sentence in told for inner in sentence.inner)
    return render(text, told)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, session: Session, world: World, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    happened = session.run(happens(world, text))
    if request.config.getoption("record"):
        path.write_text(happened)
    else:
        assert happened == text


def test_there_are_stories() -> None:
    assert len(STORIES) >= 20


def test_a_wrong_record_is_noticed(session: Session, world: World) -> None:
    """The comparison is worth nothing if it cannot fail."""
    text = STORIES[0].read_text()
    spoiled = text.replace("    made\n", "    was there\n", 1)
    assert spoiled != text
    assert session.run(happens(world, spoiled)) == text


def test_a_sentence_that_nobody_knows_is_an_error(session: Session, world: World) -> None:
    with pytest.raises(ValueError, match="no sentence reads"):
        session.run(happens(world, "> consumer waltzes\n"))
