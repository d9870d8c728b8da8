"""Facts of the Dockerfile and the compose file, compared with the code. They are not built here (docs/container.md)."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from angelhair.server.configuration import resolve
from angelhair.server.configuration.file import DIRECTORY
from angelhair.settings import DEFAULT_DATA, Settings
from angelhair.stores.cassandra.inspection import settings_warnings
from tests.container.tools import ENTRY_POINT, HEALTH_CHECK, ROOT

NOWHERE = Path("/nowhere/conf")
"""In place of /data/conf, which may be there on somebody's machine."""

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions(text: str) -> list[tuple[str, str]]:
    """Name and the rest, with comments taken out and continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


STAGES: list[list[tuple[str, str]]] = []
for _instruction in instructions(DOCKERFILE):
    if _instruction[0] == "FROM":
        STAGES.append([])
    if STAGES:
        STAGES[-1].append(_instruction)
BUILD, FINAL = STAGES


def said(name: str, stage: list[tuple[str, str]] = FINAL) -> list[str]:
    return [rest for instruction, rest in stage if instruction == name]


def environment() -> dict[str, str]:
    return dict(word.split("=", 1) for line in said("ENV") for word in shlex.split(line))


def test_both_stages_start_from_the_python_that_the_locks_were_made_with() -> None:
    (version,) = [rest for name, rest in instructions(DOCKERFILE) if rest.startswith("PYTHON_VERSION=")]
    for lock in ("container", "build"):
        head = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")[:200]
        assert f"with Python {version.partition('=')[2]}\n" in head
    assert said("FROM", BUILD) == ["python:${PYTHON_VERSION}-slim-bookworm AS build"]
    assert said("FROM") == ["python:${PYTHON_VERSION}-slim-bookworm"]


def test_every_package_is_checked_by_hash() -> None:
    installs = [command for line in said("RUN", BUILD) for command in line.split("&&") if "pip install" in command]
    assert len(installs) == 3
    for command in installs:
        assert "--require-hashes" in command or ("--no-index" in command and "--no-deps" in command)
    for lock in ("container", "build"):
        text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
        packages = re.findall(r"^[a-z0-9][\w.-]*==.*$", text, re.MULTILINE | re.IGNORECASE)
        assert packages
        assert all(package.endswith("\\") for package in packages), "a hash follows on the next line"
    assert not any("pip" in line for line in said("RUN")), "the final image installs nothing"


def test_the_container_has_what_serving_needs_and_the_driver() -> None:
    def names(lock: str) -> set[str]:
        text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
        return set(re.findall(r"^([a-z0-9][\w.-]*)==", text, re.MULTILINE))

    assert names("serve") <= names("container")
    assert {"cassandra-driver", "pyyaml"} <= names("container")
    assert "hatchling" in names("build")


def test_it_does_not_run_as_root() -> None:
    assert said("USER") == ["10001:10001"]
    assert FINAL.index(("USER", "10001:10001")) > max(
        number for number, (name, _) in enumerate(FINAL) if name in {"RUN", "COPY"}
    )


def test_what_it_says_in_the_environment_are_settings_and_no_store() -> None:
    """A store said here would be the second one for whoever brings contact points."""
    settings = resolve({}, environment(), NOWHERE).settings
    assert settings == Settings(host="0.0.0.0", open=True, data=DEFAULT_DATA)
    assert resolve({}, {**environment(), "CONTACT_POINTS": "a"}, NOWHERE).settings.contact_points == ("a",)


def test_data_is_a_volume_and_where_it_works() -> None:
    assert (said("WORKDIR"), said("VOLUME")) == (["/data"], ["/data"])
    assert str(DIRECTORY) == "/data/conf"
    made = next(line for line in said("RUN") if "/data" in line)
    assert "install --directory --owner 10001 --group 10001" in made


def test_the_port_is_the_servers() -> None:
    assert said("EXPOSE") == [str(Settings().port)]


def test_its_scripts_are_those_that_are_tested() -> None:
    (copied,) = [line for line in said("COPY") if "container/" in line]
    assert f"container/{ENTRY_POINT.name} container/{HEALTH_CHECK.name} /opt/angelhair/container/" in copied
    assert said("ENTRYPOINT") == [f'["/opt/angelhair/container/{ENTRY_POINT.name}"]']
    assert said("CMD") == ["[]"]
    (check,) = said("HEALTHCHECK")
    assert json.loads(check[check.index("["):]) == ["python", f"/opt/angelhair/container/{HEALTH_CHECK.name}"]
    assert os.access(ENTRY_POINT, os.X_OK)
    assert ENTRY_POINT.read_text(encoding="utf-8").startswith("#!/bin/sh\n")


def test_what_is_copied_is_there_and_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    for stage in (BUILD, FINAL):
        for line in said("COPY", stage):
            if "--from" in line:
                continue
            *sources, _ = [word for word in line.split() if not word.startswith("--")]
            for source in sources:
                assert (ROOT / source).exists(), source
                assert f"!{source.split('/')[0]}" in ignored, source


# --- compose --------------------------------------------------------------------------------------------------------


@pytest.fixture(name="services")
def _services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return services


def test_its_cassandra_keeps_what_it_confirms(services: dict[str, Any]) -> None:
    """What the server itself looks at when it starts finds nothing to warn of."""
    options = services["cassandra"]["environment"]["JVM_EXTRA_OPTS"].split()
    assert "-Dcassandra.config.allow_system_properties=true" in options
    overridden = dict(
        option.removeprefix("-Dcassandra.settings.").split("=") for option in options if ".settings." in option
    )
    assert list(settings_warnings("cassandra", overridden)) == []
    # Cassandra refuses to start when the period of the periodic mode is left beside another mode.
    assert overridden["commitlog_sync_period"] == "0ms"
    assert services["cassandra"]["volumes"] == ["cassandra:/var/lib/cassandra"]


def test_its_server_goes_to_its_cassandra(services: dict[str, Any]) -> None:
    for name in ("bootstrap", "angelhair"):
        settings = resolve({}, {**environment(), **services[name]["environment"]}, NOWHERE).settings
        assert (settings.contact_points, settings.keyspace) == (("cassandra",), "angelhair")
    assert settings.contact_points[0] in services


def test_the_keyspace_is_ready_before_the_server_starts(services: dict[str, Any]) -> None:
    assert services["bootstrap"]["command"] == ["bootstrap", "--create-keyspace"]
    assert services["bootstrap"]["depends_on"] == {"cassandra": {"condition": "service_healthy"}}
    assert services["angelhair"]["depends_on"] == {"bootstrap": {"condition": "service_completed_successfully"}}


def test_an_open_server_is_shown_to_this_machine_only(services: dict[str, Any]) -> None:
    assert services["angelhair"]["ports"] == ["127.0.0.1:9324:9324"]
    assert "ports" not in services["cassandra"]
