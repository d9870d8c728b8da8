"""`angelhair queue`: every verb, its JSON, its lines, its questions, its refusals."""

from __future__ import annotations

import pytest

from angelhair import Client
from angelhair.errors import QueueNotFound
from tests.cli.command import Angelhair


def test_create_reads_settings_as_what_they_are(angelhair: Angelhair, client: Client, name: str) -> None:
    said = angelhair(
        "queue", "create", name, "visibility_timeout=2m", "retention=none", "max_deliveries=5",
        f"dead_letter_queue={name}-dead", "archive=yes", "delay=1.5", "bucket_size=50", "--json",
    )
    wanted = {"visibility_timeout": 120, "retention": None, "max_deliveries": 5, "dead_letter_queue": f"{name}-dead",
              "archive": True, "delay": 1.5, "bucket_size": 50}
    assert wanted.items() <= said.json["settings"].items()
    assert wanted.items() <= client.queue(name).settings.items()


def test_settings_and_prefixes_behind_options(angelhair: Angelhair, name: str) -> None:
    said = angelhair("queue", "create", name, "--json", "visibility_timeout=2m", "lanes=2")
    assert {"visibility_timeout": 120, "lanes": 2}.items() <= said.json["settings"].items()
    assert angelhair("queue", "list", "--json", name).json == {"queues": [name]}


def test_create_again_is_as_good_and_with_other_settings_refused(angelhair: Angelhair, queue: str) -> None:
    assert angelhair("queue", "create", queue).out == ""
    said = angelhair("queue", "create", queue, "lanes=2", expect=1)
    assert said.err == (
        f"angelhair queue create: queue {queue!r} exists with another value of lanes; what is left out counts as its "
        f"default. PATCH /queues/{queue} (angelhair queue set) changes settings\n"
    )


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("visibility_timeot=3", "a queue has no setting 'visibility_timeot'; did you mean visibility_timeout?"),
        ("delay", "'delay' is not NAME=VALUE, as in visibility_timeout=30s"),
        ("delay=soon", "delay: 'soon' is not a duration: seconds, or a number with ms, s, m, h, d or w behind it, such "
         "as 30, 1.5s, 5m"),
        ("archive=perhaps", "archive: 'perhaps' is neither true nor false"),
        ("lanes=none", "lanes: 'none' is not a whole number"),
    ],
)
def test_a_wrong_setting_is_wrong_usage(angelhair: Angelhair, setting: str, complaint: str) -> None:
    said = angelhair("queue", "set", "orders", setting, expect=2)
    assert (said.out, said.err) == ("", f"angelhair queue set: {complaint}\n")


def test_a_value_that_the_server_refuses_is_named(angelhair: Angelhair, queue: str) -> None:
    said = angelhair("queue", "set", queue, "lanes=65", expect=1)
    assert said.err.startswith("angelhair queue set: lanes: ")


def test_set_changes_these_and_leaves_the_others(angelhair: Angelhair, client: Client, name: str) -> None:
    client.create_queue(name, delay=3)
    said = angelhair("queue", "set", name, "visibility_timeout=45", "retention=none")
    assert ["visibility_timeout", "45", "can change"] in said.rows
    settings = client.queue(name).settings
    assert (settings["visibility_timeout"], settings["retention"], settings["delay"]) == (45, None, 3)


def test_list_by_prefix_short_and_long(angelhair: Angelhair, client: Client, name: str) -> None:
    for ending in ("b", "a"):
        client.create_queue(f"{name}-{ending}")
    client.put(f"{name}-a", b"x")
    assert angelhair("queue", "list", f"{name}-").rows == [[f"{name}-a"], [f"{name}-b"]]
    assert angelhair("queue", "list", f"{name}-", "--json").json == {"queues": [f"{name}-a", f"{name}-b"]}
    first, second = angelhair("queue", "list", f"{name}-", "--long").rows
    assert (first[:5], first[6]) == ([f"{name}-a", "1", "0", "0", "0"], "true")
    assert second == [f"{name}-b", "0", "0", "0", "0", "-", "true"]
    shown = angelhair("queue", "list", f"{name}-", "-l", "--json").json["queues"]
    assert [(each["name"], each["statistics"]["visible"]) for each in shown] == [(f"{name}-a", 1), (f"{name}-b", 0)]
    assert angelhair("queue", "list", f"{name}-nothing").out == ""


