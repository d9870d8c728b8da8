"""The table of settings is complete, and so is the page that describes it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from angelhair.server.configuration.fields import (
    BY_NAME,
    CONSISTENCY_LEVELS,
    DEFAULTS,
    FIELDS,
    SECTIONS,
    SERIAL_LEVELS,
    Field,
)
from angelhair.settings import Settings
from angelhair.stores.cassandra import settings as store_settings

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

SEEDS = """
    CLUSTER_NAME KEYSPACE CONTACT_POINTS AUTH_PROVIDER USERNAME PASSWORD CONSISTENCY_LEVEL CASSANDRA_PORT USE_SSL
    SSL_PORT DATA_CENTER USE_METRICS_GRAPHITE METRICS_GRAPHITE GRAPHITE_URL GRAPHITE_PREFIX LOGSTASH_CUSTOM_APP_NAME
""".split()

WITH_DEFAULT = [field for field in FIELDS if DEFAULTS[field.name] not in (None, ())]


def test_every_setting_has_one_row() -> None:
    assert sorted(BY_NAME) == sorted(field.name for field in dataclasses.fields(Settings))
    assert len(BY_NAME) == len(FIELDS)
    assert {field.section for field in FIELDS} == set(SECTIONS)


def test_a13_every_variable_of_the_ancestors_is_there_once() -> None:
    assert sorted(name for field in FIELDS for name in field.environment) == sorted(SEEDS)


def test_a_parent_is_judged_before_its_children() -> None:
    names = [field.name for field in FIELDS]
    for field in FIELDS:
        if field.parent is not None:
            assert names.index(field.parent) < names.index(field.name)


@pytest.mark.parametrize("field", WITH_DEFAULT, ids=lambda field: field.name)
def test_a_default_may_be_written_down(field: Field) -> None:
    default = DEFAULTS[field.name]
    assert field.kind.from_text(str(default).lower() if isinstance(default, bool) else str(default)) == default
    assert field.kind.from_yaml(default) == default


def test_the_levels_are_those_of_the_store() -> None:
    """Written down twice, so that settings can be read without the driver."""
    assert sorted(CONSISTENCY_LEVELS) == sorted(store_settings.CONSISTENCY_LEVELS)
    assert sorted(SERIAL_LEVELS) == sorted(store_settings.SERIAL_LEVELS)


def test_keyspaces_are_named_as_the_store_names_them() -> None:
    kind = BY_NAME["keyspace"].kind
    for name in ("a", "a_1", "x" * 48):
        assert store_settings.KEYSPACE_NAME.fullmatch(name)
        assert kind.from_text(name) == name
    for name in ("A", "1a", "_a", "x" * 49, "a-b", 'a"b'):
        assert store_settings.KEYSPACE_NAME.fullmatch(name) is None
        with pytest.raises(ValueError, match="lower case"):
            kind.from_text(name)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_the_page_has_a_row_for_every_setting(field: Field) -> None:
    (row,) = re.findall(rf"^\| `{field.name}` \|.*$", PAGE, re.MULTILINE)
    for name in field.environment:
        assert f"`{name}`" in row
    default = DEFAULTS[field.name]
    if field in WITH_DEFAULT:
        shown = str(default).lower().removesuffix(".0") if isinstance(default, bool | float) else default
        assert f"`{shown}`" in row
