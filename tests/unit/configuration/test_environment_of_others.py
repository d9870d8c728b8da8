"""Variables that other programs set too keep no server from starting, and do not slip into its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from angelhair.settings import Settings
from tests.unit.configuration.tools import conf, problems, read

EMBEDDED = Settings(data="angelhair-data")


def test_a_login_name_without_contact_points_is_nothing() -> None:
    assert read({"USERNAME": "alice"}).settings == EMBEDDED
    assert read({"USERNAME": "alice", "PASSWORD": "hers"}).settings == EMBEDDED


def test_a_login_name_without_a_password_is_not_taken_for_cassandras_user() -> None:
    resolved = read({"USERNAME": "alice", "CONTACT_POINTS": "a"})
    assert resolved.settings.username is None
    assert [str(one.origin) for one in resolved.ignored] == ["USERNAME"]


def test_a_login_name_does_not_push_the_files_user_aside(tmp_path: Path) -> None:
    directory = conf(tmp_path, "contact_points: [a]\nusername: queue\npassword: secret\n")
    settings = read({"USERNAME": "alice"}, directory).settings
    assert (settings.username, settings.password) == ("queue", "secret")


def test_the_own_name_of_the_variable_needs_no_password() -> None:
    assert read({"ANGELHAIR_USERNAME": "u", "CONTACT_POINTS": "a"}).settings.username == "u"


def test_a_password_file_makes_a_pair_too(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("p\n")
    by_flag = read({"USERNAME": "u", "CONTACT_POINTS": "a"}, password_file=str(tmp_path / "secret"))
    by_variable = read({"USERNAME": "u", "CONTACT_POINTS": "a", "ANGELHAIR_PASSWORD_FILE": str(tmp_path / "secret")})
    assert [(one.settings.username, one.settings.password) for one in (by_flag, by_variable)] == [("u", "p")] * 2


def test_what_kubernetes_tells_of_services_is_not_taken_for_settings() -> None:
    told = {
        "CASSANDRA_PORT": "tcp://10.0.0.7:9042",
        "CASSANDRA_SERVICE_HOST": "10.0.0.7",
        "ANGELHAIR_PORT": "tcp://10.0.0.8:9324",
        "ANGELHAIR_PORT_9324_TCP": "tcp://10.0.0.8:9324",
        "ANGELHAIR_PORT_9324_TCP_ADDR": "10.0.0.8",
        "ANGELHAIR_PORT_9324_TCP_PORT": "9324",
        "ANGELHAIR_PORT_9324_TCP_PROTO": "tcp",
        "ANGELHAIR_SERVICE_HOST": "10.0.0.8",
        "ANGELHAIR_SERVICE_PORT": "9324",
        "ANGELHAIR_SERVICE_PORT_HTTP": "9324",
        "ANGELHAIR_BLUE_SERVICE_HOST": "10.0.0.9",
        "ANGELHAIR_BLUE_PORT": "tcp://10.0.0.9:9324",
    }
    resolved = read({**told, "CONTACT_POINTS": "a"})
    assert resolved.settings == Settings(contact_points=("a",))
    assert {str(one.origin) for one in resolved.ignored} == {"CASSANDRA_PORT", "ANGELHAIR_PORT"}


def test_a_service_address_gives_way_to_the_other_name() -> None:
    environment = {"CONTACT_POINTS": "a", "CASSANDRA_PORT": "tcp://10.0.0.7:9042", "ANGELHAIR_CASSANDRA_PORT": "19042"}
    assert read(environment).settings.cassandra_port == 19042


def test_variables_of_ours_that_are_no_settings_are_let_be() -> None:
    assert read({"ANGELHAIR_CACHE": "/a/directory", "ANGELHAIR_SERVER": "http://127.0.0.1:9324"}).settings == EMBEDDED


def test_an_unknown_variable_with_our_prefix_is_named() -> None:
    assert problems({"ANGELHAIR_FOO": "1", "ANGELHAIR_PROT": "1", "ANGELHAIR_XYZZY": "1"}) == (
        "ANGELHAIR_FOO: there is no such setting",
        "ANGELHAIR_PROT: there is no such setting; did you mean ANGELHAIR_PORT?",
        "ANGELHAIR_XYZZY: there is no such setting",
    )


def test_an_empty_unknown_variable_is_unset() -> None:
    assert read({"ANGELHAIR_XYZZY": ""}).settings == EMBEDDED


@pytest.mark.parametrize("environment", [{"KEYSPACE": "k"}, {"ANGELHAIR_KEYSPACE": "k"}])
def test_a_keyspace_without_contact_points_is_a_mistake_and_not_a_file(environment: dict[str, str]) -> None:
    """Else somebody's messages would go into a container's file system, and with it."""
    (problem,) = problems(environment)
    assert problem.startswith(f"{next(iter(environment))}: names a keyspace, but there are no contact points")
