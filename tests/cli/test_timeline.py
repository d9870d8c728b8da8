"""W7: `angelhair timeline`: the command as a process, against a real server on SQLite."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from angelhair import Client
from tests.cli.command import COMMAND, PATIENCE_SECONDS, Angelhair, environment
from tests.wire.server import RunningServer

HANDLER = """
import asyncio

def keep(message):
    if message.text == "bad":
        raise ValueError("I cannot")
    with open("kept.txt", "a") as kept:
        kept.write(message.text + "\\n")

async def keep_async(message):
    await asyncio.sleep(0)
    keep(message)

NUMBER = 7
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory with a handler in a package."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "reminders.py").write_text(HANDLER)
    (tmp_path / "shop" / "broken.py").write_text("import no_such_module\n")
    return tmp_path


def eventually(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.05)


def working(server: RunningServer, folder: Path, *arguments: str, **streams: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "timeline", "work", *arguments], cwd=folder, env=environment(ANGELHAIR_SERVER=server.url),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )


def kept(folder: Path) -> list[str]:
    file = folder / "kept.txt"
    return file.read_text().split() if file.exists() else []


def test_create_makes_shards_and_a_queue_for_dead_letters(angelhair: Angelhair, client: Client, name: str) -> None:
    angelhair("timeline", "create", name, "--shards", "3", "--producer-delay", "0", "--expire-after", "none",
              "--granularity", "hour", "--lock", "2s")
    made = client.queue(name)
    assert made.kind == "timeline"
    wanted = {
        "shards": 3, "producer_delay": 0, "expire_after": None, "granularity": "hour", "lock": 2, "max_deliveries": 5,
        "dead_letter_queue": f"{name}-dead",
    }
    assert {setting: made.settings.get(setting) for setting in wanted} == wanted
    assert client.queue(f"{name}-dead").kind == "bucketed"
    rows = angelhair("timeline", "shards", name).rows
    assert [row[:5] for row in rows] == [[str(shard), "open", "free", "-", "0"] for shard in range(3)]
    said = angelhair("timeline", "create", name, expect=1)
    assert "exists with another value of" in said.err and "shards" in said.err


def test_create_that_is_refused_has_made_nothing(angelhair: Angelhair, client: Client, name: str) -> None:
    """Naive: the queue for dead letters is made first, under the timeline's own name for instance."""
    said = angelhair("timeline", "create", name, "--dead-letter-queue", name, expect=2)
    assert "cannot be the timeline itself" in said.err
    assert list(client.queues(name)) == []
    client.create_queue(name)
    angelhair("timeline", "create", name, expect=1)
    assert list(client.queues(name)) == [name], "and no queue for dead letters"


def test_create_refuses_a_fifo_queue_for_dead_letters_before_it_makes_anything(
    angelhair: Angelhair, client: Client, name: str
) -> None:
    """Naive: both queues are made, and then comes a warning that nothing is moved there."""
    said = angelhair("timeline", "create", name, "--dead-letter-queue", f"{name}-dead.fifo", expect=2)
    assert "--dead-letter-queue: nothing is moved from a timeline to a fifo queue" in said.err
    assert list(client.queues(name)) == []


def test_dead_letters_in_a_timeline_are_warned_of_and_not_redriven(
    angelhair: Angelhair, client: Client, name: str
) -> None:
    """Naive: as none of them is due yet there is nothing to move, which looks as if all had gone well."""
    client.create_queue(f"{name}-dead", kind="timeline")
    said = angelhair("timeline", "create", name)
    assert "warning" in said.err and "no redrive moves messages from there" in said.err
    angelhair("timeline", "put", f"{name}-dead", "a letter")
    said = angelhair("dead", "redrive", name, expect=1)
    assert "moves no messages: receive them, put them where they belong, and ack them" in said.err
    assert not said.out


def test_create_with_dead_letters_has_nothing_to_warn_of(angelhair: Angelhair, client: Client, name: str) -> None:
    said = angelhair("timeline", "create", name)
    assert "warning" not in said.err and not client.queue(name).warnings


def test_create_again_and_without_dead_letters(angelhair: Angelhair, client: Client, name: str) -> None:
    for _ in range(2):
        shown = angelhair("timeline", "create", name, "--dead-letter-queue", "none", "--json").json
    assert (shown["settings"]["max_deliveries"], shown["settings"]["dead_letter_queue"]) == (None, None)
    assert f"{name}-dead" not in list(client.queues(name))
    assert "with 6 shards" in angelhair.on_terminal("timeline", "create", f"{name}-b").out


def test_put_work_and_shards(angelhair: Angelhair, server: RunningServer, name: str, shop: Path) -> None:
    angelhair("timeline", "create", name, "--producer-delay", "0", "--shards", "2", "--lock", "2")
    first = angelhair("timeline", "put", name, "one", "--due", "2020-01-01T00:00:00Z").out.strip()
    assert first.partition("-")[0] in {"0", "1"}
    angelhair("timeline", "put", name, "--delay", "1s", given=b"two")
    later = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    assert angelhair("timeline", "put", name, "later", "--due", later, "--json").json["queue"] == name
    for handler in ("keep", "keep_async"):
        with working(server, shop, name, "--handler", f"shop.reminders:{handler}", "--consumer", "ann") as process:
            eventually(lambda: len(kept(shop)) >= 2)
            rows = angelhair("timeline", "shards", name).rows
            assert {(row[2], row[3]) for row in rows} == {("held", "ann")}
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
        assert b"stopped: 2 processed" in complaints
        assert sorted(kept(shop)) == ["one", "two"]
        (shop / "kept.txt").unlink()
        for text in ("one", "two"):
            angelhair("timeline", "put", name, text)
    shown = angelhair("timeline", "shards", name, "--json").json["shards"]
    assert [(shard["lock"], shard["consumer"]) for shard in shown] == [("free", None)] * 2
    assert all(shard["last"] is not None for shard in shown)