def test_show(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"x")
    shown = angelhair("queue", "show", queue, "--json").json
    assert set(shown) == {"name", "kind", "settings", "changeable", "fixed", "warnings", "statistics", "created_at",
                          "changed_at"}
    assert shown["statistics"]["visible"] == 1
    assert shown["created_at"].endswith("Z")
    rows = {row[0]: row[1:] for row in angelhair("queue", "show", queue).rows}
    assert rows["bucket_size"] == ["1000", "fixed"]
    assert rows["visible"] == ["1", "-"]
    assert (shown["warnings"], "warning" in rows) == ([], False)


def test_a_dead_letter_queue_that_is_not_there_is_said(angelhair: Angelhair, client: Client, queue: str) -> None:
    warning = f"there is no queue {queue}-dead, the dead_letter_queue: max_deliveries does nothing until it is made"
    for settings, said in (
        ({"max_deliveries": 3}, ["max_deliveries does nothing without a dead_letter_queue"]),
        ({"dead_letter_queue": f"{queue}-dead"}, [warning]),
        ({"max_deliveries": None}, ["dead_letter_queue does nothing without max_deliveries"]),
    ):
        client.change_queue(queue, **settings)
        assert angelhair("queue", "show", queue, "--json").json["warnings"] == said
    client.change_queue(queue, max_deliveries=3)
    assert ["warning", warning, "-"] in angelhair("queue", "show", queue).rows
    assert ["warning", warning, "-"] in angelhair("queue", "set", queue, "delay=1").rows
    # In full under the table, whose first column stays whole.
    lines = angelhair.on_terminal("queue", "show", queue, columns=80).out.splitlines()
    assert lines[-1] == f"warning: {warning}"
    assert {"visibility_timeout", "dead_letter_queue"} <= {line.split()[0] for line in lines if line.split()}
    client.create_queue(f"{queue}-dead")
    assert client.queue(queue).warnings == ()


def test_who_makes_a_queue_is_warned(angelhair: Angelhair, name: str) -> None:
    said = angelhair("queue", "create", name, "max_deliveries=3")
    warning = "max_deliveries does nothing without a dead_letter_queue"
    assert (said.out, said.err) == ("", f"angelhair queue create: warning: {warning}\n")
    assert angelhair("queue", "create", name, "max_deliveries=3", "--json").json["warnings"] == [warning]


def test_names_are_whole_on_a_narrow_terminal(angelhair: Angelhair, client: Client, name: str) -> None:
    long = name + "x" * (60 - len(name))
    client.create_queue(long, max_deliveries=3, dead_letter_queue=f"{long}-dead")
    for columns in (40, 80):
        said = angelhair.on_terminal("queue", "list", long, "--long", columns=columns).out
        assert (long in said, "VISIBLE" in said) == (True, columns == 80)
        assert "repair_timeout" in angelhair.on_terminal("queue", "show", long, columns=columns).out


def test_a_queue_that_is_not_there(angelhair: Angelhair, name: str) -> None:
    for verb in (["show", name], ["set", name, "delay=1"], ["delete", name], ["purge", name]):
        assert f"there is no queue '{name}'" in angelhair("queue", *verb, expect=1).err


def test_delete_and_purge_where_nobody_sits(angelhair: Angelhair, client: Client, queue: str) -> None:
    client.put(queue, b"x")
    assert angelhair("queue", "purge", queue, "--json").json == {"purged": [queue]}
    assert client.queue(queue).statistics.visible == 0
    assert angelhair("queue", "delete", queue).out == ""
    with pytest.raises(QueueNotFound):
        client.queue(queue)


@pytest.mark.parametrize(("verb", "done"), [("delete", "deleted"), ("purge", "purged")])
def test_a_terminal_is_asked_first(angelhair: Angelhair, client: Client, queue: str, verb: str, done: str) -> None:
    client.put(queue, b"x")
    said = angelhair.on_terminal("queue", verb, queue, typed=b"\n", expect=1)
    assert f"{verb} queue {queue} on {angelhair.url}? [y/N]" in said.out
    assert f"nothing was {done}" in said.out
    assert client.queue(queue).statistics.visible == 1
    assert f"queue {queue} is {done}" in angelhair.on_terminal("queue", verb, queue, typed=b"y\n").out


def test_yes_asks_nothing(angelhair: Angelhair, queue: str) -> None:
    assert "[y/N]" not in angelhair.on_terminal("queue", "delete", queue, "--yes").out
