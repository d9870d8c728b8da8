"""`angelhair get`, `peek` and `ack`: what is shown, what is settled, and what is not."""

from __future__ import annotations

import base64
import subprocess

import pytest

from angelhair import Client
from angelhair.cli.exits import NOBODY_READS
from angelhair.engine import schema
from tests.cli.command import COMMAND, Angelhair, environment
from tests.faults import UNAVAILABLE
from tests.wire.server import RunningServer

FORGED = "A" * 48


def test_get_as_json_has_what_rest_says(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"\xff\x00", content_type="image/png")
    client.put(queue, "text")
    first, second = angelhair("get", queue, "-n", "10", "--visibility", "1h", "--json").json["messages"]
    assert set(first) == {"id", "receipt", "body_base64", "content_type", "deliveries", "enqueued_at",
                          "first_delivered_at", "visible_at", "origin"}
    assert base64.b64decode(first["body_base64"]) == b"\xff\x00"
    assert (first["content_type"], second["body"], second["deliveries"]) == ("image/png", "text", 1)
    assert client.queue(queue).statistics.in_flight == 2


def test_get_as_lines_escapes_what_would_break_them(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"a\tb\nc\\ \x1b[31m \xff \xc2\x9b")
    ((id_, receipt, deliveries, enqueued_at, content_type, body),) = angelhair("get", queue).rows
    assert body == r"a\tb\nc\\ \x1b[31m \xff \xc2\x9b"
    assert (id_, deliveries, content_type) == ("0-0", "1", "-")
    assert enqueued_at.endswith("Z")
    undone = subprocess.run(["bash", "-c", 'printf %b "$1"', "-", body], capture_output=True, check=True)
    assert undone.stdout == b"a\tb\nc\\ \x1b[31m \xff \xc2\x9b"
    assert angelhair("ack", queue, receipt).out == ""


def test_get_takes_one_unless_told(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put_many(queue, [b"a", b"b", b"c"])
    assert len(angelhair("get", queue).rows) == 1
    assert len(angelhair("get", queue, "-n", "5").rows) == 2


def test_bodies_only_are_the_bodies(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put_many(queue, [b"\xff\t", b"two", b"three"])
    assert angelhair("get", queue, "-n", "2", "--body-only").raw == b"\xff\t\ntwo\n"
    assert angelhair("get", queue, "--body-only", "--no-newline").raw == b"three"


def test_ack_settles_what_was_printed(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put_many(queue, [b"a", b"b"])
    angelhair("get", queue, "-n", "2", "--ack", "--body-only")
    statistics = client.queue(queue).statistics
    assert (statistics.visible, statistics.in_flight) == (0, 0)


def test_what_nobody_could_read_is_not_acked(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"precious")
    with subprocess.Popen(
        [*COMMAND, "get", queue, "--wait", "30", "--ack"], env=environment(ANGELHAIR_SERVER=angelhair.url),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (NOBODY_READS, b"")
    assert client.queue(queue).statistics.in_flight == 1


def test_acks_that_fail_are_said(angelhair: Angelhair, server: RunningServer, client: Client, queue: str) -> None:
    client.put(queue, b"a")
    # The first change is the claim; what comes after it is the ack.
    server.store.next(
        "change", schema.STATES, UNAVAILABLE, times=1000,
        when=lambda change: any("settled" in row.values for row in change.rows),
    )
    said = angelhair("get", queue, "--ack", "--body-only", "--retry", "0", expect=69)
    assert said.raw == b"a\n"
    assert said.err.startswith("angelhair get: 1 message of 1 not acked: unavailable, nothing was done: ")


def test_nothing_there(angelhair: Angelhair, queue: str) -> None:
    assert angelhair("get", queue).out == ""
    assert angelhair("get", queue, "--json").json == {"messages": []}
    assert angelhair("peek", queue, "--json").json == {"messages": []}
    assert angelhair("get", queue, "--fail-empty", "--wait", "10ms", expect=3).err == ""
    assert angelhair("peek", queue, "--fail-empty", expect=3).err == ""
    assert "no messages" in angelhair.on_terminal("get", queue).out


def test_a_wait_ends_with_the_first_message(angelhair: Angelhair, client: Client, queue: str) -> None:
    with subprocess.Popen(
        [*COMMAND, "get", queue, "--wait", "10m", "--body-only"], env=environment(ANGELHAIR_SERVER=angelhair.url),
        stdout=subprocess.PIPE,
    ) as running:
        client.put(queue, b"at last")
        assert running.stdout is not None
        assert running.stdout.read() == b"at last\n"
    assert running.returncode == 0


def test_peek_takes_nothing(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put_many(queue, [b"a", b"b", b"c"])
    for _ in range(2):
        assert [row[-1] for row in angelhair("peek", queue, "-n", "2").rows] == ["a", "b"]
    (first, _) = angelhair("peek", queue, "-n", "2", "--json").json["messages"]
    assert set(first) == {"id", "body", "content_type", "deliveries", "enqueued_at", "origin"}
    assert first["deliveries"] == 0


# --- ack --------------------------------------------------------------------------------------------------------------


def test_ack_from_standard_input(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put_many(queue, [b"a", b"b", b"c"])
    receipts = [message.receipt for message in client.receive(queue, 3)]
    given = "\n".join([*receipts, receipts[0]]).encode()
    assert angelhair("ack", queue, "-", "--json", given=given).json == {"acked": 3, "failed": []}
    # Again is as good as once.
    assert angelhair("ack", queue, *receipts, "--json").json == {"acked": 3, "failed": []}
    assert client.queue(queue).statistics.in_flight == 0


def test_a_bad_receipt_concerns_only_itself(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"a")
    (stale,) = client.receive(queue)
    client.release(stale)
    (fresh,) = client.receive(queue)
    said = angelhair("ack", queue, stale.receipt, FORGED, fresh.receipt, "--json", expect=1)
    assert said.json["acked"] == 1
    assert [(each["receipt"], each["code"]) for each in said.json["failed"]] == [
        (stale.receipt, "stale_receipt"), (FORGED, "invalid_receipt"),
    ]
    assert said.err.startswith(f"angelhair ack: 1 acked, 2 not; the first of them {stale.receipt}: ")


def test_one_bad_receipt_is_one_line(angelhair: Angelhair, queue: str) -> None:
    said = angelhair("ack", queue, FORGED, expect=1)
    assert said.err.startswith("angelhair ack: ")
    assert said.err.count("\n") == 1
    assert "there is no queue 'nowhere'" in angelhair("ack", "nowhere", FORGED, expect=1).err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["get", "q", "--body-only", "--json"], "--body-only and --json cannot both be given"),
        (["get", "q", "--no-newline"], "--no-newline goes with --body-only only"),
        (["ack", "q", "-", "x"], "- reads all receipts from standard input, and stands alone"),
    ],
)
def test_what_does_not_go_together(angelhair: Angelhair, arguments: list[str], complaint: str) -> None:
    assert angelhair(*arguments, expect=2).err == f"angelhair {arguments[0]}: {complaint}\n"