def test_peek_says_when_each_message_is_due(angelhair: Angelhair, client: Client, name: str) -> None:
    """Naive: what is due in 2030 looks as if it could be received now."""
    angelhair("timeline", "create", name, "--shards", "1")
    for body, due in (("later", "2031-01-01T00:00:00Z"), ("sooner", "2030-01-01T00:00:00Z")):
        angelhair("timeline", "put", name, body, "--due", due)
    rows = angelhair("peek", name).rows
    assert [(row[3], row[5]) for row in rows] == [
        ("2030-01-01T00:00:00.000Z", "sooner"), ("2031-01-01T00:00:00.000Z", "later"),
    ]
    assert "DUE" in angelhair.on_terminal("peek", name).out
    client.create_queue(f"{name}-plain")
    client.put(f"{name}-plain", "x")
    assert [len(row) for row in angelhair("peek", f"{name}-plain").rows] == [5], "as ever"


def test_what_fails_is_said_and_ends_among_the_dead_letters(
    angelhair: Angelhair, client: Client, server: RunningServer, name: str, shop: Path
) -> None:
    angelhair("timeline", "create", name, "--producer-delay", "0", "--max-deliveries", "1")
    angelhair("timeline", "put", name, "bad")
    angelhair("timeline", "put", name, "good")
    with working(server, shop, name, "--handler", "shop.reminders:keep", "--json") as process:
        eventually(lambda: [dead.text for dead in client.dead_letters(name)] == ["bad"])
        process.send_signal(signal.SIGINT)
        said, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, kept(shop)) == (0, ["good"])
    assert b'"processed": 1' in said and b'"failed": 1' in said and b'"retried": 0' in said
    assert b"I cannot" in complaints


def test_progress_is_one_line_on_a_terminal_and_lines_elsewhere(
    angelhair: Angelhair, server: RunningServer, name: str, shop: Path
) -> None:
    angelhair("timeline", "create", name, "--producer-delay", "0", "--lock", "2")
    angelhair("timeline", "put", name, "one")
    ours, theirs = pty.openpty()
    with working(server, shop, name, "--handler", "shop.reminders:keep", stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while b"1 processed" not in said:
            said += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        try:
            while portion := os.read(ours, 65536):
                said += portion
        except OSError:
            pass
    os.close(ours)
    assert b"\r\x1b[K6 shards \xc2\xb7 1 processed" in said
    assert b"lag" in said and b"failed" in said


def test_printing(angelhair: Angelhair, server: RunningServer, name: str, shop: Path) -> None:
    angelhair("timeline", "create", name, "--producer-delay", "0")
    angelhair("timeline", "put", name, "a\tb\x1b[2J")
    with working(server, shop, name, "--print", "--quiet") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"a\\tb\\x1b[2J\n"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=PATIENCE_SECONDS) == (b"", b"")


def test_produce(angelhair: Angelhair, client: Client, name: str) -> None:
    angelhair("timeline", "create", name)
    spread = ("--count", "50", "--spread", "100s", "--delay", "1h")
    said = angelhair("timeline", "produce", name, "--rate", "1000", *spread)
    assert len(said.rows) == 50
    dues = [datetime.fromisoformat(row[1]) for row in said.rows]
    assert dues == sorted(dues)
    assert timedelta(seconds=95) < dues[-1] - dues[0] < timedelta(seconds=100)
    assert dues[0] - datetime.now(UTC) > timedelta(minutes=59)
    report = angelhair("timeline", "produce", name, "--rate", "100", "--duration", "0.5s", "--json").json
    assert report["failed"] == 0 and 10 <= report["put"] <= 60
    statistics = client.queue(name).statistics
    assert statistics is not None and statistics.delayed + statistics.visible == 50 + report["put"]


@pytest.mark.parametrize(("handler", "complaint"), [
    ("shop.reminders", "is not PACKAGE.MODULE:FUNCTION"),
    ("shop.nowhere:keep", "shop.nowhere cannot be imported: ModuleNotFoundError: No module named 'shop.nowhere'"),
    ("shop.broken:keep", "shop.broken cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
    ("shop.reminders:lose", "shop.reminders has no lose"),
    ("shop.reminders:NUMBER", "NUMBER of shop.reminders cannot be called"),
])
def test_a_handler_that_cannot_be_had(shop: Path, handler: str, complaint: str) -> None:
    """Said before any server is asked."""
    ended = subprocess.run(
        [*COMMAND, "timeline", "work", "any", "--handler", handler], cwd=shop, capture_output=True, check=False,
        env=environment(ANGELHAIR_SERVER="http://127.0.0.1:9"), timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode == 2
    assert ended.stderr.decode().count("\n") == 1
    assert complaint in ended.stderr.decode()


def test_a_queue_that_is_no_timeline_or_is_not_there(angelhair: Angelhair, queue: str) -> None:
    for verb in (("put", queue, "x"), ("shards", queue), ("work", queue, "--print"), ("produce", queue)):
        said = angelhair("timeline", *verb, expect=1)
        assert f"queue {queue} is of the kind bucketed" in said.err, verb
    assert "no queue" in angelhair("timeline", "shards", "there-is-none", expect=1).err
    assert "no work" not in angelhair("timeline", "work", "there-is-none", "--print", expect=1).err


def test_help_has_examples(angelhair: Angelhair) -> None:
    for verb in ("create", "put", "produce", "work", "shards"):
        said = angelhair("timeline", verb, "--help").out
        assert f"angelhair timeline {verb} " in said.partition("examples:")[2], verb
    assert "--handler" in angelhair("timeline", "work", "q", expect=2).err
