"""From settings to a store, or to one line that says why not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
import ssl
import threading
from pathlib import Path

import cassandra
import pytest
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ConfigurationException

from angelhair.cli import opening
from angelhair.errors import AngelhairError, StoreRefused, Unavailable
from angelhair.settings import Settings
from angelhair.stores.cassandra.reaching import ssl_context

NOBODY = Settings(contact_points=("127.0.0.1",), cassandra_port=1)
"""Nothing listens on port 1."""


def refused(settings: Settings) -> AngelhairError:
    async def attempt() -> None:
        store = await opening.open_store(settings)
        await store.close()

    with pytest.raises(AngelhairError) as caught:
        asyncio.run(attempt())
    return caught.value


# --- the embedded file ----------------------------------------------------------------------------------------------


def test_the_file_and_its_directory_are_made(tmp_path: Path) -> None:
    settings = Settings(data=str(tmp_path / "a" / "b"))
    asyncio.run(opening.prepare(settings))
    assert (tmp_path / "a" / "b" / "angelhair.db").is_file()
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert opening.describe_store(settings) == f"the file {tmp_path / 'a' / 'b' / 'angelhair.db'}"
    # And found again.
    asyncio.run(opening.prepare(settings))


def test_a_directory_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    asyncio.run(opening.prepare(Settings(data=str(tmp_path))))
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_data_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("mine")
    for data in (file, file / "below"):
        error = refused(Settings(data=str(data)))
        assert isinstance(error, StoreRefused)
        assert str(error).startswith("data wants a directory, and ")
    assert file.read_text() == "mine"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "angelhair.db").write_text("something else entirely, and long enough to be looked at " * 20)
    error = refused(Settings(data=str(tmp_path)))
    assert isinstance(error, StoreRefused)
    assert str(tmp_path / "angelhair.db") in str(error)


def test_a_database_of_another_application_is_named(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "angelhair.db")) as theirs:
        theirs.execute("CREATE TABLE theirs (x)")
    error = refused(Settings(data=str(tmp_path)))
    assert str(error) == f"the file {tmp_path / 'angelhair.db'} is a SQLite database of another application"


# --- Cassandra ------------------------------------------------------------------------------------------------------


def test_settings_arrive_at_the_store(tmp_path: Path) -> None:
    wanted = opening.cassandra_settings(Settings(
        contact_points=("a", "b"), keyspace="k", cassandra_port=1, username="u", password="p", data_center="dc1",
        consistency_level="QUORUM", serial_consistency_level="SERIAL", application_name="orders",
    ))
    assert (wanted.contact_points, wanted.keyspace, wanted.port) == (("a", "b"), "k", 1)
    assert (wanted.user, wanted.password, wanted.data_centre) == ("u", "p", "dc1")
    assert (wanted.read_consistency, wanted.write_consistency, wanted.serial_consistency) == (
        "QUORUM", "QUORUM", "SERIAL")
    assert (wanted.application_name, wanted.ssl_context) == ("orders", None)


def test_with_ssl_certificates_are_checked_and_the_other_port_is_taken() -> None:
    wanted = opening.cassandra_settings(Settings(contact_points=("a",), use_ssl=True))
    context = wanted.ssl_context
    assert isinstance(context, ssl.SSLContext)
    assert (wanted.port, context.verify_mode, context.check_hostname) == (9043, ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    trusting = ssl_context(Settings(use_ssl=True, ssl_check_hostname=False))
    assert (trusting.verify_mode, trusting.check_hostname) == (ssl.CERT_REQUIRED, False)


@pytest.mark.parametrize("field", ["ssl_ca", "ssl_certificate"])
@pytest.mark.parametrize("there", [False, True])
def test_a_certificate_that_is_none_is_named(field: str, there: bool, tmp_path: Path) -> None:
    file = tmp_path / "certificate.pem"
    if there:
        file.write_text("not a certificate\n")
    with pytest.raises(StoreRefused, match=f"^{field}: {file} cannot be used: "):
        ssl_context(Settings(use_ssl=True, **{field: str(file)}))


def test_a_directory_of_certificates_may_be_trusted(tmp_path: Path) -> None:
    context = ssl_context(Settings(use_ssl=True, ssl_ca=str(tmp_path)))
    assert context.get_ca_certs() == []


def test_a_cassandra_that_is_not_there_is_one_line() -> None:
    error = refused(NOBODY)
    assert isinstance(error, Unavailable)
    assert str(error) == "Cassandra cannot be reached at 127.0.0.1 port 1: Connection refused"


def test_what_is_no_cassandra_is_one_line() -> None:
    """A web server, say, whose first letter the driver takes for the version of a protocol."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(1)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        port = listening.getsockname()[1]
        error = refused(Settings(contact_points=("127.0.0.1",), cassandra_port=port))
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert isinstance(error, Unavailable)
    assert str(error) == (f"Cassandra cannot be reached at 127.0.0.1 port {port}: what answers there does not speak "
                          "Cassandra's protocol; see cassandra_port")


def test_what_the_driver_says_becomes_one_line() -> None:
    def told(cause: Exception) -> AngelhairError:
        try:
            raise Unavailable(f"{type(cause).__name__}: {cause}") from cause
        except Unavailable as error:
            return opening.cassandra_trouble(NOBODY, error)

    forbidden = told(cassandra.Unauthorized("User poor has no CREATE permission"))
    assert isinstance(forbidden, StoreRefused)
    assert str(forbidden) == "Cassandra does not allow it: User poor has no CREATE permission"
    login = told(NoHostAvailable("none", {"a:1": cassandra.AuthenticationFailed("Bad\ncredentials")}))
    assert isinstance(login, StoreRefused)
    assert str(login) == ("Cassandra at 127.0.0.1 port 1 refuses the login of a server without a user name; "
                          "set username and password")
    several = told(NoHostAvailable("none", {"a:1": OSError("too\nlate"), "b:1": ssl.SSLError(1, "no trust")}))
    assert isinstance(several, Unavailable)
    assert str(several) == ("Cassandra cannot be reached at 127.0.0.1 port 1: a:1: too late; b:1: no trust; see "
                            "ssl_ca and ssl_check_hostname")
    unknown = told(ConfigurationException(0x2300, "Unrecognized strategy option {dc9} passed", None))
    assert isinstance(unknown, StoreRefused), "it was reached, and said no"
    assert str(unknown) == "Cassandra at 127.0.0.1 port 1 refuses it: Unrecognized strategy option {dc9} passed"
    nobody = told(NoHostAvailable("Unable to complete the operation against any hosts", {}))
    assert str(nobody) == "Cassandra cannot be reached at 127.0.0.1 port 1: no node is there to be asked"
    late = told(cassandra.OperationTimedOut({"a:1": "Client request timeout. See Session.execute"}, "a:1"))
    assert str(late) == "Cassandra cannot be reached at 127.0.0.1 port 1: no answer in time from a:1"
    nameless = told(cassandra.UnresolvableContactPoints({}))
    assert str(nameless) == "Cassandra cannot be reached at 127.0.0.1 port 1: none of these names has an address"
    long = told(cassandra.DriverException("x" * 1000))
    assert len(str(long)) < 300


def test_other_errors_are_left_as_they_are() -> None:
    with pytest.raises(KeyError):
        opening.cassandra_trouble(NOBODY, KeyError("a mistake of ours"))
    refusal = StoreRefused("as it is")
    assert opening.cassandra_trouble(NOBODY, refusal) is refusal
