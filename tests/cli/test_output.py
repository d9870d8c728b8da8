"""How things are printed: on terminals of any width, for programs, and never in a way that a terminal acts on."""

from __future__ import annotations

import json

import pytest

from angelhair import Client
from angelhair.cli.output import Column, Room, cell, escaped, fitting, print_json, readable
from tests.cli.command import Angelhair


def test_a_table_on_a_terminal(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"[bold]\x1b[31mred\x1b[0m " + b"long " * 100)
    said = angelhair.on_terminal("get", queue, columns=80)
    lines = said.out.splitlines()
    (receipt,) = [word for line in lines for word in line.split() if word.startswith("AQ")]
    assert any("RECEIPT" in line for line in lines)
    assert "ENQUEUED" not in said.out, "there is no room for it"
    assert "…" in said.out
    assert "[bold]" in said.out, "a body is not markup"
    assert "\x1b[31m" not in said.out
    client.queue(queue)
    angelhair("ack", queue, receipt)
    wide = angelhair.on_terminal("queue", "list", queue, columns=200)
    assert queue in wide.out


def test_a_wide_terminal_shows_more(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"x")
    assert "ENQUEUED" in angelhair.on_terminal("peek", queue, columns=200).out


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours(angelhair: Angelhair, client: Client, queue: str, variables: dict[str, str], coloured: bool) -> None:
    client.put(queue, b"x")
    said = angelhair.on_terminal("repair", "show", queue, "--buckets", **variables)
    assert ("\x1b[36mopen" in said.out) is coloured


def test_bodies_on_a_terminal_keep_their_lines_only(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"one\n\ttwo \x1b]0;title\x07")
    assert "one\r\n\ttwo \\x1b]0;title\\x07" in angelhair.on_terminal("get", queue, "--body-only").out


def test_escapes_are_bytes() -> None:
    assert escaped("a\\b\r\n\t\x00\u2028\u202e") == r"a\\b\r\n\t\x00\xe2\x80\xa8\xe2\x80\xae"
    assert escaped("grüß 東京 🎉") == "grüß 東京 🎉"
    assert escaped(b"\xff\xfe") == r"\xff\xfe"
    assert readable(b"a\\\n\t\x1b\xff") == "a\\\n\t\\x1b\\xff"


def test_cells() -> None:
    assert [cell(value) for value in (None, True, 3, 1.5, 2.0, 0.1234, "x")] == [
        "-", "true", "3", "1.5", "2", "0.123", "x",
    ]


def test_json_is_readable_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"body": "grüß\x9b\u2028\x7f\n"})
    said = capsys.readouterr().out
    assert "grüß" in said
    assert not set("\x9b\u2028\x7f") & set(said)
    assert json.loads(said) == {"body": "grüß\x9b\u2028\x7f\n"}


def test_columns_that_may_go_go_from_the_right() -> None:
    columns = [
        Column("A"), Column("B", room=Room.LEFT_OUT), Column("C", room=Room.LEFT_OUT), Column("D", room=Room.CUT),
    ]
    rows = [["a" * 10, "b" * 10, "c" * 10, "d" * 1000]]
    assert [fitting(columns, rows, width) for width in (200, 60, 50, 36, 5)] == [
        [0, 1, 2, 3], [0, 1, 3], [0, 1, 3], [0, 3], [0, 3],
    ]
