"""HTTPS end to end: a real `angelhair serve`, the clients and the command against it, and who is not let in."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvloop

from angelhair import AsyncClient, Client, Message, errors, limits
from tests.cli.command import without_the_mode
from tests.wire.http.certificates import Certificates, make_certificates
from tests.wire.http.echo import connected, get, serving

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "angelhair"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENSSL_CONF": os.devnull}
PATIENCE_SECONDS = 60

HALF_A_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01"
"""The beginning of a TLS handshake whose rest does not come."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def served(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process and its address; afterwards it must have ended well and complained of nothing."""
    command = [*COMMAND, "serve", "--port", "0", "--data", str(folder), "--log-format", "text", *flags]
    with (folder / "complaints").open("w") as complaints:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=complaints, text=True)
    assert process.stdout is not None
    with process.stdout:
        try:
            line = process.stdout.readline()
            assert line.startswith("angelhair serves https://127.0.0.1:"), (folder / "complaints").read_text()
            yield process, line.split()[2]
        finally:
            if process.poll() is None:
                process.terminate()
            ended = process.wait(PATIENCE_SECONDS)
    assert (ended, without_the_mode((folder / "complaints").read_text())) == (0, "")


@pytest.fixture(scope="module")
def url(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("data"), *certificates.flags) as (_, address):
        yield address


def connection(url: str) -> socket.socket:
    parts = httpx.URL(url)
    assert parts.port is not None
    return socket.create_connection((parts.host, parts.port), PATIENCE_SECONDS)


def test_a_message_goes_round(url: str, certificates: Certificates) -> None:
    trusting = ssl.create_default_context(cafile=certificates.authority)
    with httpx.Client(base_url=url, verify=trusting) as client:
        assert client.put("/queues/plain", json={}).status_code == 201
        assert client.put("/queues/plain/message", content=b"x" * 100_000).status_code == 201
        (message,) = client.get("/queues/plain/messages/1").json()["messages"]
        assert message["body"] == "x" * 100_000
        assert client.delete(f"/queues/plain/message/{message['receipt']}").status_code == 204


def test_the_clients_and_their_consumers(url: str, certificates: Certificates) -> None:
    """A consumer's extensions go over connections of their own: they need the certificates too."""
    trusting = ssl.create_default_context(cafile=certificates.authority)
    seen: list[bytes] = []
    with Client(url, verify=trusting) as client:
        client.create_queue("chores")
        client.put_many("chores", ["sweep", "mop"])

        def handle(message: Message) -> None:
            seen.append(message.body)
            if len(seen) == 2:
                consumer.stop()

        consumer = client.consumer("chores", handle, concurrency=1)
        consumer.run()

    async def main() -> None:
        async with AsyncClient(url, verify=trusting) as client:
            await client.put("chores", "paint")
            (message,) = await client.receive("chores", wait=20)
            seen.append(message.body)
            await client.ack(message)
        async with AsyncClient(url) as stranger:
            with pytest.raises(errors.RequestError, match="its certificate is not trusted"):
                await stranger.put("chores", "spy")

    asyncio.run(main())
    assert sorted(seen) == [b"mop", b"paint", b"sweep"]


def test_who_speaks_plain_http_is_asked_whether_the_server_does(url: str) -> None:
    with Client(url.replace("https:", "http:"), retry=None) as client:
        with pytest.raises(errors.OutcomeUnknown, match="was it stopped just then, or does this server speak https\\?"):
            client.put("chores", "sweep")


def test_the_command(url: str, certificates: Certificates) -> None:
    def told(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, "ANGELHAIR_SERVER": url, **variables}
        return subprocess.run([*COMMAND, *words], env=environment, capture_output=True, text=True, check=False)

    trusting = ("--ca", str(certificates.authority))
    assert told("queue", "create", "orders", *trusting).returncode == 0
    assert told("queue", "list", SSL_CERT_FILE=str(certificates.authority)).returncode == 0
    assert told("put", "orders", "one", *trusting).returncode == 0
    assert told("get", "orders", "--ack", "--body-only", *trusting).stdout == "one\n"
    assert told("doctor", *trusting).returncode == 0
    assert "name the authority to trust, by SSL_CERT_FILE, the command's --ca" in told("doctor").stdout
    stranger = told("queue", "list", "--retry", "1h")
    assert stranger.returncode == 1, "trying again would not help"
    assert stranger.stderr.startswith(f"angelhair queue list: {url}: its certificate is not trusted: ")
    assert "--ca" in stranger.stderr and len(stranger.stderr.splitlines()) == 1


def test_the_health_check_of_the_container(url: str, certificates: Certificates) -> None:
    variables = {"ANGELHAIR_PORT": str(httpx.URL(url).port), "ANGELHAIR_TLS_CERTIFICATE": str(certificates.certificate)}
    ran = subprocess.run(
        [sys.executable, str(ROOT / "container" / "healthcheck.py")], env={**ENVIRONMENT, **variables},
        capture_output=True, text=True, check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, '{"status":"ready"}\n')


