"""Consumers against a real server: concurrency, extension, failing handlers, stopping, a server that goes away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from angelhair import limits
from angelhair.client import AsyncClient, Client, Message
from angelhair.engine.schema import STATES
from angelhair.errors import QueueNotFound, StaleReceipt
from tests.client import consumers
from tests.client.conftest import QUICK
from tests.client.consumers import running
from tests.client.server import PATIENCE_SECONDS, ROOT, Served, ServerProcess

KINDS = pytest.mark.parametrize("kind", ["blocking", "asyncio"])


def eventually(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.01)


def extensions(server: Served) -> int:
    return sum(method == "PATCH" for method, _, _ in server.requests)


def left(client: Client) -> tuple[int, int, int]:
    statistics = client.queue("chores").statistics
    assert statistics is not None
    return statistics.visible, statistics.in_flight, statistics.delayed


@pytest.fixture
def producer(server: Served) -> Iterator[Client]:
    with Client(server.url, retry=QUICK) as client:
        client.create_queue("chores")
        yield client


@KINDS
def test_every_message_is_handled_once_and_acked(server: Served, producer: Client, kind: str) -> None:
    handled: list[str] = []
    producer.put_many("chores", [str(number) for number in range(50)])
    with running(kind, server.url, lambda message: handled.append(message.text)):
        producer.put_many("chores", [str(number) for number in range(50, 100)])
        eventually(lambda: left(producer) == (0, 0, 0))
    assert sorted(map(int, handled)) == list(range(100))


@KINDS
def test_as_many_at_once_as_it_was_told(server: Served, producer: Client, kind: str) -> None:
    together = threading.Barrier(4, timeout=PATIENCE_SECONDS)
    lock = threading.Lock()
    now, most = 0, 0

    def work(message: Message) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait()
        with lock:
            now -= 1

    producer.put_many("chores", ["x"] * 16)
    with running(kind, server.url, work, concurrency=4):
        eventually(lambda: left(producer) == (0, 0, 0))
    assert most == 4


@pytest.mark.parametrize(("kind", "blocking_the_loop"), [("blocking", False), ("asyncio", False), ("asyncio", True)])
def test_a_slow_message_is_kept(server: Served, producer: Client, kind: str, blocking_the_loop: bool) -> None:
    """With the handler on the event loop and never giving way, too."""
    deliveries: list[int] = []
    seen_by_others: list[int] = []

    def work(message: Message) -> None:
        deliveries.append(message.deliveries)
        eventually(lambda: extensions(server) >= 3)
        with Client(server.url) as other:
            seen_by_others.append(len(other.receive("chores")))

    producer.put("chores", b"slow")
    with running(kind, server.url, work, concurrency=1, visibility=2, blocking_the_loop=blocking_the_loop):
        eventually(lambda: seen_by_others and left(producer) == (0, 0, 0))
    assert deliveries == [1]
    assert seen_by_others == [0]


@KINDS
def test_a_message_whose_handler_fails_comes_again(server: Served, producer: Client, kind: str) -> None:
    told: list[tuple[int, str]] = []
    delivered: list[int] = []

    def work(message: Message) -> None:
        delivered.append(message.deliveries)
        if message.deliveries < 3:
            raise ValueError(f"at delivery {message.deliveries}")

    def on_error(message: Message, error: Exception) -> float:
        told.append((message.deliveries, str(error)))
        return 0.05

    producer.put("chores", b"hard")
    with running(kind, server.url, work, on_error=on_error):
        eventually(lambda: len(delivered) == 3 and left(producer) == (0, 0, 0))
    assert delivered == [1, 2, 3]
    assert told == [(1, "at delivery 1"), (2, "at delivery 2")]


@KINDS
def test_a_failing_message_waits_and_does_not_hold_others_up(server: Served, producer: Client, kind: str) -> None:
    handled: list[str] = []

    def work(message: Message) -> None:
        if message.text == "bad":
            raise ValueError
        handled.append(message.text)

    producer.put_many("chores", ["bad", "good", "good too"])
    with running(kind, server.url, work, concurrency=1, on_error=lambda message, error: 3600.0):
        eventually(lambda: len(handled) == 2)
        eventually(lambda: left(producer) == (0, 1, 0))
    assert handled == ["good", "good too"]


@KINDS
def test_a_message_that_was_taken_away_is_told(server: Served, producer: Client, kind: str) -> None:
    told: list[Exception] = []

    def work(message: Message) -> None:
        producer.release(message)
        (again,) = producer.receive("chores")
        producer.ack(again)

    producer.put("chores", b"one")
    with running(kind, server.url, work, concurrency=1, on_error=lambda message, error: told.append(error)):
        eventually(lambda: told)
    assert [type(error) for error in told] == [StaleReceipt]


@KINDS
def test_told_to_stop_it_finishes_what_it_holds(server: Served, producer: Client, kind: str) -> None:
    begun, go_on = threading.Event(), threading.Event()
    handled: list[str] = []

    def work(message: Message) -> None:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        handled.append(message.text)

    producer.put("chores", "first")
    with running(kind, server.url, work, concurrency=1) as consumer:
        assert begun.wait(PATIENCE_SECONDS)
        consumer.consumer.stop()
        producer.put("chores", "second")
        go_on.set()
        consumer.join()
    assert handled == ["first"]
    assert left(producer) == (1, 0, 0), "the first is acked, the second nobody's"


@KINDS
def test_a_handler_may_stop_it(server: Served, producer: Client, kind: str) -> None:
    made: list[consumers.Running] = []
    known = threading.Event()

    def work(message: Message) -> None:
        assert known.wait(PATIENCE_SECONDS)
        made[0].consumer.stop()

    producer.put("chores", b"the last one")
    with running(kind, server.url, work) as consumer:
        made.append(consumer)
        known.set()
        consumer.join()
    assert left(producer) == (0, 0, 0)


@KINDS
def test_an_idle_consumer_stops_at_once_and_takes_nothing_along(server: Served, producer: Client, kind: str) -> None:
    """Naive: wait until the receive comes back; or cut it off, with a message on its way."""
    consumer = consumers.Running(kind, server.url, lambda message: None, wait=limits.WAIT_MAXIMUM_SECONDS)
    eventually(lambda: server.waiting == 1)
    begun = time.monotonic()
    consumer.stop()
    assert time.monotonic() - begun < limits.WAIT_MAXIMUM_SECONDS / 2
    assert server.waiting == 0
    producer.put("chores", "for whoever stays")
    (message,) = producer.receive("chores")
    assert message.deliveries == 1


@KINDS
def test_what_is_handed_out_while_it_stops_is_handled(server: Served, producer: Client, kind: str) -> None:
    """The server has claimed the message when it hears that the consumer leaves: it must still arrive."""
    handled: list[str] = []
    consumer = consumers.Running(kind, server.url, lambda message: handled.append(message.text), wait=20)
    eventually(lambda: server.waiting == 1)

    async def leave_first() -> None:
        consumer.consumer.stop()
        # Until the server has heard of it: the claim is under way, and its answer is still to come.
        while not server.left:
            await asyncio.sleep(0.005)

    server.faults.next("change", STATES, leave_first)
    producer.put("chores", "just in time")
    consumer.join()
    assert handled == ["just in time"]
    assert left(producer) == (0, 0, 0)


@KINDS
def test_a_queue_that_is_deleted_ends_it(server: Served, producer: Client, kind: str) -> None:
    consumer = consumers.Running(kind, server.url, lambda message: None, wait=0.1)
    producer.delete_queue("chores")
    with pytest.raises(QueueNotFound):
        consumer.join()


@KINDS
def test_a_server_that_is_killed_and_comes_back(tmp_path: Path, kind: str) -> None:
    handled: Counter[str] = Counter()
    lock = threading.Lock()

    def work(message: Message) -> None:
        with lock:
            handled[message.text] += 1

    bodies = [str(number) for number in range(300)]
    with ServerProcess(tmp_path / "killed.db") as process, Client(process.url, retry=QUICK) as producer:
        producer.create_queue("chores")
        producer.put_many("chores", bodies)
        with running(kind, process.url, work, visibility=2):
            eventually(lambda: len(handled) >= 50)
            process.kill()
            process.start()
            eventually(lambda: left(producer) == (0, 0, 0))
    assert set(handled) == set(bodies)


def test_a_cancelled_run_gives_its_messages_back_at_once(server: Served, producer: Client) -> None:
    producer.put_many("chores", ["a", "b"])

    async def main() -> None:
        begun = asyncio.Semaphore(0)

        async def handler(message: Message) -> None:
            begun.release()
            await asyncio.Event().wait()

        async with AsyncClient(server.url, retry=QUICK) as client:
            run = asyncio.create_task(client.consumer("chores", handler, visibility=3600, wait=1).run())
            for _ in range(2):
                await asyncio.wait_for(begun.acquire(), PATIENCE_SECONDS)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    asyncio.run(main())
    assert left(producer) == (2, 0, 0)


@KINDS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_after_the_message_under_way(
    server: Served, producer: Client, kind: str, number: signal.Signals
) -> None:
    producer.put_many("chores", ["first", "second"])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with subprocess.Popen(
        [sys.executable, "-W", "error", consumers.__file__, kind, server.url],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "handling first\n"
        process.send_signal(number)
        said, _ = process.communicate("\n", timeout=PATIENCE_SECONDS)
    assert said == "handled first\nstopped\n"
    assert process.returncode == 0
    assert left(producer) == (1, 0, 0)


def test_an_interrupt_ends_it_after_the_messages_under_way(server: Served, producer: Client) -> None:
    """Control-C without `signals`: it comes out of `run` as ever, and no message is left in flight."""

    def work(message: Message) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    producer.put("chores", b"one")
    with pytest.raises(KeyboardInterrupt):
        producer.consumer("chores", work, wait=1).run()
    assert left(producer) == (0, 0, 0)


def test_an_interrupt_while_threads_are_started_loses_sight_of_no_handler(
    server: Served, producer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool of threads forgets one that it is just starting, and with it the handler that runs there already."""
    start = threading.Thread.start

    def slowly(thread: threading.Thread) -> None:
        start(thread)
        time.sleep(0.2)

    def work(message: Message) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

    monkeypatch.setattr(threading.Thread, "start", slowly)
    producer.put("chores", b"one")
    with pytest.raises(KeyboardInterrupt):
        producer.consumer("chores", work, wait=1).run()
    assert left(producer) == (0, 0, 0)


def test_signals_are_as_before_afterwards(server: Served, producer: Client) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    consumer = producer.consumer("chores", lambda message: None, wait=0)
    consumer.stop()
    consumer.run(signals=True)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
