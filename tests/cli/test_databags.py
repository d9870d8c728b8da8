"""Databags on the command line: made, cut otherwise, shown, and used by every command for messages."""

from __future__ import annotations

import shlex

import pytest

from angelhair import Client, limits
from angelhair.cli.main import build_parser
from tests.cli.command import ROOT, Angelhair

PAGE = (ROOT / "docs" / "databags.md").read_text(encoding="utf-8")
SYNC = limits.BAG_SYNC_MS / 1000


@pytest.fixture
def databag(client: Client, name: str) -> str:
    client.create_queue(name, kind="databag")
    return name


def rows(angelhair: Angelhair, name: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in angelhair("queue", "show", name).rows}


def test_create_takes_settings_as_options_and_as_pairs(angelhair: Angelhair, client: Client, name: str) -> None:
    for ending, settings in (
        ("a", ["--kind", "databag", "--min-partitions", "20", "--max-partitions=50", "--visibility-timeout", "2m"]),
        ("b", ["kind=databag", "min_partitions=20", "max_partitions=50", "visibility_timeout=2m"]),
        ("c", ["--kind", "databag", "max_partitions=50", "--min-partitions", "20", "visibility_timeout=2m"]),
    ):
        angelhair("queue", "create", f"{name}-{ending}", *settings)
        made = client.queue(f"{name}-{ending}")
        found = {each: made.settings.get(each) for each in ("min_partitions", "max_partitions", "visibility_timeout")}
        assert (made.kind, found) == (
            "databag", {"min_partitions": 20, "max_partitions": 50, "visibility_timeout": 120}
        )


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--min-partitions", "many"], 2, "min_partitions: 'many' is not a whole number"),
        (["--min-partition", "3"], 2, "(did you mean --min-partitions?)"),
        (["--min-partitions", "3", "min_partitions=4"], 2, "min_partitions is given twice"),
        (["--min-partitions", "60", "--max-partitions", "50"], 1, "60 is more than max_partitions, which is 50"),
        (["--max-partitions", "5000"], 1, "max_partitions"),
        (["--delay", "5s"], 1, "delay: a databag has none: what is put there may be served at once"),
        (["lanes=2"], 1, "lanes: a databag has one: min_partitions and max_partitions say how it is cut"),
        (["max_deliveries=3"], 1, "max_deliveries: a databag does not count deliveries, and has no dead letters"),
        (["bucket_size=50"], 1, "bucket_size: a queue of the kind 'databag' has no such setting"),
    ],
)
def test_what_cannot_be_set_is_said(
    angelhair: Angelhair, name: str, arguments: list[str], code: int, complaint: str
) -> None:
    said = angelhair("queue", "create", name, "--kind", "databag", *arguments, expect=code)
    assert complaint in said.err


def test_a_kind_that_there_is_not(angelhair: Angelhair, name: str) -> None:
    said = angelhair("queue", "create", name, "--kind", "bag", expect=1)
    assert "must be 'bucketed' or 'fifo' or 'timeline' or 'databag', not 'bag'" in said.err


def test_set_wants_something_to_set(angelhair: Angelhair, databag: str) -> None:
    said = angelhair("queue", "set", databag, expect=2)
    assert said.err == "angelhair queue set: nothing to change: name a setting, as in visibility_timeout=30s\n"


def test_show_has_the_partitions_in_words_for_people(angelhair: Angelhair, client: Client, name: str) -> None:
    client.create_queue(name, kind="databag", min_partitions=20, max_partitions=50)
    client.put(name, "x")
    client.receive(name)
    shown = rows(angelhair, name)
    assert shown["partitions"] == ["20", "in force here, of 20 to 50"]
    assert shown["partitions_locked"] == ["1", "have served, and rest"]
    assert shown["partitions_sync"] == [f"{SYNC:g}", "s at most until a change is in force"]
    assert shown["duplicates"][0] == "0"
    assert (shown["in_flight"][0], shown["visible"][0]) == ("1", "0")
    assert not {"lanes", "delay", "max_deliveries", "dead_letter_queue", "bucket_size"} & shown.keys()
    assert angelhair("queue", "show", name, "--json").json["partitions"] == {
        "count": 20, "min_partitions": 20, "max_partitions": 50, "visibility_timeout": 30, "sync": SYNC, "locked": 1,
        "epochs": limits.BAG_BLOCKS, "duplicates": 0,
    }


def test_show_fits_a_terminal_and_other_queues_have_no_partitions(
    angelhair: Angelhair, databag: str, client: Client
) -> None:
    lines = angelhair.on_terminal("queue", "show", databag, columns=80).out.splitlines()
    assert any("partitions_locked" in line and "have served, and rest" in line for line in lines)
    assert max(len(line) for line in lines if "\x1b" not in line) <= 80
    client.create_queue(f"{databag}-other")
    assert "partitions" not in rows(angelhair, f"{databag}-other")
    assert "partitions" not in angelhair("queue", "show", f"{databag}-other", "--json").json


