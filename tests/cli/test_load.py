"""`angelhair load`: its books are right, whatever happens to the messages."""

from __future__ import annotations

import random
import signal
import statistics
import subprocess
import time

import pytest

from angelhair import Client
from angelhair.cli.exits import INTERRUPTED, OUTCOME_UNKNOWN
from angelhair.cli.load_accounts import Accounts, Durations
from angelhair.engine import schema
from tests.cli.command import COMMAND, PATIENCE_SECONDS, Angelhair, environment
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.wire.server import RunningServer

SHORT = ("--rate", "200", "--duration", "500ms")


def test_everything_is_accounted_for(angelhair: Angelhair, client: Client) -> None:
    report = angelhair("load", *SHORT, "--json").json
    messages = report["messages"]
    assert (messages["wanted"], messages["sent"], messages["received"], messages["acked"]) == (100, 100, 100, 100)
    assert [messages[name] for name in ("lost", "not_acked", "unknown", "refused", "foreign")] == [0, 0, 0, 0, 0]
    assert report["per_second"]["wanted"] == 200
    for what in ("put", "delivery", "ack"):
        found = report["milliseconds"][what]
        assert 0 < found["p50"] <= found["p95"] <= found["p99"] <= found["max"]
    # Who waits for more when everything is acked does not make the others slow.
    last = 0.5 + (report["milliseconds"]["delivery"]["max"] + report["milliseconds"]["ack"]["max"]) / 1000
    assert report["per_second"]["received"] >= report["per_second"]["acked"] >= 100 / last - 0.1
    assert report["queue"].startswith("load-")
    assert list(client.queues("load-")) == [], "the queue that it made is gone"


def test_a_fifo_queue_gets_groups_and_keys(angelhair: Angelhair, client: Client, name: str) -> None:
    client.create_queue(f"{name}.fifo")
    messages = angelhair("load", f"{name}.fifo", *SHORT, "--json").json["messages"]
    assert (messages["sent"], messages["received"], messages["acked"], messages["lost"]) == (100, 100, 100, 0)
    client.delete_queue(f"{name}.fifo")


def test_lines_for_programs(angelhair: Angelhair) -> None:
    rows = dict(angelhair("load", *SHORT, "--keys").rows)
    assert (rows["messages acked"], rows["messages lost"], rows["wanted a second"]) == ("100", "0", "200")


def test_a_progress_bar_on_a_terminal(angelhair: Angelhair) -> None:
    said = angelhair.on_terminal("load", *SHORT)
    assert "100/100 acked" in said.out
    assert "messages lost" in said.out


def test_the_messages_of_others_are_left_alone(angelhair: Angelhair, client: Client, name: str) -> None:
    client.create_queue(name, visibility_timeout=0)
    client.put_many(name, [b"not yours", b"nor this 1 "])
    messages = angelhair("load", name, *SHORT, "--json").json["messages"]
    assert messages["acked"] == 100
    assert messages["foreign"] >= 2
    assert [message.body for message in client.peek(name)] == [b"not yours", b"nor this 1 "]


def test_puts_that_fail_are_counted_and_told_by_the_exit_code(
    angelhair: Angelhair, server: RunningServer, queue: str
) -> None:
    server.store.next("write", schema.BODIES, UNAVAILABLE, times=100_000)
    messages = angelhair("load", queue, "--rate", "20", "--duration", "500ms", "--json", expect=1).json["messages"]
    assert (messages["wanted"], messages["sent"], messages["refused"], messages["lost"]) == (10, 0, 10, 0)


def test_what_is_unknown_is_not_called_lost(angelhair: Angelhair, server: RunningServer, queue: str) -> None:
    server.store.next("write", schema.BODIES, LOSE_ANSWER, times=100_000)
    messages = angelhair("load", queue, "--rate", "20", "--duration", "500ms", "--json", expect=1).json["messages"]
    assert (messages["wanted"], messages["sent"], messages["unknown"], messages["lost"]) == (10, 0, 10, 0)


def test_what_is_still_in_the_queue_is_not_called_lost(angelhair: Angelhair, client: Client, name: str) -> None:
    client.create_queue(name, delay=3600)
    report = angelhair("load", name, "--rate", "20", "--duration", "500ms", "--drain", "100ms", "--json", expect=1).json
    messages = report["messages"]
    assert (messages["sent"], messages["received"], messages["lost"], messages["not_seen_yet"]) == (10, 0, 0, 10)


