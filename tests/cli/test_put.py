"""`angelhair put`: one message from anywhere, lines as they come, and what is said when they cannot be put."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from angelhair import Client, limits
from angelhair.cli.put import portions
from angelhair.engine import schema
from tests.cli.command import COMMAND, PATIENCE_SECONDS, Angelhair, environment
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.wire.server import RunningServer


def bodies(client: Client, queue: str) -> list[bytes]:
    return [message.body for message in client.peek(queue, 1000)]


def test_a_body_on_the_command_line(angelhair: Angelhair, client: Client, queue: str) -> None:
    said = angelhair("put", queue, "grüß dich", "--content-type", "text/plain")
    (message,) = client.peek(queue)
    assert said.out == f"{message.id}\n"
    assert (message.text, message.content_type) == ("grüß dich", "text/plain")


def test_a_body_behind_options(angelhair: Angelhair, client: Client, queue: str) -> None:
    angelhair("put", queue, "--content-type", "text/plain", "last")
    assert (client.peek(queue)[0].text, client.peek(queue)[0].content_type) == ("last", "text/plain")
    angelhair("put", queue, "--key", "k", "-", given=b"read")
    assert bodies(client, queue) == [b"last", b"read"]
    for words in (("--key", "k", "one", "two"), ("one", "--key", "k", "two")):
        assert "unrecognized arguments" in angelhair("put", queue, *words, expect=2).err


def test_json(angelhair: Angelhair, client: Client, queue: str) -> None:
    assert angelhair("put", queue, "x", "--json").json == {"id": client.peek(queue)[0].id, "queue": queue}


def test_standard_input_byte_for_byte(angelhair: Angelhair, client: Client, queue: str) -> None:
    body = bytes(range(256)) + b"\n"
    angelhair("put", queue, given=body)
    angelhair("put", queue, "-", given=b"")
    assert bodies(client, queue) == [body, b""]


def test_a_file(angelhair: Angelhair, client: Client, queue: str, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"\x00\xff")
    angelhair("put", queue, "--file", str(file), "--quiet")
    assert bodies(client, queue) == [b"\x00\xff"]
    said = angelhair("put", queue, "--file", str(tmp_path / "nothing"), expect=2)
    assert said.err == f"angelhair put: --file: {tmp_path / 'nothing'} cannot be read: No such file or directory\n"


def test_delay_and_due(angelhair: Angelhair, client: Client, queue: str) -> None:
    angelhair("put", queue, "later", "--delay", "1h")
    angelhair("put", queue, "then", "--due", (datetime.now() + timedelta(days=2)).isoformat(sep=" "))  # noqa: DTZ005
    angelhair("put", queue, "long ago", "--due", "0")
    statistics = client.queue(queue).statistics
    assert (statistics.delayed, statistics.visible) == (2, 1)
    assert "not allowed with argument" in angelhair("put", queue, "x", "--due", "0", "--delay", "1", expect=2).err


def test_one_key_is_one_message(angelhair: Angelhair, client: Client, queue: str) -> None:
    first = angelhair("put", queue, "x", "--key", "order-4711")
    assert angelhair("put", queue, "x", "--key", "order-4711").out == first.out
    assert len(bodies(client, queue)) == 1


def test_a_body_beyond_the_limit_is_not_read_to_its_end(angelhair: Angelhair, queue: str) -> None:
    said = angelhair("put", queue, given=bytes(limits.BODY_BYTES + 1), expect=1)
    assert said.err == "angelhair put: the body has more than 8,388,608 bytes, which is the limit\n"


# --- lines ------------------------------------------------------------------------------------------------------------


def test_lines_in_their_order(angelhair: Angelhair, client: Client, queue: str) -> None:
    said = angelhair("put", queue, "--lines", given=b"a\n\nb\xff\nlast")
    messages = client.peek(queue)
    assert [message.body for message in messages] == [b"a", b"", b"b\xff", b"last"]
    assert said.rows == [[message.id] for message in messages]


def test_lines_as_json_are_one_object_each(angelhair: Angelhair, client: Client, queue: str) -> None:
    said = angelhair("put", queue, "--lines", "--json", given=b"a\nb\n")
    assert [json.loads(line) for line in said.out.splitlines()] == [
        {"line": number, "id": message.id} for number, message in enumerate(client.peek(queue), 1)
    ]


def test_more_lines_than_one_request_takes(angelhair: Angelhair, client: Client, name: str, tmp_path: Path) -> None:
    client.create_queue(name)
    count = limits.BATCH_MESSAGES + 5
    file = tmp_path / "lines"
    file.write_text("".join(f"{number}\n" for number in range(count)))
    assert len(angelhair("put", name, "--lines", "--file", str(file), "--retry", "0").rows) == count
    assert client.queue(name).statistics.visible == count


def test_lines_are_put_as_they_come(angelhair: Angelhair, client: Client, queue: str) -> None:
    """The id of a line arrives while the input is still open."""
    with subprocess.Popen(
        [*COMMAND, "put", queue, "--lines"], env=environment(ANGELHAIR_SERVER=angelhair.url),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"first\nsec")
        running.stdin.flush()
        assert running.stdout.readline() == f"{client.peek(queue)[0].id}\n".encode()
        running.stdin.write(b"ond\n")
        running.stdin.close()
        running.stdout.read()
        assert running.wait(PATIENCE_SECONDS) == 0
    assert bodies(client, queue) == [b"first", b"second"]


def test_lines_that_cannot_be_put_stop_it(angelhair: Angelhair, server: RunningServer, queue: str) -> None:
    server.store.next("write", schema.BODIES, UNAVAILABLE, times=1000)
    said = angelhair("put", queue, "--lines", "--retry", "0", given=b"a\nb\n", expect=69)
    assert said.rows == [["-"], ["-"]]
    assert said.err.startswith("angelhair put: stopped after line 2: 0 messages put, 2 lines not, the first of them "
                               "line 1: unavailable, nothing was done: ")


def test_a_line_beyond_the_limit(angelhair: Angelhair, client: Client, queue: str) -> None:
    given = b"good\n" + b"x" * (limits.BODY_BYTES + 1) + b"\nnever\n"
    said = angelhair("put", queue, "--lines", given=given, expect=1)
    assert said.err.startswith("angelhair put: line 2 has more than 8,388,608 bytes")
    assert b"never" not in bodies(client, queue)


def test_portions_are_lines_however_they_are_cut() -> None:
    for cuts in ([b"a\nb\n"], [b"a", b"\n", b"b", b"\n"], [b"", b"a\nb"], [b"a\n", b"b"]):
        reading, writing = os.pipe()
        for piece in cuts:
            os.write(writing, piece)
        os.close(writing)
        assert [line for portion in portions(reading) for line in portion] == [b"a", b"b"]
        os.close(reading)


# --- exit codes -------------------------------------------------------------------------------------------------------


def test_unavailable_is_69_and_unknown_is_75(angelhair: Angelhair, server: RunningServer, queue: str) -> None:
    server.store.next("write", schema.BODIES, UNAVAILABLE, times=1000)
    said = angelhair("put", queue, "x", "--retry", "0", expect=69)
    assert said.err.startswith("angelhair put: unavailable, nothing was done: ")
    server.store.heal()
    server.store.next("write", schema.BODIES, NEVER_SENT, times=1000)
    said = angelhair("put", queue, "x", "--retry", "0", expect=75)
    assert said.err.startswith("angelhair put: outcome unknown, it may have happened: ")


def test_it_goes_on_trying(angelhair: Angelhair, server: RunningServer, client: Client, queue: str) -> None:
    rule = server.store.next("write", schema.BODIES, UNAVAILABLE, times=limits.WRITE_ATTEMPTS + 1)
    angelhair("put", queue, "x", "--retry", "1m")
    assert rule.happened > limits.WRITE_ATTEMPTS
    assert bodies(client, queue) == [b"x"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["x", "--file", "y"], "BODY and --file cannot both be given"),
        (["--lines", "--key", "k"], "with --key all lines would be one message"),
        (["x", "--lines"], "--lines reads a file or standard input, not BODY"),
    ],
)
def test_what_does_not_go_together(angelhair: Angelhair, arguments: list[str], complaint: str) -> None:
    assert angelhair("put", "orders", *arguments, expect=2).err == f"angelhair put: {complaint}\n"


def test_group_and_priority(angelhair: Angelhair, client: Client, name: str) -> None:
    angelhair("queue", "create", name, "priorities=3")
    angelhair("put", name, "low", "--group", "tenant")
    angelhair("put", name, "--lines", "--priority", "2", "--quiet", given=b"high\nhigh too\n")
    found = angelhair("peek", name, "-n", "10", "--json").json["messages"]
    assert [(message["body"], message.get("priority", 0), message.get("group")) for message in found] == [
        ("high", 2, None), ("high too", 2, None), ("low", 0, "tenant"),
    ]
    assert "--priority" in angelhair("put", name, "x", "--priority", "10", expect=2).err
