"""The command as a whole: help, wrong usage, servers that are not there, and completion in shells."""

from __future__ import annotations

import argparse
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from angelhair import errors
from angelhair.cli.exits import word_of
from angelhair.cli.main import COMMANDS, build_parser, main
from angelhair.cli.parsers import due, duration, whole
from angelhair.server import installing
from angelhair.server.rest.errors import CODES
from tests.cli.command import COMMAND, ROOT, Angelhair, environment

NOWHERE = "http://127.0.0.1:9"
"""The port of `discard`, on which nobody listens."""


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def leaves() -> list[argparse.ArgumentParser]:
    return [parser for parser in parsers(build_parser()) if parser._subparsers is None]


def test_summaries_are_those_of_the_commands() -> None:
    """main.py has them a second time, so that it needs to import nothing for the list."""
    (commands,) = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    assert [(choice.dest, choice.help) for choice in commands._choices_actions] == [
        (command.name, command.summary) for command in COMMANDS
    ]


@pytest.mark.parametrize("parser", leaves(), ids=lambda parser: parser.prog)
def test_every_help_is_printed(parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*parser.prog.split()[1:], "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {parser.prog}")


@pytest.mark.parametrize("parser", leaves(), ids=lambda parser: parser.prog)
def test_every_help_has_an_example_that_parses(parser: argparse.ArgumentParser) -> None:
    """The examples are what people copy. Of a pipeline, the part that is ours is looked at."""
    assert parser.epilog is not None
    lines = [line.strip() for line in parser.epilog.splitlines()[1:]]
    ours = [line for line in lines if parser.prog in line]
    assert ours, "no example shows this command"
    for line in ours:
        words = shlex.split(line[line.index(parser.prog):].partition(" | ")[0].partition(" > ")[0].partition(");")[0])
        assert build_parser({words[1]}).parse_args(words[1:]).program == parser.prog


@pytest.mark.parametrize("command", ["account create", "account delete", "key create", "key list", "key disable"])
def test_usage_of_what_works_on_a_store_is_short(command: str) -> None:
    """Fifteen lines of what may be said about a Cassandra hid what the command itself takes."""
    said = subprocess.run(
        [*COMMAND, *command.split(), "--help"], env=environment(COLUMNS="80"), capture_output=True, text=True,
        check=True,
    ).stdout
    usage, _, rest = said.partition("\n\n")
    assert len(usage.splitlines()) <= 3 and usage.endswith(" [--data DIR | --contact-points A,B,… …]")
    assert "--ssl-key FILE" in rest