def test_set_stores_at_once_and_show_says_what_is_still_in_force(angelhair: Angelhair, databag: str) -> None:
    rows(angelhair, databag)
    said = angelhair("queue", "set", databag, "--min-partitions", "128", "visibility_timeout=5")
    assert ["min_partitions", "128", "can change"] in said.rows
    shown = rows(angelhair, databag)
    assert (shown["min_partitions"][0], shown["partitions"][0]) == ("128", "1000")
    assert shown["min_partitions_now"] == ["1000", "in force until the next sync"]
    assert shown["visibility_timeout_now"] == ["30", "in force until the next sync"]
    assert "max_partitions_now" not in shown
    said = angelhair.on_terminal("queue", "set", databag, "--max-partitions", "2000")
    assert "each server goes by it from its next sync on" in said.out


def test_messages_go_in_are_looked_at_taken_and_settled_by_their_ids(angelhair: Angelhair, databag: str) -> None:
    one = angelhair("put", databag, "one").out.strip()
    two, three = angelhair("put", databag, "--lines", given=b"two\nthree\n").out.split()
    assert sorted(row[-1] for row in angelhair("peek", databag).rows) == ["one", "three", "two"]
    found = {row[5]: row for row in angelhair("get", databag, "-n", "10").rows}
    assert {body: (row[0], row[1]) for body, row in found.items()} == {
        "one": (one, one), "two": (two, two), "three": (three, three)
    }
    assert angelhair("get", databag, "--fail-empty", expect=3).out == ""
    assert angelhair("ack", databag, one, "--json").json == {"acked": 1, "failed": []}
    angelhair("ack", databag, "-", given=f"{one}\n{two}\n{three}\n".encode())
    assert rows(angelhair, databag)["in_flight"] == ["0", "-"]
    assert "is not the id of a message of a databag" in angelhair("ack", databag, "0-x", expect=1).err
    angelhair("put", databag, "four")
    # With a partition of its own nearly always; and what is locked with the others comes when their time is over.
    assert angelhair("get", databag, "--wait", "60", "--ack", "--body-only").out == "four\n"
    assert angelhair("peek", databag).out == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["put", "--delay", "5s", "QUEUE", "x"], "delay: a databag has none"),
        (["put", "--group", "g", "QUEUE", "x"], "group: a databag has none"),
        (["dead", "list", "QUEUE"], "has no dead-letter queue"),
        (["dead", "redrive", "--direct", "QUEUE"], "moves no messages: receive them, put them where they belong"),
        (["repair", "show", "QUEUE"], "databag"),
        (["timeline", "shards", "QUEUE"], "is of the kind databag, and this is for timelines"),
    ],
)
def test_what_a_databag_cannot_do_is_said_in_a_line(
    angelhair: Angelhair, client: Client, databag: str, arguments: list[str], complaint: str
) -> None:
    client.put(databag, "x")
    said = angelhair(*(databag if word == "QUEUE" else word for word in arguments), expect=1)
    assert complaint in said.err
    assert said.err.count("\n") == 1


def test_one_key_is_one_message(angelhair: Angelhair, client: Client, databag: str) -> None:
    first, again = (angelhair("put", databag, "x", "--key", "k").out for _ in range(2))
    assert first == again
    assert len(client.peek(databag)) == 1
    assert rows(angelhair, databag)["dedup_window"] == ["300", "can change"]


def test_purge_delete_and_list(angelhair: Angelhair, client: Client, databag: str) -> None:
    client.put(databag, "x")
    assert angelhair("queue", "list", databag, "--long").rows[0][:3] == [databag, "1", "0"]
    angelhair("queue", "purge", databag)
    assert client.peek(databag) == []
    angelhair("queue", "delete", databag)
    assert angelhair("queue", "list", databag).out == ""


def test_load_accounts_for_a_databag_whose_time_out_is_long(angelhair: Angelhair, client: Client, databag: str) -> None:
    """Naive: what lies in a partition that has served waits for the queue's time-out, longer than the load waits."""
    client.change_queue(databag, visibility_timeout=3600)
    report = angelhair("load", databag, "--rate", "200", "--duration", "1s", "--json").json
    assert (report["messages"]["sent"], report["messages"]["acked"], report["messages"]["lost"]) == (200, 200, 0)
    assert client.peek(databag) == []


def test_load_hides_for_as_long_as_it_is_told(angelhair: Angelhair, client: Client, databag: str) -> None:
    angelhair("load", databag, "--rate", "10", "--duration", "1s", "--visibility", "500ms", "--json")
    assert client.peek(databag) == []


def test_the_commands_on_the_page_parse() -> None:
    shown = [line.partition("#")[0] for line in PAGE.splitlines() if line.startswith("    angelhair ")]
    assert len(shown) >= 5
    for command in shown:
        words = shlex.split(command)[1:]
        assert build_parser({words[0]}).parse_args(words).command == words[0]
