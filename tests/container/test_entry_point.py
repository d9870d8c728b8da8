"""A13: `docker run IMAGE …` in every form, with the real command and without Docker."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any
from urllib.request import urlopen

import pytest

from tests.cli.command import without_the_mode
from tests.container.tools import PATIENCE_SECONDS, Image

NOBODY = {"CONTACT_POINTS": "127.0.0.1", "CASSANDRA_PORT": "1"}
"""Nothing listens on port 1."""

UNREACHABLE = "Cassandra cannot be reached at 127.0.0.1 port 1: Connection refused\n"


def in_force(image: Image, *words: str, **said: str) -> dict[str, Any]:
    ran = image.run("config", "--json", *words, **said)
    assert (ran.returncode, ran.stderr) == (0, "")
    return {name: one["value"] for name, one in json.loads(ran.stdout)["settings"].items()}


def stopped(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """As `docker stop` does it."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def address_in(line: str) -> str:
    (address,) = [word for word in line.split() if word.startswith("http")]
    return address


@pytest.mark.parametrize("words", [[], [""], ["--port", "0"], ["serve"], ["angelhair", "serve"]], ids=" ".join)
def test_a13_serving_is_what_it_does_by_itself(words: list[str], image: Image) -> None:
    with image.running(*words, ANGELHAIR_PORT="0") as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        with urlopen(f"{address_in(ready)}/queues", timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 200
        code, out, err = stopped(process)
    assert (code, out, without_the_mode(err)) == (0, "", "")
    assert (image.data / "angelhair-data" / "angelhair.db").is_file()


def test_as_the_image_sets_it_serving_is_open_and_says_so_loudly(image: Image) -> None:
    with image.running(ANGELHAIR_PORT="0", ANGELHAIR_HOST="0.0.0.0", ANGELHAIR_OPEN="true") as process:
        assert process.stdout is not None
        assert "0.0.0.0" in process.stdout.readline()
        code, _, err = stopped(process)
    assert code == 0
    assert "EVERYBODY WHO CAN REACH THIS PORT" in err


def test_signals_reach_the_server_itself(image: Image) -> None:
    """The shell has gone: the server has its process id, which is 1 in a container."""
    with image.running("python3", "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)") as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid


def test_a13_the_ancestors_line_goes_to_cassandra(image: Image) -> None:
    empty = dict.fromkeys(["CLUSTER_NAME", "USE_SSL", "DATA_CENTER"], "")
    ran = image.run(**NOBODY, **empty, ANGELHAIR_PORT="0", KEYSPACE="queues", USERNAME="u", PASSWORD="p")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.endswith(UNREACHABLE)
    assert list(image.data.iterdir()) == [], "nothing was put into a file in its place"


@pytest.mark.parametrize("words", [["bootstrap"], ["bootstrap", "-createKeyspace"], ["bootstrap", "--create-keyspace"]],
                         ids=" ".join)
def test_a13_the_ancestors_bootstrap_goes_to_cassandra(words: list[str], image: Image) -> None:
    ran = image.run(*words, **NOBODY, KEYSPACE="queues", USERNAME="u", PASSWORD="p")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"angelhair bootstrap: {UNREACHABLE}")


def test_a13_a_mounted_file_is_read(image: Image) -> None:
    image.conf.mkdir()
    (image.conf / "configuration.yml").write_text("contact_points: [127.0.0.1]\ncassandra_port: 1\nkeyspace: queues\n")
    settings = in_force(image)
    assert (settings["contact_points"], settings["keyspace"]) == (["127.0.0.1"], "queues")
    for words in ([], ["bootstrap"]):
        ran = image.run(*words, ANGELHAIR_PORT="0")
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr.endswith(UNREACHABLE)


def test_variables_go_before_the_mounted_file(image: Image) -> None:
    image.conf.mkdir()
    (image.conf / "a.yaml").write_text("contact_points: [a]\nkeyspace: of_the_file\n")
    assert in_force(image, KEYSPACE="of_the_variable")["keyspace"] == "of_the_variable"
    assert in_force(image, KEYSPACE="")["keyspace"] == "of_the_file"


def test_a_mistake_ends_it_before_anything_starts(image: Image) -> None:
    ran = image.run(**NOBODY, CONSISTENCY_LEVEL="LOCAL_QUOURUM")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("angelhair serve: CONSISTENCY_LEVEL: 'LOCAL_QUOURUM' is none of ")
    assert ran.stderr.count("\n") == 1


def test_two_stores_at_once_end_it(image: Image) -> None:
    ran = image.run("--data", "queues", **NOBODY)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "a server has one store" in ran.stderr
    assert list(image.data.iterdir()) == []


def test_flags_with_blanks_and_stars_arrive_as_they_are(image: Image) -> None:
    (image.data / "a file").write_text("")
    assert in_force(image, "--application-name", "two words *")["application_name"] == "two words *"


@pytest.mark.parametrize("word", ["--version", "--help", "-h"])
def test_asking_about_the_command_does_not_serve(word: str, image: Image) -> None:
    ran = image.run(word)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("angelhair " if word == "--version" else "usage: angelhair ")


def test_an_unknown_command_is_the_commands_own_complaint(image: Image) -> None:
    ran = image.run("bootsrap")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "bootsrap" in ran.stderr


@pytest.mark.parametrize(
    "words",
    [["sh", "-c", 'echo "$1"', "sh", "a b"], ["python3", "-c", "print('a b')"], ["/bin/echo", "a b"]],
    ids=" ".join,
)
def test_other_programs_can_be_run_for_a_look_around(words: list[str], image: Image) -> None:
    ran = image.run(*words)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "a b\n", "")


def test_the_exit_code_is_the_programs(image: Image) -> None:
    assert image.run("sh", "-c", "exit 7").returncode == 7
