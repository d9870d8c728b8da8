"""A13: flags over environment over file over defaults, and each value says where it is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from angelhair.server.configuration import Layer, serving_problem
from angelhair.server.configuration.checks import open_warning
from angelhair.settings import Settings, is_loopback
from tests.unit.configuration.tools import conf, problems, read


def test_a13_each_layer_gives_way_to_the_one_above(tmp_path: Path) -> None:
    directory = conf(tmp_path, "port: 1001\nworkers: 2\nlog_level: debug\n")
    environment = {"ANGELHAIR_PORT": "1002", "ANGELHAIR_WORKERS": "3"}
    resolved = read(environment, directory, port="1003")
    settings = resolved.settings
    assert (settings.port, settings.workers, settings.log_level, settings.log_format) == (1003, 3, "debug", "json")
    assert [(resolved.origins[name].layer, str(resolved.origins[name]))
            for name in ("port", "workers", "log_level", "log_format")] == [
        (Layer.FLAG, "--port"),
        (Layer.ENVIRONMENT, "ANGELHAIR_WORKERS"),
        (Layer.FILE, f"{directory / 'angelhair.yaml'}: log_level"),
        (Layer.DEFAULT, "default"),
    ]


def test_the_own_name_of_a_variable_goes_before_the_ancestors() -> None:
    resolved = read({"CONTACT_POINTS": "a", "ANGELHAIR_CONTACT_POINTS": "b"})
    assert resolved.settings.contact_points == ("b",)
    assert str(resolved.origins["contact_points"]) == "ANGELHAIR_CONTACT_POINTS"


def test_an_empty_variable_leaves_the_file_in_force(tmp_path: Path) -> None:
    assert read({"ANGELHAIR_PORT": ""}, conf(tmp_path, "port: 1001\n")).settings.port == 1001


def test_a_switch_can_be_turned_off_again() -> None:
    assert read({"ANGELHAIR_OPEN": "true"}, open=False).settings.open is False


def test_an_empty_flag_is_a_mistake() -> None:
    assert problems(host="") == ("--host: is empty",)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"port": "65536"}, "--port: '65536' is not a whole number from 0 to 65535"),
        ({"port": "-1"}, "--port: '-1' is not a whole number from 0 to 65535"),
        ({"workers": "0"}, "--workers: '0' is not a whole number from 1 to 64"),
        ({"stop_grace_seconds": "nan"}, "--stop-grace-seconds: 'nan' is not a number of seconds from 0 to 600"),
        ({"stop_grace_seconds": "601"}, "--stop-grace-seconds: '601' is not a number of seconds from 0 to 600"),
        ({"host": "127.0.0.1:80"}, "--host: '127.0.0.1:80' has a port in it, which is a setting of its own"),
        ({"otlp_endpoint": "there:4317"}, "--otlp-endpoint: 'there:4317' is not an http:// or https:// address"),
        ({"otlp_endpoint": "http://a:b"}, "--otlp-endpoint: 'http://a:b' is not an http:// or https:// address"),
        ({"tls_key": "k.pem"}, "--tls-key: is of no use without tls_certificate"),
        ({"application_name": "x" * 81}, f"--application-name: {'x' * 81!r} is longer than 80 characters"),
    ],
)
def test_a_wrong_flag_is_named(flags: dict[str, str], problem: str) -> None:
    assert problems(**flags) == (problem,)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    directory = conf(tmp_path, "prot: 1\nworkers: many\n")
    told = problems({"ANGELHAIR_LOG_LEVEL": "loud"}, directory, port="x")
    assert [problem.split(": ")[0] for problem in told] == [
        str(directory / "angelhair.yaml"), "--port", str(directory / "angelhair.yaml"), "ANGELHAIR_LOG_LEVEL",
    ]


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ({}, {"data": "d", "contact_points": "a"}),
        ({"CONTACT_POINTS": "a"}, {"data": "d"}),
        ({"CONTACT_POINTS": "a", "ANGELHAIR_DATA": "d"}, {}),
    ],
)
def test_two_stores_at_once_are_refused(environment: dict[str, str], flags: dict[str, str]) -> None:
    (problem,) = problems(environment, **flags)
    assert problem.endswith("a server has one store; give one of the two")
    assert "embedded file" in problem and "Cassandra" in problem


def test_the_default_directory_is_no_second_store() -> None:
    settings = read(contact_points="a").settings
    assert (settings.data, settings.on_cassandra) == (None, True)
    assert (read().settings.data, read().settings.on_cassandra) == ("angelhair-data", False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])
def test_the_loopback_address_needs_no_permission(host: str) -> None:
    assert is_loopback(host)
    assert serving_problem(Settings(host=host)) is None
    assert open_warning(Settings(host=host, open=True)) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example", "fe80::1"])
def test_any_other_address_wants_open_and_is_told_loudly(host: str) -> None:
    problem = serving_problem(Settings(host=host))
    assert problem is not None and host in problem and "--open" in problem
    assert serving_problem(Settings(host=host, open=True)) is None
    warning = open_warning(Settings(host=host, open=True))
    assert warning is not None and "EVERYBODY" in warning


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert read({"ANGELHAIR_DATA": "~/queues"}).settings.data == "/somewhere/queues"
