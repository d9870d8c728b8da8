"""`angelhair bootstrap`, as it is typed: what it refuses, and on a real Cassandra what it makes (A13)."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from angelhair.cli import opening
from angelhair.cli.bootstrap import parse_replication
from angelhair.cli.main import main
from angelhair.engine.schema import SCHEMA_VERSION, TABLES
from angelhair.errors import AngelhairError, StoreRefused
from angelhair.server.configuration import SettingsRefused
from angelhair.server.configuration.fields import BY_NAME
from angelhair.settings import Settings
from angelhair.stores.cassandra.schema import META
from cluster import CassandraCluster
from cluster.testing import shared_cluster


@pytest.fixture(autouse=True)
def _nothing_said_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in BY_NAME.values():
        for name in field.variables:
            monkeypatch.delenv(name, raising=False)


def test_without_contact_points_there_is_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bootstrap"]) == 2
    assert capsys.readouterr().err.startswith("angelhair bootstrap: there are no contact points")


@pytest.mark.parametrize("option", ["--create-keyspace", "-createKeyspace"])
def test_a_cassandra_that_is_not_there_is_one_line(
    option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTACT_POINTS", "127.0.0.1")
    monkeypatch.setenv("CASSANDRA_PORT", "1")
    assert main(["bootstrap", option]) == 1
    assert capsys.readouterr() == (
        "", "angelhair bootstrap: Cassandra cannot be reached at 127.0.0.1 port 1: Connection refused\n")


def test_replication_without_a_keyspace_to_create_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bootstrap", "--contact-points", "127.0.0.1", "--replication", "dc1=3"]) == 2
    assert "--replication goes with --create-keyspace only" in capsys.readouterr().err


def test_replication_is_a_number_for_each_data_center() -> None:
    assert parse_replication("dc1=3,dc-2.east=2") == {"dc1": 3, "dc-2.east": 2}
    assert parse_replication(None) is None


@pytest.mark.parametrize("text", ["", "dc1", "dc1=", "dc1=0", "dc1=-1", "dc1=03", "=3", "dc1=3,", "dc=3,dc=2", "d'=1"])
def test_a_replication_that_says_nothing_is_named(text: str) -> None:
    with pytest.raises(SettingsRefused, match=r"^--replication: "):
        parse_replication(text)


# --- on a real Cassandra --------------------------------------------------------------------------------------------


@pytest.fixture(name="cluster")
def _cluster() -> CassandraCluster:
    return shared_cluster()


def arguments(cluster: CassandraCluster, keyspace: str) -> list[str]:
    return ["--contact-points", ",".join(cluster.contact_points), "--keyspace", keyspace]


def opened(settings: Settings) -> list[str]:
    """What is told while the store is opened."""
    told: list[str] = []

    async def go() -> None:
        store = await opening.open_store(settings, told.append)
        await store.close()

    asyncio.run(go())
    return told


@pytest.mark.cassandra
def test_a13_bootstrap_makes_the_keyspace_and_its_tables(
    cluster: CassandraCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    keyspace = f"test_{uuid.uuid4().hex[:16]}"
    settings = Settings(contact_points=tuple(cluster.contact_points), keyspace=keyspace)
    with pytest.raises(AngelhairError, match="bootstrap --create-keyspace"):
        opened(settings)
    assert main(["bootstrap", *arguments(cluster, keyspace)]) == 1
    assert f"there is no keyspace {keyspace}" in capsys.readouterr().err
    ready = f"keyspace {keyspace} is ready: schema version {SCHEMA_VERSION}\n"
    for _ in range(2):
        assert main(["bootstrap", "-createKeyspace", *arguments(cluster, keyspace)]) == 0
        assert capsys.readouterr() == (ready, "")
    assert opened(settings) == []


@pytest.mark.cassandra
def test_an_empty_keyspace_gets_its_tables_from_the_first_server(cluster: CassandraCluster) -> None:
    keyspace = f"test_{uuid.uuid4().hex[:16]}"
    settings = Settings(contact_points=tuple(cluster.contact_points), keyspace=keyspace)

    async def only_the_keyspace() -> None:
        from angelhair.stores.cassandra import create_keyspace

        await create_keyspace(opening.cassandra_settings(settings))

    asyncio.run(only_the_keyspace())
    assert opened(settings) == [f"keyspace {keyspace} was empty; its tables have been created"]
    assert opened(settings) == []
    with pytest.raises(StoreRefused, match="need not meet"):
        opened(Settings(contact_points=settings.contact_points, keyspace=keyspace, consistency_level="ONE"))


@pytest.mark.cassandra
def test_servers_that_start_at_once_on_an_empty_keyspace_make_one_table_of_each_name(cluster: CassandraCluster) -> None:
    """Nodes that are asked at the same time would make one each, and all but one go with what was written into them."""
    keyspace = f"test_{uuid.uuid4().hex[:16]}"
    points = tuple(cluster.contact_points)
    servers = [
        Settings(contact_points=points[turn:] + points[:turn], keyspace=keyspace) for turn in (0, 1, 2, 0)
    ]

    async def start_all() -> None:
        from angelhair.stores.cassandra import create_keyspace

        await create_keyspace(opening.cassandra_settings(servers[0]))
        stores = await asyncio.gather(*(opening.open_store(settings) for settings in servers))
        for store in stores:
            await store.close()

    asyncio.run(start_all())
    # A table that was made and went leaves its directory, which is named after its id.
    made = {
        directory.name
        for number in range(1, cluster.size + 1)
        for directory in (cluster.node(number).plan.directory / "data" / keyspace).iterdir()
    }
    assert sorted(name.rpartition("-")[0] for name in made) == sorted([META, *(table.name for table in TABLES)])
