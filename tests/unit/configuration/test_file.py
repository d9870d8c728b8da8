"""A13: a YAML file, mounted or named, alone or in groups; what YAML guesses is not taken for what was said."""

from __future__ import annotations

from pathlib import Path

import pytest

from angelhair import limits
from tests.unit.configuration.tools import NOWHERE, conf, problems, read

FLAT = """\
contact_points: [10.0.0.1, 10.0.0.2]
keyspace: queues
cassandra_port: 19042
username: u
password: "0123"
use_ssl: true
ssl_port: 19043
application_name: orders
stop_grace_seconds: 2.5
"""

GROUPED = """\
cassandra:
  contact_points: "10.0.0.1, 10.0.0.2"
  keyspace: queues
  port: 19042
  username: u
  password: "0123"
  use_ssl: true
  ssl_port: 19043
telling:
  application_name: orders
server:
  stop_grace_seconds: 2.5
"""

ANCESTORS = """\
cassandra:
  contactPoints: [10.0.0.1, 10.0.0.2]
  keyspace: queues
  port: 19042
  authProvider: {type: plainText, username: u, password: "0123"}
  ssl: {port: 19043}
application_name: orders
stop_grace_seconds: 2.5
"""


@pytest.mark.parametrize("text", [FLAT, GROUPED, ANCESTORS], ids=["flat", "grouped", "ancestors"])
def test_a13_a_file_says_it_all(text: str, tmp_path: Path) -> None:
    resolved = read(directory=conf(tmp_path, text))
    settings = resolved.settings
    assert settings.contact_points == ("10.0.0.1", "10.0.0.2")
    assert (settings.keyspace, settings.username, settings.password) == ("queues", "u", "0123")
    assert (settings.use_ssl, settings.cassandra_port, settings.ssl_port) == (True, 19042, 19043)
    assert (settings.application_name, settings.stop_grace_seconds) == ("orders", 2.5)
    assert resolved.file == tmp_path / "angelhair.yaml"


def test_the_rest_of_the_ancestors_names(tmp_path: Path) -> None:
    text = ("cassandra:\n  contactPoints: [a]\n  clusterName: c\n  queryOptions: {consistencyLevel: QUORUM}\n"
            "  loadBalancingPolicy: {dataCenter: dc1}\n")
    settings = read(directory=conf(tmp_path, text)).settings
    assert (settings.cluster_name, settings.consistency_level, settings.data_center) == ("c", "QUORUM", "dc1")
    assert settings.use_ssl is False


def test_a_group_without_anything_in_it_says_nothing(tmp_path: Path) -> None:
    assert read(directory=conf(tmp_path, "cassandra:\nserver: {}\nport:\nhost: ''\n")).settings.port == 9324


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    resolved = read(directory=conf(tmp_path, "# nothing yet\n"))
    assert resolved.settings.port == 9324
    assert resolved.file == tmp_path / "angelhair.yaml"


# --- which file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["angelhair.yaml", "configuration.yml", "A.YML"])
def test_the_only_file_is_taken_whatever_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "README.txt").write_text("not this one")
    (tmp_path / ".hidden.yaml").write_text("nor: this\n")
    (tmp_path / "folder.yaml").mkdir()
    assert read(directory=conf(tmp_path, "port: 1001\n", name)).settings.port == 1001


def test_two_files_are_one_too_many(tmp_path: Path) -> None:
    conf(tmp_path, "port: 1001\n", "b.yml")
    conf(tmp_path, "port: 1002\n", "a.yaml")
    assert problems(directory=tmp_path) == (
        f"{tmp_path}: has 2 files in it (a.yaml, b.yml), and exactly one is wanted",
    )


def test_a_directory_without_a_file_is_a_mistake(tmp_path: Path) -> None:
    assert problems(directory=tmp_path) == (
        f"{tmp_path}: has no .yaml or .yml file in it, and exactly one is wanted",
    )


def test_without_the_directory_there_is_no_file() -> None:
    assert read(directory=NOWHERE).file is None


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_a_file_or_a_directory_can_be_named(by: str, tmp_path: Path) -> None:
    named, mounted = tmp_path / "named", tmp_path / "mounted"
    for number, directory in enumerate((named, mounted), start=1001):
        directory.mkdir()
        conf(directory, f"port: {number}\n", "x.yaml")
    for place in (named / "x.yaml", named):
        if by == "flag":
            resolved = read({"ANGELHAIR_CONFIG": "/not/this"}, mounted, config=str(place))
        else:
            resolved = read({"ANGELHAIR_CONFIG": str(place)}, mounted)
        assert (resolved.settings.port, resolved.file) == (1001, named / "x.yaml")


def test_a_named_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    assert problems(config=str(missing)) == (f"{missing}: cannot be read: No such file or directory",)


