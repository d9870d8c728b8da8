"""A13: the ancestors' variables work as they are, with their defaults."""

from __future__ import annotations

from typing import Any

import pytest

from angelhair.settings import Settings
from tests.unit.configuration.tools import problems, read

ON_CASSANDRA = {"CONTACT_POINTS": "10.0.0.1"}


def test_a13_defaults_are_the_ancestors() -> None:
    settings = read(ON_CASSANDRA).settings
    assert settings.auth_provider == "plainText"
    assert settings.consistency_level == "LOCAL_QUORUM"
    assert (settings.cassandra_port, settings.ssl_port) == (9042, 9043)
    assert (settings.use_ssl, settings.use_metrics_graphite) == (False, False)
    assert (settings.username, settings.password, settings.data_center, settings.cluster_name) == (None,) * 4


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("CLUSTER_NAME", "Test Cluster", "cluster_name", "Test Cluster"),
        ("KEYSPACE", "queues", "keyspace", "queues"),
        ("CONTACT_POINTS", "10.0.0.1, node-2.example,::1", "contact_points", ("10.0.0.1", "node-2.example", "::1")),
        ("AUTH_PROVIDER", "plaintext", "auth_provider", "plainText"),
        ("CONSISTENCY_LEVEL", "quorum", "consistency_level", "QUORUM"),
        ("CASSANDRA_PORT", "19042", "cassandra_port", 19042),
        ("USE_SSL", "true", "use_ssl", True),
        ("USE_SSL", "false", "use_ssl", False),
        ("DATA_CENTER", "dc1", "data_center", "dc1"),
        ("LOGSTASH_CUSTOM_APP_NAME", "orders", "application_name", "orders"),
    ],
)
def test_a13_every_variable_arrives(variable: str, text: str, field: str, value: Any) -> None:
    resolved = read({**ON_CASSANDRA, variable: text})
    assert getattr(resolved.settings, field) == value
    assert str(resolved.origins[field]) == variable


def test_a13_user_and_password_come_together() -> None:
    settings = read({**ON_CASSANDRA, "USERNAME": "u", "PASSWORD": " p w "}).settings
    assert (settings.username, settings.password) == ("u", " p w ")


def test_a13_the_docker_line_of_the_first_article_serves_from_a_file() -> None:
    """With every variable empty, as it is printed there."""
    names = ("CLUSTER_NAME KEYSPACE CONTACT_POINTS USERNAME PASSWORD USE_SSL DATA_CENTER METRICS_GRAPHITE "
             "GRAPHITE_PREFIX GRAPHITE_URL").split()
    resolved = read(dict.fromkeys(names, ""))
    assert resolved.settings == Settings(data="angelhair-data")
    assert resolved.ignored == ()


def test_a13_blanks_are_empty_too() -> None:
    assert read({"CONTACT_POINTS": "  ", "KEYSPACE": "\t"}).settings == Settings(data="angelhair-data")


def test_a13_the_ssl_port_counts_only_with_ssl() -> None:
    environment = {**ON_CASSANDRA, "SSL_PORT": "19043"}
    assert read(environment).settings.store_port == 9042
    assert read({**environment, "USE_SSL": "false"}).settings.ssl_port == 9043
    with_ssl = read({**environment, "USE_SSL": "true"}).settings
    assert (with_ssl.ssl_port, with_ssl.store_port) == (19043, 19043)
    assert read({**ON_CASSANDRA, "USE_SSL": "true"}).settings.store_port == 9043


def test_a13_the_data_center_counts_always() -> None:
    """In the ancestors it hung on USE_SSL, by mistake."""
    for use_ssl in ("", "true", "false"):
        assert read({**ON_CASSANDRA, "DATA_CENTER": "dc1", "USE_SSL": use_ssl}).settings.data_center == "dc1"