def test_the_list_of_commands_needs_none_of_them() -> None:
    """What keeps `angelhair --help` quick: neither the server, nor the client, nor the simulator is imported."""
    program = "import sys; from angelhair.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    program += "print([name for name in sys.modules if name.split('.')[0] in ('httpx', 'rich', 'apsw', 'asyncio')\n"
    program += "       or name.startswith(('angelhair.server', 'angelhair.client', 'angelhair.simulation'))])"
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "angelhair: the following arguments are required: COMMAND; see angelhair --help"),
        (["queue"], "angelhair queue: the following arguments are required: COMMAND; see angelhair queue --help"),
        (["qeue", "list"], "angelhair: there is no command 'qeue' (did you mean queue?); see angelhair --help"),
        (["queue", "lst"], "angelhair queue: there is no command 'lst' (did you mean list?); see angelhair queue "
         "--help"),
        (["get"], "angelhair get: the following arguments are required: QUEUE; see angelhair get --help"),
        (["get", "q", "-n", "0"], "angelhair get: argument --count/-n: '0' is not a whole number between 1 and 1000; "
         "see angelhair get --help"),
        (["simulate", "--replay", "-1"], "angelhair simulate: argument --replay: '-1' is not a whole number from 0 on; "
         "see angelhair simulate --help"),
        (["simulate", "--seeds", "0"], "angelhair simulate: argument --seeds: '0' is not a whole number from 1 on; see "
         "angelhair simulate --help"),
        (["get", "q", "--vis", "3"], "angelhair get: unrecognized arguments: --vis 3; see angelhair get --help"),
        (["serve", "--hots", "::1"], "angelhair serve: unrecognized arguments: --hots ::1 (did you mean --host?); see "
         "angelhair serve --help"),
        (["queue", "list", "--sever=x"], "angelhair queue list: unrecognized arguments: --sever=x (did you mean "
         "--server?); see angelhair queue list --help"),
        (["queue", "create"], "angelhair queue create: the following arguments are required: QUEUE; see angelhair "
         "queue create --help"),
        (["queue", "create", "q", "--nope"], "angelhair queue create: unrecognized arguments: --nope; see angelhair "
         "queue create --help"),
        (["--colour", "serve"], "angelhair: unrecognized arguments: --colour; see angelhair --help"),
        (["--url", "http://here", "queue", "list"], "angelhair: unrecognized arguments: --url; see angelhair --help"),
        (["get", "q", "--server", "orders"], "angelhair get: --server: 'orders' is not the address of a server, such "
         "as http://127.0.0.1:9324"),
        (["get", "q", "--server", "http://h:port"], "angelhair get: --server: 'http://h:port' is not the address of a "
         "server, such as http://127.0.0.1:9324"),
        (["peek", "q", "--ca", "/nowhere/ca.pem"], "angelhair peek: --ca: /nowhere/ca.pem cannot be used: No such file "
         "or directory"),
    ],
)
def test_wrong_usage_is_one_line_and_2(arguments: list[str], complaint: str) -> None:
    ended = subprocess.run([*COMMAND, *arguments], env=environment(), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", complaint + "\n")


def test_an_unknown_command_names_those_there_are() -> None:
    ended = subprocess.run([*COMMAND, "zzz"], env=environment(), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        2, f"angelhair: there is no command 'zzz' (there are {', '.join(command.name for command in COMMANDS)}); see "
        "angelhair --help\n",
    )


def test_a_server_that_is_not_there_is_69(name: str) -> None:
    nowhere = Angelhair(NOWHERE)
    for arguments in (["queue", "list"], ["put", name, "x"], ["get", name], ["peek", name], ["dead", "list", name],
                      ["repair", "show", name], ["load", name]):
        said = nowhere(*arguments, "--retry", "0", expect=69)
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert f"unavailable, nothing was done: {NOWHERE}: " in said.err


def test_something_that_is_no_server_of_ours() -> None:
    """It takes the connection and says nothing of sense: nobody knows what it did."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        strange = Angelhair(f"http://127.0.0.1:{listening.getsockname()[1]}")
        with subprocess.Popen(
            [*COMMAND, "put", "orders", "x", "--retry", "0"], env=environment(ANGELHAIR_SERVER=strange.url),
            stderr=subprocess.PIPE,
        ) as running:
            taken, _ = listening.accept()
            taken.recv(65536)
            taken.sendall(b"220 smtp.example ready\r\n")
            taken.close()
            assert running.stderr is not None
            said = running.stderr.read().decode()
    assert (running.returncode, said.count("\n")) == (75, 1)
    assert said.startswith("angelhair put: outcome unknown, it may have happened: ")


def test_flag_before_variable(angelhair: Angelhair, queue: str) -> None:
    assert angelhair("queue", "list", queue, ANGELHAIR_SERVER_IGNORED="x").rows == [[queue]]
    assert Angelhair(NOWHERE)("queue", "list", queue, "--server", angelhair.url).rows == [[queue]]


def test_the_server_may_be_said_before_the_command(angelhair: Angelhair, queue: str) -> None:
    assert Angelhair(NOWHERE)("--server", angelhair.url, "queue", "list", queue).rows == [[queue]]
    assert Angelhair(NOWHERE)(f"--server={angelhair.url}", "put", queue, "--", "--json").out == "0-0\n"
    assert Angelhair(NOWHERE)("--server", expect=2).err.endswith("see angelhair --help\n")


def test_a_port_that_is_taken_says_how_to_name_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = Angelhair(NOWHERE)("serve", "--port", port, "--data", str(tmp_path), expect=1)
    assert said.err == (f"angelhair serve: 127.0.0.1:{port} cannot be listened on: Address already in use; "
                        "--port names another\n")


def test_where_make_is_likely_it_says_so_by_make(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = Angelhair(NOWHERE)("serve", "--hints", "--port", str(port), "--data", str(tmp_path), expect=1)
    assert said.err.endswith(f" in use; make serve ARGS='--port {port + 1}' takes another\n")


@pytest.mark.parametrize("library", ["uvloop", "httptools", "msgspec", "prometheus_client"])
def test_serving_without_its_libraries_says_what_to_install(library: str, tmp_path: Path) -> None:
    """As after `pip install angelhair[cassandra]`, which is not enough to serve."""
    (tmp_path / f"{library}.py").write_text(f"raise ModuleNotFoundError(name={library!r})")
    said = Angelhair(NOWHERE)("serve", "--port", "0", "--data", str(tmp_path / "data"), expect=1,
                              PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}")
    assert said.err == (f"angelhair serve: {library} is not installed, which serving needs; run `make setup` and use "
                        ".venv/bin/angelhair\n")


def test_what_to_install_away_from_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "checkout", lambda: None)
    assert installing.to_install() == "pip install angelhair"
    assert installing.to_install("server") == "pip install 'angelhair[server]'"


# --- kinds of arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86400), ("1w", 604800), ("250ms", 0.25), ("1.5", 1.5),
     (".5h", 1800), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1", "1e3", "inf", "nan", "1_0", "٣", "5 m", "5M", "1h30m", "1.2.3"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
        duration(text)


def test_due_times() -> None:
    wanted = datetime(2026, 11, 15, 13, tzinfo=UTC)
    assert due("2026-11-15T13:00:00Z") == due("2026-11-15T14:00+01:00") == due("1794747600") == wanted
    assert due("2026-11-15 13:00").utcoffset() == datetime(2026, 11, 15, 13).astimezone().utcoffset()
    for text in ("tomorrow", "", "1.2.3", "2026-13-01"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a time"):
            due(text)
    for text in ("99999999999999", "4102444801", "9" * 400, "0001-01-01T00:00:00+14:00"):
        with pytest.raises(argparse.ArgumentTypeError, match="does not lie between 1970 and 2100"):
            due(text)


def test_whole_numbers() -> None:
    assert whole(1, 3)("3") == 3
    for text in ("0", "4", "-1", "1.0", "²", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="between 1 and 3"):
            whole(1, 3)(text)


# --- completion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    said = Angelhair(NOWHERE)("completion", shell)
    for word in ("redrive", "move-back", "content-type", "contact-points"):
        assert word in said.out


def test_bash_completes_commands_options_and_queues(angelhair: Angelhair, queue: str, tmp_path: Path) -> None:
    script = tmp_path / "angelhair.bash"
    script.write_bytes(angelhair("completion", "bash").raw)
    subprocess.run(["bash", "-n", str(script)], check=True)
    wrapper = tmp_path / "angelhair"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m angelhair "$@"\n')
    wrapper.chmod(0o755)

    def completed(*words: str) -> list[str]:
        program = (
            f"source {script}; COMP_WORDS=(angelhair {' '.join(words)}); COMP_CWORD={len(words)}; "
            f"_shtab_angelhair angelhair '{words[-1]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        variables = environment(ANGELHAIR_SERVER=angelhair.url)
        variables["PATH"] = f"{tmp_path}:{variables['PATH']}"
        ended = subprocess.run(["bash", "-c", program], env=variables, capture_output=True, text=True, check=False)
        return ended.stdout.split()

    assert completed("pe") == ["peek"]
    assert "redrive" in completed("dead", "r")
    assert "--content-type" in completed("put", "--cont")
    assert completed("peek", queue[:6]) == [queue]
    assert completed("serve", "--log-level", "de") == ["debug"]


def test_codes_of_failed_acks_are_those_of_rest() -> None:
    for error in (errors.Unavailable(""), errors.OutcomeUnknown(""), errors.InvalidReceipt(""), errors.StaleReceipt(""),
                  errors.InvalidRequest("a", "b"), errors.QueueNotFound("a", "b"), errors.QueueExists("a", "b", ())):
        assert word_of(error) in CODES