def test_who_does_not_trust_the_server_sends_nothing(url: str) -> None:
    with Client(url, retry=None) as client, pytest.raises(errors.RequestError, match="is not trusted"):
        client.put("plain", "secret")


def test_plain_http_is_closed_at_once(url: str, certificates: Certificates) -> None:
    with connection(url) as plain:
        plain.sendall(get("/queues"))
        answer = b""
        try:
            while portion := plain.recv(1000):
                answer += portion
        except ConnectionResetError:
            pass
        # An alert of TLS at most: nothing that could be taken for HTTP.
        assert b"HTTP" not in answer
    assert httpx.get(f"{url}/queues", verify=ssl.create_default_context(cafile=certificates.authority)).is_success


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_of_tls_are_refused(url: str, certificates: Certificates) -> None:
    def speaks(version: ssl.TLSVersion) -> str | None:
        context = ssl.create_default_context(cafile=certificates.authority)
        # Otherwise it may be this side that refuses.
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        with connection(url) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            return secure.version()

    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            speaks(version)
    assert (speaks(ssl.TLSVersion.TLSv1_2), speaks(ssl.TLSVersion.TLSv1_3)) == ("TLSv1.2", "TLSv1.3")


def test_a_server_that_stops_waits_for_no_goodbye(certificates: Certificates, tmp_path: Path) -> None:
    """A pool's idle connection says none, and half a handshake is no request. Naive: wait for both until the grace
    ends, here ten minutes."""
    trusting = ssl.create_default_context(cafile=certificates.authority)
    with served(tmp_path, *certificates.flags, "--stop-grace-seconds", "600") as (process, address):
        with connection(address) as half, httpx.Client(base_url=address, verify=trusting) as idle:
            half.sendall(HALF_A_HELLO)
            assert idle.get("/queues").status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0


def test_half_a_handshake_is_cut_off(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no connection yet that could be counted or refused: only its time is bounded."""
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_SECONDS", 0.1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)

    async def story() -> None:
        async with serving(tls=context) as (_, port), connected(port) as silent, connected(port) as half:
            half.send(HALF_A_HELLO)
            assert await half.closed() and await silent.closed()

    uvloop.run(story())


def test_a_waiting_receive_ends_with_its_client(url: str, certificates: Certificates) -> None:
    """Over TLS too a client that leaves is noticed: the next message is not given to nobody."""
    trusting = ssl.create_default_context(cafile=certificates.authority)
    with Client(url, verify=trusting) as client:
        client.create_queue("waited-for")
        with connection(url) as plain, trusting.wrap_socket(plain, server_hostname="127.0.0.1") as leaving:
            leaving.sendall(get("/queues/waited-for/messages/1?wait=60"))
            until_waiting(url, trusting, 1)
        until_waiting(url, trusting, 0)
        client.put("waited-for", "for whoever stays")
        (message,) = client.receive("waited-for")
        assert message.deliveries == 1


def until_waiting(url: str, trusting: ssl.SSLContext, count: int) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    with httpx.Client(base_url=url, verify=trusting) as client:
        while f"angelhair_receives_waiting {count:.1f}" not in client.get("/metrics").text:
            assert time.monotonic() < give_up


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, workers: int) -> None:
    absent = tmp_path / "absent.pem"
    said = complaint(tmp_path, "--tls-certificate", str(absent), "--workers", str(workers))
    assert said == f"angelhair serve: tls_certificate: {absent} cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("certificate", "key", "complains"),
    [
        ("certificate", "absent", "tls_key: {absent} cannot be read: No such file or directory"),
        ("certificate", "other_key", "tls_key: the key in {other_key} is not that of the certificate in {certificate}"),
        ("certificate", "locked_key",
         "tls_key: the key in {locked_key} is locked with a password, and nobody is there to type it"),
        ("key", "key", "tls_certificate: {key} has no certificate in it; PEM is wanted"),
        ("certificate", "certificate", "tls_key: {certificate} has no private key in it; PEM is wanted"),
        ("certificate", None, "tls_certificate: {certificate} has no private key in it; PEM is wanted; if the key is "
         "in a file of its own, tls_key names it"),
        ("broken", "key", "tls_certificate: {broken} with {key} cannot be used: damaged PEM"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(
    certificates: Certificates, tmp_path: Path, certificate: str, key: str | None, complains: str
) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_bytes(certificates.certificate.read_bytes()[:200])
    files = {**vars(certificates), "absent": tmp_path / "absent.pem", "broken": broken}
    flags = ["--tls-certificate", str(files[certificate])]
    if key is not None:
        flags += ["--tls-key", str(files[key])]
    assert complaint(tmp_path, *flags) == f"angelhair serve: {complains.format(**files)}\n"


def complaint(folder: Path, *flags: str) -> str:
    """What a server says that cannot start, and has made nothing yet."""
    data = folder / "data"
    ran = subprocess.run(
        [*COMMAND, "serve", "--port", "0", "--data", str(data), *flags], env=ENVIRONMENT,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )
    assert (ran.returncode, ran.stdout, data.exists()) == (1, "", False)
    return ran.stderr
