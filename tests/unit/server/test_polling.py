"""Receives that wait: woken at once by what their own server does, before long by others, and at no great cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from angelhair import limits
from angelhair.model import Ask, Delivery, MessageId
from angelhair.server.polling import Patience, Polling

PATIENCE_SECONDS = 20


def played(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        async def bounded() -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await test()

        asyncio.run(bounded())

    return run


class Queue:
    """What a look finds: the messages that are there, each once."""

    def __init__(self) -> None:
        self.messages = 0
        self.looks = 0
        self.due_ms: int | None = None
        self.before_answer: Callable[[], None] | None = None

    async def look(self, account: str, name: str, ask: Ask) -> list[Delivery]:
        self.looks += 1
        taken = min(self.messages, ask.messages)
        self.messages -= taken
        await asyncio.sleep(0)
        if self.before_answer is not None:
            before, self.before_answer = self.before_answer, None
            before()
        return [Delivery(MessageId(0, number), "", b"", None, 1, 0, 0, 0, None) for number in range(taken)]

    def polling(self) -> Polling:
        return Polling(self.look, lambda account, name: self.due_ms)


def receiving(polling: Polling, wait_seconds: float = 60, most: int = 1) -> asyncio.Task[list[Delivery]]:
    return asyncio.create_task(polling.receive("shop", "jobs", Ask(most), wait_seconds))


@pytest.fixture
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only wakes count: on a loaded machine the first look of the timer would come in between."""
    monkeypatch.setattr(limits, "POLL_FIRST_SECONDS", 600.0)
    monkeypatch.setattr(limits, "POLL_MOST_SECONDS", 600.0)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@played
async def test_without_a_wait_there_is_one_look() -> None:
    queue = Queue()
    assert await queue.polling().receive("shop", "jobs", Ask(1), 0) == []
    assert queue.looks == 1


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_a_put_on_the_same_server_wakes_at_once() -> None:
    queue = Queue()
    polling = queue.polling()
    waiting = receiving(polling)
    await settle()
    looks = queue.looks
    queue.messages = 1
    polling.wake("shop", "jobs", 1)
    await settle()
    assert waiting.done() and len(waiting.result()) == 1
    assert queue.looks == looks + 1
    assert polling.waiting == 0


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_a_put_wakes_as_many_as_it_brings_messages() -> None:
    queue = Queue()
    polling = queue.polling()
    waiting = [receiving(polling) for _ in range(50)]
    await settle()
    looks = queue.looks
    queue.messages = 3
    polling.wake("shop", "jobs", 3)
    await settle()
    assert sum(task.done() for task in waiting) == 3
    # Each who finds something wakes one more, who finds nothing.
    assert queue.looks - looks <= 6
    polling.stop()
    assert [len(found) for found in await asyncio.gather(*waiting)].count(1) == 3


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_another_queues_put_wakes_nobody() -> None:
    queue = Queue()
    polling = queue.polling()
    waiting = receiving(polling)
    await settle()
    looks = queue.looks
    polling.wake("shop", "other", 1)
    polling.wake("other", "jobs", 1)
    await settle()
    assert queue.looks == looks
    polling.stop()
    assert await waiting == []


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_what_comes_while_one_is_looking_is_not_slept_through() -> None:
    """Naive: look, find nothing, go to sleep; what was put in between wakes nobody."""
    queue = Queue()
    polling = queue.polling()

    def put_in_between() -> None:
        queue.messages = 1
        polling.wake("shop", "jobs", 1)

    queue.before_answer = put_in_between
    waiting = receiving(polling)
    await settle()
    assert waiting.done() and len(waiting.result()) == 1


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_one_who_is_woken_and_leaves_passes_it_on() -> None:
    """Naive: the wake goes to a client that has just hung up, and the next in line sleeps on."""
    queue = Queue()
    polling = queue.polling()
    leaving, staying = receiving(polling), receiving(polling)
    await settle()
    queue.messages = 1
    polling.wake("shop", "jobs", 1)
    leaving.cancel()
    await settle()
    assert leaving.cancelled()
    assert staying.done() and len(staying.result()) == 1


@played
async def test_what_other_servers_put_is_found_by_looking() -> None:
    queue = Queue()
    polling = queue.polling()
    waiting = [receiving(polling) for _ in range(5)]
    await settle()
    queue.messages = 5
    assert [len(found) for found in await asyncio.gather(*waiting)] == [1] * 5


@played
async def test_what_is_due_is_looked_for_when_it_is() -> None:
    queue = Queue()
    polling = queue.polling()
    queue.due_ms = 100
    waiting = receiving(polling)
    await asyncio.sleep(0.1)
    queue.messages, queue.due_ms = 1, 0
    assert len(await waiting) == 1


@played
async def test_many_who_wait_look_no_more_often_than_one() -> None:
    """Naive: each waiting receive asks the store again and again."""
    looks = []
    for waiters in (1, 200):
        queue = Queue()
        polling = queue.polling()
        waiting = [receiving(polling, 1.0) for _ in range(waiters)]
        await asyncio.gather(*waiting)
        # Everybody looks once at the beginning and once at the end.
        looks.append(queue.looks - 2 * waiters)
    most = 1.0 / limits.POLL_FIRST_SECONDS
    assert looks[0] < most and looks[1] < most


@played
async def test_the_pause_between_looks_grows_and_what_is_found_shortens_it() -> None:
    queue = Queue()
    polling = queue.polling()
    assert await polling.receive("shop", "jobs", Ask(1), 1.5) == []
    # With a pause that did not grow there would be sixty.
    assert queue.looks < 15


@played
async def test_a_stopping_server_lets_everybody_go() -> None:
    queue = Queue()
    polling = queue.polling()
    waiting = [receiving(polling) for _ in range(20)]
    await settle()
    polling.stop()
    assert await asyncio.gather(*waiting) == [[]] * 20
    assert await receiving(polling) == []
    assert polling.waiting == 0


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_whoever_loses_patience_goes_at_once_and_takes_nothing() -> None:
    queue = Queue()
    polling = queue.polling()
    patience = Patience()
    waiting = asyncio.create_task(polling.receive("shop", "jobs", Ask(1), 60, patience))
    await settle()
    queue.messages = 1
    patience.end()
    assert await waiting == []
    assert (queue.messages, queue.looks, polling.waiting) == (1, 1, 0)


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_a_wake_that_meets_lost_patience_belongs_to_the_next() -> None:
    queue = Queue()
    polling = queue.polling()
    patience = Patience()
    leaving = asyncio.create_task(polling.receive("shop", "jobs", Ask(1), 60, patience))
    await settle()
    staying = receiving(polling)
    await settle()
    queue.messages = 1
    polling.wake("shop", "jobs", 1)
    patience.end()
    assert await leaving == []
    assert len(await staying) == 1


@pytest.mark.usefixtures("nobody_looks")
@played
async def test_what_a_look_finds_after_patience_was_lost_is_handed_over() -> None:
    """The claim is made: to drop it would hide the message for its whole visibility."""
    queue = Queue()
    polling = queue.polling()
    patience = Patience()
    queue.messages = 1
    queue.before_answer = patience.end
    assert len(await polling.receive("shop", "jobs", Ask(1), 60, patience)) == 1
