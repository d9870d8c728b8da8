"""A disk that is full: 503 and nothing lost, nothing half done; when there is room again it goes on by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import httpx
import pytest

from tests.unit.sqlite.disks import Disk
from tests.wire.server import PATIENCE_SECONDS, running_server

BODY_BYTES = 4_000
ROOM_BYTES = 2_000_000
"""Of the log and the file together, as far as they grow."""

REFUSALS = 20


class SmallDisk(Disk):
    """Takes writes up to a size; beyond, SQLite is told what a full disk tells it."""

    def __init__(self) -> None:
        super().__init__()
        self.full_beyond_bytes: int | None = None

    def write(self, file: str, data: bytes, offset: int, proceed: Callable[[], None]) -> None:
        if self.full_beyond_bytes is not None and offset + len(data) > self.full_beyond_bytes:
            raise apsw.FullError("database or disk is full")
        proceed()


def test_a_full_disk_is_503_and_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = SmallDisk()
    confirmed: set[str] = set()
    refused: set[str] = set()
    with running_server(tmp_path, disk.name) as server, httpx.Client(
        base_url=server.url, timeout=PATIENCE_SECONDS
    ) as client:
        assert client.put("/queues/q").status_code == 201
        disk.full_beyond_bytes = ROOM_BYTES
        while len(refused) < REFUSALS:
            body = f"{len(confirmed) + len(refused):0{BODY_BYTES}d}"
            answer = client.put("/queues/q/message", content=body)
            assert answer.status_code in (201, 503), answer.text
            if answer.status_code == 201:
                confirmed.add(body)
            else:
                assert (answer.json()["code"], "retry-after" in answer.headers) == ("unavailable", True)
                refused.add(body)
        assert confirmed
        assert [record.getMessage() for record in caplog.records if "disk" in record.getMessage()] == [
            "the disk is full: puts, receives and acks answer 503 until there is space"
        ]
        # What needs no room is still answered.
        assert client.get("/queues").json()["queues"] == ["q"]
        disk.full_beyond_bytes = None
        received: list[str] = []
        while messages := client.get("/queues/q/messages/100").json()["messages"]:
            received += [message["body"] for message in messages]
            receipts = [message["receipt"] for message in messages]
            assert client.post("/queues/q/acks", json={"receipts": receipts}).json()["acked"] == len(receipts)
        assert sorted(received) == sorted(confirmed)
        assert client.put("/queues/q/message", content="after").status_code == 201
