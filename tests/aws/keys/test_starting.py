"""How a server starts with and without access keys, and what becomes of it when the first one is made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.aws.keys.keyed import Key, Keyed, keyed, refusal, until
from tests.cli.command import COMMAND, PATIENCE_SECONDS, environment


def test_the_first_key_closes_the_doors_of_a_running_server(tmp_path: Path) -> None:
    with keyed(tmp_path, first_key=False) as server:
        anybody = server.client(Key("AK", "secret", ""))
        url = anybody.create_queue(QueueName="orders")["QueueUrl"]
        with server.rest() as line:
            assert line.put("/queues/orders/message", content=b"before").status_code == 201
            key = server.key()
            until(lambda: line.get("/queues").status_code == 401)
        assert refusal(anybody.list_queues) == (403, "InvalidClientTokenId")
        # What was there is the default account's, and so is the key.
        (message,) = server.client(key).receive_message(QueueUrl=url)["Messages"]
        assert message["Body"] == "before"
        server.run("key", "delete", key.id)
        until(lambda: _is_refused(server, key))
        assert refusal(anybody.list_queues) == (403, "InvalidClientTokenId"), "no keys, and still closed"


def _is_refused(server: Keyed, key: Key) -> bool:
    with server.rest(key) as line:
        return line.get("/queues").status_code == 401


@pytest.mark.parametrize("workers", ["1", "2"])
def test_all_addresses_are_served_with_keys_only(tmp_path: Path, workers: str) -> None:
    flags = ("--host", "0.0.0.0", "--workers", workers)
    refused = subprocess.run(
        [*COMMAND, "serve", "--port", "0", "--data", str(tmp_path / "data"), *flags], env=environment(),
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )
    assert refused.returncode == (2 if workers == "1" else 1)
    assert "without access keys only the loopback address is served, and 0.0.0.0 is not one" in refused.stderr
    assert refused.stdout == ""
    with keyed(tmp_path, *flags) as server:
        with server.rest() as line:
            assert line.get("/queues").status_code == 401
        with server.rest(server.key()) as line:
            assert line.get("/queues").status_code == 200
        assert "OPEN" not in (tmp_path / "lines").read_text()
