"""Workers of timelines against a real server on SQLite: handlers of both colours, retries, sharing, stopping, a store
that is away."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from angelhair.client import AsyncClient, Client, Draft, Message, Timeline, Worker
from angelhair.errors import InvalidRequest, QueueNotFound
from tests.client.conftest import QUICK
from tests.client.server import PATIENCE_SECONDS, ROOT
from tests.faults import UNAVAILABLE
from tests.wire.server import RunningServer, running_server

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LOCK = 2.0
LONG_LOCK = 300.0
"""For who counts how often each was handled: a short one could lapse on a busy machine. Longer than any patience here,
so that a shard that is free was given back."""


def eventually(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("timelines")) as running:
        yield running


@pytest.fixture
def client(served: RunningServer) -> Iterator[Client]:
    with Client(served.url, retry=QUICK) as connected:
        yield connected
    served.store.heal()


@pytest.fixture
def bells(client: Client, request: pytest.FixtureRequest) -> Iterator[Timeline]:
    name = f"bells-{abs(hash(request.node.nodeid)) % 10**9}"
    client.create_queue(f"{name}-dead")
    client.create_queue(
        name, kind="timeline", shards=2, producer_delay=0, lock=getattr(request, "param", LOCK), max_deliveries=2,
        dead_letter_queue=f"{name}-dead",
    )
    yield client.timeline(name)
    client.delete_queue(name)


@contextmanager
def running(*workers: Worker) -> Iterator[None]:
    failures: list[BaseException] = []

    def run(worker: Worker) -> None:
        try:
            worker.run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a worker does not end"
    if failures:
        raise failures[0]


def put(timeline: Timeline, count: int, start: datetime = LONG_AGO) -> None:
    drafts = [Draft(str(number), due=start + timedelta(seconds=number)) for number in range(count)]
    assert all(outcome.error is None for outcome in timeline.put_many(drafts))


@pytest.mark.parametrize("bells", [LONG_LOCK], indirect=True)
@pytest.mark.parametrize("colour", ["a function", "a coroutine function", "an object"])
def test_every_message_is_handled_and_acked(bells: Timeline, colour: str) -> None:
    handled: list[str] = []

    def plain(message: Message) -> None:
        handled.append(message.text)

    async def awaited(message: Message) -> None:
        await asyncio.sleep(0)
        handled.append(message.text)

    class Called:
        async def __call__(self, message: Message) -> None:
            handled.append(message.text)

    put(bells, 100)
    put(bells, 50, LONG_AGO + timedelta(seconds=100))
    late = [f"late {number}" for number in range(50)]
    worker = bells.worker({"a function": plain, "a coroutine function": awaited, "an object": Called()}[colour])
    with running(worker):
        # What is due already and meets a shard that is being read is put twice, and may be given twice (R8).
        assert all(outcome.error is None for outcome in bells.put_many([Draft(each, due=LONG_AGO) for each in late]))
        eventually(lambda: set(late) <= set(handled) and sum(each not in late for each in tuple(handled)) >= 150)
        eventually(lambda: worker.figures.processed == len(handled))
    times = Counter(handled)
    assert sorted(times[str(number)] for number in range(100)) == [1] * 50 + [2] * 50
    assert set(times) == {*late, *map(str, range(100))}
    eventually(lambda: {each.lock for each in bells.shards()} == {"free"})


def test_messages_know_when_they_were_due_and_come_no_sooner(bells: Timeline) -> None:
    seen: list[tuple[Message, datetime]] = []
    due = datetime.now(UTC) + timedelta(seconds=1.5)
    bells.put("later", due=due)
    bells.put("sooner", delay=0.5)
    worker = bells.worker(lambda message: seen.append((message, datetime.now(UTC))))
    with running(worker):
        eventually(lambda: worker.figures.processed == 2)
    (sooner, _), (later, at) = seen
    assert (sooner.text, later.text) == ("sooner", "later")
    assert later.due is not None and abs(later.due - due) < timedelta(milliseconds=2)
    assert at >= later.due


def test_a_failing_message_is_tried_again_and_then_set_aside(client: Client, bells: Timeline) -> None:
    tries: list[int] = []

    def handle(message: Message) -> None:
        if message.text == "poison":
            tries.append(message.deliveries)
            raise ValueError("I cannot")

    bells.put("poison", due=LONG_AGO)
    put(bells, 20)
    worker = bells.worker(handle, on_error=lambda message, error: 0.1)
    with running(worker):
        eventually(lambda: worker.figures.processed == 20)
        eventually(lambda: [dead.text for dead in client.dead_letters(bells.name)] == ["poison"])
    assert tries == [1, 2]
    assert worker.figures.failed == 2
    assert client.dead_letters(bells.name)[0].origin is not None


def test_dead_letters_are_sent_back_and_handled(client: Client, bells: Timeline) -> None:
    poisonous = True
    handled: list[str] = []

    def handle(message: Message) -> None:
        if poisonous:
            raise ValueError("I cannot")
        handled.append(message.text)

    bells.put("poison", due=LONG_AGO)
    with running(bells.worker(handle, on_error=lambda message, error: 0.1)):
        eventually(lambda: [dead.text for dead in client.dead_letters(bells.name)] == ["poison"])
        poisonous = False
        assert client.redrive(f"{bells.name}-dead") == 1
        eventually(lambda: handled == ["poison"])
    assert client.dead_letters(bells.name) == []
    with pytest.raises(InvalidRequest, match="receive them, put them where they belong"):
        client.redrive(bells.name, f"{bells.name}-dead")


@pytest.mark.parametrize("bells", [LONG_LOCK], indirect=True)
def test_a_worker_that_is_restarted_after_each_failure_has_its_message_set_aside_all_the_same(
    client: Client, bells: Timeline
) -> None:
    """Naive: every goodbye forgets how often the message was tried, and `max_deliveries` is never reached."""
    tries: list[int] = []

    def handle(message: Message) -> None:
        tries.append(message.deliveries)
        worker.stop()
        raise ValueError("I cannot")

    bells.put("poison", due=LONG_AGO)
    for _ in range(2):
        worker = bells.worker(handle, on_error=lambda message, error: 0.1)
        worker.run()
    assert tries == [1, 2]
    with running(bells.worker(handle)):
        eventually(lambda: [dead.text for dead in client.dead_letters(bells.name)] == ["poison"])
    assert tries == [1, 2]


def test_what_came_at_a_later_try_is_counted(bells: Timeline) -> None:
    def handle(message: Message) -> None:
        if message.deliveries == 1 and message.text == "0":
            raise ValueError("not yet")

    put(bells, 3)
    worker = bells.worker(handle, on_error=lambda message, error: 0.1)
    with running(worker):
        eventually(lambda: worker.figures.processed == 3)
    assert (worker.figures.retried, worker.figures.failed) == (1, 1)


@pytest.mark.parametrize("colour", ["a function", "a coroutine function"])
def test_a_handler_that_wants_to_exit_has_failed_and_its_worker_goes_on(
    client: Client, bells: Timeline, colour: str
) -> None:
    """`sys.exit` in a handler, of a command that it calls for instance. Naive: it ends the thread, nobody hears of it,
    and the message is kept from everybody for as long as its worker lives, which never ends."""
    handled: list[str] = []

    def exits(message: Message) -> None:
        handled.append(message.text)
        if message.text == "0":
            sys.exit("I am done")

    async def exits_too(message: Message) -> None:
        exits(message)

    put(bells, 3)
    worker = bells.worker(exits if colour == "a function" else exits_too, on_error=lambda message, error: 0.0)
    with running(worker):
        eventually(lambda: client.receive(f"{bells.name}-dead"))
        assert set(handled) == {"0", "1", "2"}


def test_slow_handlers_keep_the_lock_and_the_message(bells: Timeline) -> None:
    """W5: one that blocks the loop for longer than the lock holds."""
    handled: list[str] = []

    async def handle(message: Message) -> None:
        time.sleep(LOCK * 1.5)
        handled.append(message.text)

    put(bells, 2)
    worker = bells.worker(handle)
    with running(worker):
        eventually(lambda: worker.figures.processed == 2)
        fences = {each.fence for each in bells.shards()}
    assert sorted(handled) == ["0", "1"], "nothing was handled twice"
    assert worker.figures.stops == 0
    assert fences == {1}, "no lock was lost"


def test_w08_workers_share_the_shards_and_take_over(bells: Timeline) -> None:
    """W8. What is put at a time that a worker has read up to may come twice (R8): it is not counted how often."""
    handled: list[tuple[str, str]] = []

    def handler(name: str) -> Callable[[Message], None]:
        return lambda message: handled.append((name, message.text))

    def by(name: str) -> set[str]:
        return {text for worker, text in handled if worker == name}

    def each_has_some() -> bool:
        """On a busy machine a lock may lapse, and one of them have all of a round; then there is another."""
        handled.clear()
        put(bells, 4, datetime.now(UTC))
        eventually(lambda: by("ann") | by("bob") == {*"0123"})
        return bool(by("ann") and by("bob"))

    ann, bob = (bells.worker(handler(name), consumer=name) for name in ("ann", "bob"))
    with running(ann):
        eventually(lambda: len(ann.figures.shards) == 2)
        with running(bob):
            eventually(lambda: (len(ann.figures.shards), len(bob.figures.shards)) == (1, 1))
            eventually(each_has_some)
        handled.clear()
        put(bells, 4, datetime.now(UTC))
        eventually(lambda: by("ann") == {*"0123"})
    assert bob.figures.stops == 0, "who waits for a shard has nothing to lose"


def test_w09_a_worker_without_an_answer_starts_nothing_until_there_is_one(
    served: RunningServer, bells: Timeline, caplog: pytest.LogCaptureFixture
) -> None:
    """W9: the store is away for longer than the lock lasts."""
    started: list[str] = []
    worker = bells.worker(lambda message: started.append(message.text), concurrency=1)
    with caplog.at_level(logging.WARNING, "angelhair.client"), running(worker):
        eventually(lambda: len(worker.figures.shards) == 2)
        for verb in ("read", "write", "change"):
            served.store.next(verb, None, UNAVAILABLE, times=1_000_000)
        eventually(lambda: worker.figures.suspended)
        assert "may have lost its shards" in caplog.text
        served.store.heal()
        eventually(lambda: not worker.figures.suspended)
        put(bells, 10)
        eventually(lambda: worker.figures.processed == 10)
    assert worker.figures.stops >= 1


def test_a_queue_that_is_gone_or_is_no_timeline_ends_the_worker(client: Client, bells: Timeline) -> None:
    with pytest.raises(QueueNotFound):
        client.timeline("there-is-none").run(print, signals=False)
    with pytest.raises(InvalidRequest, match="kind"):
        client.timeline(f"{bells.name}-dead").run(print, signals=False)


def test_both_clients_put_look_and_run(served: RunningServer, bells: Timeline) -> None:
    async def main() -> tuple[list[str], int]:
        handled: list[str] = []

        async def handle(message: Message) -> None:
            handled.append(message.text)
            if len(handled) == 3:
                running.cancel()

        async with AsyncClient(served.url, retry=QUICK) as client:
            timeline = client.timeline(bells.name)
            await timeline.put("one", due=LONG_AGO)
            await timeline.put_many(["two", Draft("three", delay=0.1)])
            running = asyncio.ensure_future(timeline.run(handle))
            with pytest.raises(asyncio.CancelledError):
                await running
            return handled, len(await timeline.shards())

    handled, shards = asyncio.run(main())
    assert (sorted(handled), shards) == (["one", "three", "two"], 2)


PROGRAM = """
import sys, time
from angelhair import Client
def handle(message):
    print("handling", message.text, flush=True)
    time.sleep(1)
    print("handled", message.text, flush=True)
