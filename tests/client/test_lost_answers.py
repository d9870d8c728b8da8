"""Retries against real servers: answers get lost, the store fails, the server is killed and comes back."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from angelhair.client import Client, Retry
from angelhair.engine import schema
from angelhair.errors import QueueNotFound
from tests.client.conftest import QUICK, Connect, connecting
from tests.client.server import PATIENCE_SECONDS, CutWire, Served, ServerProcess
from tests.faults import LOSE_ANSWER, UNAVAILABLE


def drain(client: Any) -> list[bytes]:
    bodies = []
    while messages := client.receive("chores", 1_000, wait=1):
        bodies += [message.body for message in messages]
        assert client.ack_many(messages) == []
    return bodies


def test_a_put_whose_answer_is_lost_is_not_doubled(server: Served, connect: Connect) -> None:
    with CutWire(server.port) as wire:
        client = connect(wire.url)
        client.create_queue("chores")
        wire.lose(3)
        put_id = client.put("chores", b"one")
        assert wire.lost == 3
        wire.lose(2)
        outcomes = client.put_many("chores", [b"two", b"three"])
        assert wire.lost == 5
        assert [path for _, path, _ in server.requests].count("/queues/chores/message") == 4
        messages = client.receive("chores", 10)
        assert [message.id for message in messages] == [put_id, *(outcome.id for outcome in outcomes)]
        assert [message.body for message in messages] == [b"one", b"two", b"three"]
        client.close()


def test_verbs_whose_answers_are_lost_take_effect(server: Served, connect: Connect) -> None:
    with CutWire(server.port) as wire:
        client = connect(wire.url)
        client.create_queue("chores", visibility_timeout=600)
        client.put_many("chores", [b"a", b"b", b"c"])
        first, second, third = client.receive("chores", 3)
        for act in (
            lambda: client.ack(first),
            lambda: client.ack_many([first, second]),
            lambda: client.extend(third, 3600),
            lambda: client.change(third, b"changed"),
            lambda: client.release(third),
            lambda: client.change_queue("chores", lanes=2),
        ):
            wire.lose(2)
            act()
        assert wire.lost == 12
        (again,) = client.receive("chores", 5)
        assert again.body == b"changed"
        assert client.queue("chores").settings["lanes"] == 2
        wire.lose(1)
        client.delete_queue("chores")
        with pytest.raises(QueueNotFound):
            client.queue("chores")
        client.close()


def test_the_store_fails_for_a_while(server: Served, connect: Connect) -> None:
    client = connect(server.url, retry=Retry(60, 0.01, 0.05))
    client.create_queue("chores")
    server.faults.next("change", schema.SEQUENCES, UNAVAILABLE)
    client.put("chores", b"one")
    # The engine repeats blind writes by itself: one more than that reaches the client.
    server.faults.next("write", schema.BODIES, LOSE_ANSWER, times=4)
    client.put("chores", b"two")
    puts = [path for _, path, _ in server.requests].count("/queues/chores/message")
    assert puts >= 4, "the client came again after each failure that it was told of"
    assert drain(client) == [b"one", b"two"]


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_server_that_is_killed_and_comes_back_loses_and_doubles_nothing(tmp_path: Path, kind: str) -> None:
    expected = [b"%d" % number for number in range(400)]
    reached = {place: threading.Event() for place in (100, 250)}
    failures: list[BaseException] = []

    def produce(url: str) -> None:
        try:
            with connecting(kind) as connect:
                client = connect(url, retry=Retry(PATIENCE_SECONDS, 0.01, 0.1))
                for number, body in enumerate(expected):
                    if number in reached:
                        reached[number].set()
                    client.put("chores", body)
        except BaseException as error:
            failures.append(error)
        finally:
            for event in reached.values():
                event.set()

    with ServerProcess(tmp_path / "killed.db") as process:
        with Client(process.url, retry=QUICK) as client:
            client.create_queue("chores")
        producer = threading.Thread(target=produce, args=(process.url,))
        producer.start()
        for event in reached.values():
            assert event.wait(PATIENCE_SECONDS)
            process.kill()
            process.start()
        producer.join()
        assert failures == []
        with Client(process.url, retry=QUICK) as client:
            assert sorted(drain(client)) == sorted(expected)