def test_a_server_that_cannot_be_asked_leaves_it_open(
    angelhair: Angelhair, server: RunningServer, queue: str
) -> None:
    server.store.next("read", schema.STATES, UNAVAILABLE, times=100_000)
    said = angelhair("load", queue, "--rate", "20", "--duration", "500ms", "--drain", "100ms", "--retry", "0", "--json",
                     expect=OUTCOME_UNKNOWN)
    messages = said.json["messages"]
    assert (messages["sent"], messages["lost"], messages["not_seen_yet"]) == (10, 0, 10)
    assert said.err.startswith("angelhair load: unsettled: the server could not be asked: ")


def test_a_queue_that_could_not_be_deleted_is_named(
    angelhair: Angelhair, client: Client, server: RunningServer
) -> None:
    server.store.next("change", schema.GRAVES, UNAVAILABLE, times=100_000)
    said = angelhair("load", *SHORT, "--retry", "0", "--json")
    assert said.err == f"angelhair load: queue {said.json['queue']}, made for this run, may be left behind\n"
    server.store.heal()
    client.delete_queue(said.json["queue"])


def test_a_queue_that_is_not_there(angelhair: Angelhair) -> None:
    assert angelhair("load", "nowhere", expect=1).err == "angelhair load: there is no queue 'nowhere'\n"


def test_an_interrupted_run_leaves_no_queue_behind(angelhair: Angelhair, client: Client) -> None:
    with subprocess.Popen(
        [*COMMAND, "load", "--rate", "10", "--duration", "1h"], env=environment(ANGELHAIR_SERVER=angelhair.url),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not any(client.queue(name).statistics.in_flight or client.pointers(name)[0].next_id
                      for name in client.queues("load-")):
            assert time.monotonic() < give_up_at, "it sends nothing"
        running.send_signal(signal.SIGINT)
        said, complaint = running.communicate()
    assert (running.returncode, complaint) == (INTERRUPTED, "")
    report = dict(line.split("\t") for line in said.splitlines())
    assert int(report["messages sent"]) >= int(report["messages acked"]) >= 0
    assert report["messages wanted"] == "36000"
    assert list(client.queues("load-")) == []


def test_less_than_one_message_is_wrong_usage(angelhair: Angelhair) -> None:
    assert "is not one message" in angelhair("load", "--rate", "1", "--duration", "100ms", expect=2).err


# --- the books --------------------------------------------------------------------------------------------------------


def test_lost_doubled_and_unknown_are_told_apart() -> None:
    accounts = Accounts(5)
    for number in (0, 1, 2):
        accounts.put(number, 0.001)
    accounts.not_put(3, unknown=True)
    accounts.not_put(4, unknown=False)
    for number in (0, 0, 1, 3):
        accounts.received(number, 0.002)
    for number in (0, 0, 3):
        accounts.acked(number)
    accounts.foreign()
    assert accounts.summary() == {
        "wanted": 5, "sent": 3, "unknown": 1, "refused": 1, "received": 3, "acked": 2, "lost": 0,
        "not_seen_yet": 1, "not_acked": 1, "doubled": 1, "foreign": 1,
    }
    accounts.drained = True
    assert (accounts.lost, accounts.not_seen) == (1, 0), "the queue is empty: it will not come"
    assert not accounts.settled
    accounts.acked(1)
    assert not accounts.settled, "an unknown one that came does not stand in for one that is lost"
    accounts.received(2, 0.1)
    accounts.acked(2)
    assert accounts.settled
    assert not accounts.good, "not all that was wanted was sent"


def test_quantiles_are_right_within_two_percent() -> None:
    chance = random.Random(4)
    durations, exact = Durations(), []
    for _ in range(5_000):
        seconds = chance.lognormvariate(-4, 1.5)
        durations.add(seconds)
        exact.append(seconds * 1000)
    cuts = statistics.quantiles(exact, n=100, method="inclusive")
    assert durations.quantile_ms(0.5) == pytest.approx(cuts[49], rel=0.03)
    assert durations.quantile_ms(0.99) == pytest.approx(cuts[98], rel=0.03)
    assert durations.summary_ms()["max"] == pytest.approx(max(exact), abs=0.001)
    assert Durations().summary_ms() == {"p50": None, "p95": None, "p99": None, "max": None}