with Client(sys.argv[1]) as client:
    client.timeline(sys.argv[2]).run(handle, concurrency=1, consumer="ann")
print("stopped", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_let_it_finish_and_say_goodbye(
    served: RunningServer, bells: Timeline, tmp_path: Path, number: signal.Signals
) -> None:
    put(bells, 3)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, served.url, bells.name], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        said, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    text = first.split()[1]
    assert (said, complaints, process.returncode) == (f"handled {text}\nstopped\n", "", 0)
    assert {each.lock for each in bells.shards()} == {"free"}
    left: list[str] = []
    worker = bells.worker(lambda message: left.append(message.text))
    with running(worker):
        eventually(lambda: worker.figures.processed == 2)
    assert sorted([text, *left]) == ["0", "1", "2"], "what was handled was acked, what was not is left"


def test_a_plain_put_finds_out_that_a_timeline_takes_no_key(client: Client, bells: Timeline) -> None:
    """The client makes a key for every put, to try again under it; here there is none to be had."""
    client.put(bells.name, "x", due=LONG_AGO)
    assert client.put_many(bells.name, ["y", "z"])[0].error is None
    with pytest.raises(InvalidRequest, match="key"):
        client.put(bells.name, "x", key="mine")
    handled: list[str] = []
    worker = bells.worker(lambda message: handled.append(message.text))
    with running(worker):
        eventually(lambda: worker.figures.processed == 3)
    assert sorted(handled) == ["x", "y", "z"]


def test_wrong_values_are_refused_before_anything_is_sent(client: Client) -> None:
    wrong: list[Callable[[], Any]] = [
        lambda: client.timeline("a b"),
        lambda: client.timeline("bells").worker(print, concurrency=0),
        lambda: client.timeline("bells").worker(print, consumer="~me"),
        lambda: client.timeline("bells").put("x", due=datetime(2030, 1, 1)),  # noqa: DTZ001
    ]
    for call in wrong:
        with pytest.raises(InvalidRequest):
            call()