@pytest.mark.parametrize("parent", ["USE_METRICS_GRAPHITE", "METRICS_GRAPHITE"])
def test_a13_graphite_counts_only_with_its_parent(parent: str) -> None:
    environment = {"GRAPHITE_URL": "graphite.example:2004", "GRAPHITE_PREFIX": "queues.angelhair"}
    off = read({**environment, parent: "false"}).settings
    assert (off.graphite_url, off.graphite_prefix, off.graphite_address) == (None, None, None)
    on = read({**environment, parent: "true"}).settings
    assert (on.graphite_url, on.graphite_prefix) == ("graphite.example:2004", "queues.angelhair")
    assert on.graphite_address == ("graphite.example", 2004)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("graphite", ("graphite", 2003)),
        ("10.0.0.9:2103", ("10.0.0.9", 2103)),
        ("tcp://graphite:2103/", ("graphite", 2103)),
        ("::1", ("::1", 2003)),
        ("[::1]:2103", ("::1", 2103)),
    ],
)
def test_a13_graphites_place_may_be_written_in_several_ways(text: str, address: tuple[str, int]) -> None:
    assert read({"USE_METRICS_GRAPHITE": "true", "GRAPHITE_URL": text}).settings.graphite_address == address


@pytest.mark.parametrize("text", ["http://graphite", "graphite:", "graphite:x", ":2003", "graphite:0", "graphite:70000",
                                  "[::1", "[::1]2003", "a b"])
def test_a_place_where_graphite_cannot_be_is_refused(text: str) -> None:
    (problem,) = [one for one in problems({"USE_METRICS_GRAPHITE": "true", "GRAPHITE_URL": text})
                  if one.startswith("GRAPHITE_URL")]
    assert problem.startswith(f"GRAPHITE_URL: {text!r} ")


def test_what_does_not_count_is_not_judged() -> None:
    """It may be anybody's variable."""
    environment = {"SSL_PORT": "nonsense", "GRAPHITE_URL": "no such place", "CASSANDRA_PORT": "x", "USE_SSL": "perhaps"}
    resolved = read(environment)
    assert resolved.settings == Settings(data="angelhair-data")
    assert sorted(str(one) for one in resolved.ignored) == [
        "CASSANDRA_PORT: counts only with contact_points",
        "GRAPHITE_URL: counts only with use_metrics_graphite",
        "SSL_PORT: counts only with use_ssl",
        "USE_SSL: counts only with contact_points",
    ]


@pytest.mark.parametrize(
    ("variable", "text", "problem"),
    [
        ("CASSANDRA_PORT", "abc", "CASSANDRA_PORT: 'abc' is not a whole number from 1 to 65535"),
        ("CASSANDRA_PORT", "09042", "CASSANDRA_PORT: '09042' is not a whole number from 1 to 65535"),
        ("CASSANDRA_PORT", "0", "CASSANDRA_PORT: '0' is not a whole number from 1 to 65535"),
        ("CASSANDRA_PORT", "9_042", "CASSANDRA_PORT: '9_042' is not a whole number from 1 to 65535"),
        ("USE_SSL", "maybe", "USE_SSL: 'maybe' is neither true nor false"),
        ("AUTH_PROVIDER", "kerberos", "AUTH_PROVIDER: 'kerberos' is not plainText"),
        ("KEYSPACE", "Queues", "KEYSPACE: 'Queues' is not made of at most 48 lower case letters, digits and _, "
                               "a letter first"),
        ("CONTACT_POINTS", "a,,b", "CONTACT_POINTS: 'a,,b' has an empty address in it"),
        ("CONTACT_POINTS", "10.0.0.1:9042", "CONTACT_POINTS: '10.0.0.1:9042' has a port in it, which is a setting of "
                                            "its own, cassandra_port"),
        ("CONTACT_POINTS", "http://a", "CONTACT_POINTS: 'http://a' is not a host name or an address"),
        ("CLUSTER_NAME", "a\nb", "CLUSTER_NAME: 'a\\nb' has a control character in it"),
        ("USE_METRICS_GRAPHITE", "true", "USE_METRICS_GRAPHITE: metrics go to Graphite, but graphite_url does not say "
                                         "where it is"),
    ],
)
def test_a_wrong_value_is_named(variable: str, text: str, problem: str) -> None:
    assert problems({**ON_CASSANDRA, variable: text}) == (problem,)


def test_the_misprint_of_the_ancestors_page_is_understood_as_one() -> None:
    (problem,) = problems({**ON_CASSANDRA, "CONSISTENCY_LEVEL": "LOCAL_QUOURUM"})
    assert problem.endswith("; did you mean LOCAL_QUORUM?")
