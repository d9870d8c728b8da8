"""`angelhair dead` and `angelhair repair`: what an operator looks at and puts right."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from angelhair import Client
from angelhair.settings import ACCOUNT
from tests.cli.command import Angelhair
from tests.wire.server import PATIENCE_SECONDS, RunningServer


@dataclass
class Died:
    queue: str
    dead: str


def step_until(server: RunningServer, queue: str, reached: Callable[[], bool]) -> None:
    """Does the queue's background work until something has come of it."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < give_up_at, "it does not happen"
        server.step(queue)


@pytest.fixture
def died(server: RunningServer, client: Client, name: str) -> Died:
    """A queue three of whose messages were delivered too often."""
    client.create_queue(f"{name}-dead")
    client.create_queue(name, max_deliveries=1, dead_letter_queue=f"{name}-dead")
    client.put_many(name, [b"a", b"b", b"c"])
    for message in client.receive(name, 3):
        client.release(message)
    step_until(server, name, lambda: not client.receive(name, 3) and len(client.dead_letters(name)) == 3)
    return Died(name, f"{name}-dead")


def test_dead_letters_are_listed(angelhair: Angelhair, died: Died) -> None:
    assert sorted(row[-1] for row in angelhair("dead", "list", died.queue).rows) == ["a", "b", "c"]
    shown = angelhair("dead", "list", died.queue, "-n", "1", "--json").json
    assert shown["queue"] == died.dead
    assert shown["messages"][0]["origin"]["queue"] == died.queue
    assert len(angelhair("dead", "list", died.dead, "--direct").rows) == 3


def test_redrive_sends_them_back(angelhair: Angelhair, client: Client, died: Died) -> None:
    assert angelhair("dead", "redrive", died.queue, "--count", "1").out == "1\n"
    assert angelhair("dead", "redrive", died.queue, "--json").json == {"queue": died.dead, "moved": 2}
    assert len(client.receive(died.queue, 10)) == 3
    assert angelhair("dead", "redrive", died.queue).out == "0\n"
    assert angelhair("dead", "list", died.queue, "--json").json == {"queue": died.dead, "messages": []}
    angelhair("dead", "list", died.queue, "--fail-empty", expect=3)


def test_redrive_elsewhere(angelhair: Angelhair, client: Client, died: Died, name: str) -> None:
    client.create_queue(f"{name}-slow")
    assert angelhair("dead", "redrive", died.dead, "--direct", "--to", f"{name}-slow").out == "3\n"
    assert len(client.peek(f"{name}-slow")) == 3


def test_what_cannot_go_back_is_said(angelhair: Angelhair, client: Client, died: Died, name: str) -> None:
    """A message that somebody put there came from nowhere; one whose queue is gone has nowhere to go."""
    put = client.put(died.dead, b"by hand")
    said = angelhair("dead", "redrive", died.queue)
    assert (said.out, said.err) == (
        "3\n", f"angelhair dead redrive: {died.dead} keeps messages that came from no queue, or from one that is gone, "
        f"such as {put}; --to names a queue for them\n",
    )
    client.create_queue(f"{name}-other")
    said = angelhair("dead", "redrive", died.queue, "--to", f"{name}-other")
    assert (said.out, said.err) == ("1\n", "")


def test_a_queue_that_is_gone_takes_nothing_back(angelhair: Angelhair, client: Client, died: Died) -> None:
    client.delete_queue(died.queue)
    said = angelhair("dead", "redrive", died.dead, "--direct")
    assert (said.out, "from one that is gone" in said.err) == ("0\n", True)


def test_a_queue_without_dead_letters(angelhair: Angelhair, queue: str) -> None:
    for verb in ("list", "redrive"):
        assert angelhair("dead", verb, queue, expect=1).err == (
            f"angelhair dead {verb}: queue '{queue}' has no dead-letter queue; if it is one itself, add --direct\n"
        )


def test_pointers_and_buckets(angelhair: Angelhair, client: Client, name: str) -> None:
    client.create_queue(name, bucket_size=2)
    client.put_many(name, [b"a", b"b", b"c"])
    (lane,) = angelhair("repair", "show", name, "--json").json["lanes"]
    assert (lane["lane"], lane["next_id"]) == (0, 3)
    assert set(lane) == {"lane", "next_id", "reader", "final", "settled", "repair", "floor", "dropped", "purged",
                         "archived"}
    assert angelhair("repair", "show", name).rows == [[str(value) for value in lane.values()]]
    # On a terminal a line for each pointer, whose names are whole.
    said = angelhair.on_terminal("repair", "show", name, columns=80, NO_COLOR="1", TERM="dumb")
    lines = [line.split() for line in said.out.splitlines()]
    assert lines[0] == ["POINTER", "LANE", "0"]
    assert [line for line in lines[2:] if line] == [[key, str(value)] for key, value in lane.items() if key != "lane"]
    shown = angelhair("repair", "show", name, "--buckets", "--json").json
    assert (shown["lane"], [(each["bucket"], each["messages"]) for each in shown["buckets"]]) == (0, [(0, 2), (1, 1)])
    assert [row[0] for row in angelhair("repair", "show", name, "--buckets", "--first", "1", "-n", "1").rows] == ["1"]
    assert angelhair("repair", "show", name, "--first", "1", expect=2).err == (
        "angelhair repair show: --first goes with --buckets only\n"
    )


def test_move_back(angelhair: Angelhair, server: RunningServer, client: Client, name: str) -> None:
    client.create_queue(name, bucket_size=1, repair_timeout=0.1)
    client.put_many(name, [b"a", b"b"])
    client.ack_many(client.receive(name, 2))
    step_until(server, name, lambda: client.pointers(name)[0].repair >= 1)
    assert angelhair("repair", "move-back", name, "0", "--json").json == {"lane": 0, "repair": 0}
    assert angelhair("repair", "move-back", name, "0").out == "0\n"
    said = angelhair("repair", "move-back", name, "99")
    assert said.err == ("angelhair repair move-back: nothing was moved: repair has not come to bucket 99 of lane 0 "
                        f"yet, its pointer stands at {said.out}")


def test_move_back_stops_at_the_floor(angelhair: Angelhair, server: RunningServer, client: Client, name: str) -> None:
    client.create_queue(name, bucket_size=1, repair_timeout=0.1, history=0)
    # Without keys, which would keep their buckets.
    with Client(server.url, retry=None) as unkeyed:
        unkeyed.put_many(name, [b"a", b"b"])
    client.ack_many(client.receive(name, 2))
    step_until(server, name, lambda: client.pointers(name)[0].repair >= 1)
    server.run(server.service.engine.retire(ACCOUNT, name))
    said = angelhair("repair", "move-back", name, "0")
    assert said.err == (f"angelhair repair move-back: bucket 0 of lane 0 is gone; repair looks again from bucket "
                        f"{said.out.strip()} on, the first that is kept\n")


def test_a_lane_must_be_named_where_there_are_several(angelhair: Angelhair, client: Client, name: str) -> None:
    client.create_queue(name, lanes=2)
    assert angelhair("repair", "move-back", name, "0", expect=2).err == (
        f"angelhair repair move-back: queue '{name}' has lanes 0, 1; say which with --lane\n"
    )
    assert angelhair("repair", "move-back", name, "0", "--lane", "1").out == "0\n"
    assert angelhair("repair", "show", name, "--buckets", "--lane", "1", "--json").json == {"lane": 1, "buckets": []}