# --- placeholders ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key", "variable"),
    [
        ("application_name: ${env.NAME}", "application_name", "ANGELHAIR_APPLICATION_NAME"),
        ("contact_points: [10.0.0.1, '${env.SECOND}']", "contact_points", "ANGELHAIR_CONTACT_POINTS"),
        ("password: a${env.PASSWORD}z", "password", "ANGELHAIR_PASSWORD"),
        ("password_file: ${HOME}/secret", "password_file", "ANGELHAIR_PASSWORD_FILE"),
        ("cassandra: {authProvider: {username: '${env.USERNAME}'}}", "cassandra.authProvider.username",
         "ANGELHAIR_USERNAME"),
        ("port: ${env.PORT}", "port", "ANGELHAIR_PORT"),
    ],
)
def test_nothing_fills_a_placeholder_in(text: str, key: str, variable: str, tmp_path: Path) -> None:
    directory = conf(tmp_path, f"{text}\nkeyspace: queues\n")
    assert problems(directory=directory) == (
        f"{tmp_path / 'angelhair.yaml'}: {key}: has a placeholder in it, and nothing fills it in here; leave the key "
        f"out and set the variable {variable} itself",
    )


def test_a_password_in_a_file_of_its_own_may_look_like_one(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a${b}\n")
    text = f"contact_points: a\nusername: u\npassword_file: {tmp_path / 'secret'}\n"
    assert read(directory=conf(tmp_path, text)).settings.password == "a${b}"


# --- what YAML guesses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["no", "on", "yes", "off", "y", "n"])
def test_norway_is_a_name(word: str, tmp_path: Path) -> None:
    assert read(directory=conf(tmp_path, f"contact_points: {word}\nkeyspace: {word}\n")).settings.keyspace == word


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("port: 09324", "port: '09324' is a text in YAML, and a whole number (plain digits) is wanted"),
        ("port: 022154", "port: '022154' is a text in YAML, and a whole number (plain digits) is wanted"),
        ("port: 0x246C", "port: '0x246C' is a text in YAML, and a whole number (plain digits) is wanted"),
        ("port: 9_324", "port: '9_324' is a text in YAML, and a whole number (plain digits) is wanted"),
        ("port: 22:22", "port: '22:22' is a text in YAML, and a whole number (plain digits) is wanted"),
        ("port: '9324'", "port: '9324' is a text in YAML, and a whole number (plain digits) is wanted"),
        ("port: 9324.0", "port: 9324.0 is a number in YAML, and a whole number (plain digits) is wanted"),
        ("port: true", "port: true is true or false in YAML, and a whole number (plain digits) is wanted"),
        ("port: [1]", "port: what stands there is a list in YAML, and a whole number (plain digits) is wanted"),
        ("port: 70000", "port: 70000 is not a whole number from 0 to 65535"),
        ("open: yes", "open: 'yes' is a text in YAML, and true or false (without quotes) is wanted"),
        ("open: 1", "open: 1 is a number in YAML, and true or false (without quotes) is wanted"),
        ("application_name: 12", "application_name: 12 is a number in YAML, and text is wanted; put it in quotes"),
        ("application_name: true", "application_name: true is true or false in YAML, and text is wanted; "
                                   "put it in quotes"),
        ("stop_grace_seconds: soon", "stop_grace_seconds: 'soon' is a text in YAML, and a number of seconds is wanted"),
        ("contact_points: [1]", "contact_points: what stands there is a list in YAML, and a list of addresses or a "
                                "text with commas is wanted"),
        ("contact_points: {a: b}", "contact_points: what stands there is a group of keys in YAML, and a list of "
                                   "addresses or a text with commas is wanted"),
        ("log_level: 3", "log_level: 3 is a number in YAML, and debug|info|warning|error is wanted"),
        ("prot: 1", "prot: there is no such setting; did you mean port?"),
        ("KEYSPACE: k", "KEYSPACE: there is no such setting; did you mean keyspace?"),
        ("server: {prot: 1}", "server.prot: there is no such setting; did you mean server.port?"),
        ("embedded: {nope: 1}", "embedded.nope: there is no such setting"),
        ("cassandra: 3", "cassandra: is a group of keys, and no value"),
        ("1: 2", "1: there is no such setting"),
        ("port: 1\nport: 2", "port: stands there twice, again on line 2"),
        ("port: 1\nserver: {port: 2}", "server.port: was said already, as port"),
        ("port: [", "line 2: is not YAML; values with special characters need quotes"),
        ("a: b: c", "line 1: is not YAML; values with special characters need quotes"),
        ("- port", "is not a list of `key: value` lines"),
        ("port: 1\n---\nport: 2", "line 2: is not YAML; values with special characters need quotes"),
        ("port: !!python/name:os.system x", "line 1: is not YAML; values with special characters need quotes"),
        ("[" * 5_000, "is not YAML"),
    ],
)
def test_a_wrong_file_is_named_with_the_key(line: str, complaint: str, tmp_path: Path) -> None:
    assert problems(directory=conf(tmp_path, line + "\n")) == (f"{tmp_path / 'angelhair.yaml'}: {complaint}",)


def test_a_file_that_holds_itself_is_read_to_the_end(tmp_path: Path) -> None:
    (problem,) = problems(directory=conf(tmp_path, "cassandra: &all {cassandra: *all}\n"))
    assert "cassandra.cassandra: there is no such setting" in problem


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    (problem,) = problems(directory=conf(tmp_path, "#" * (limits.CONFIGURATION_FILE_BYTES + 1)))
    assert problem.endswith(f"is larger than {limits.CONFIGURATION_FILE_BYTES} bytes")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"port: \xff\n")
    assert problems(directory=tmp_path) == (f"{tmp_path / 'a.yaml'}: is not UTF-8",)


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfport: 1001\n")
    assert read(directory=tmp_path).settings.port == 1001
