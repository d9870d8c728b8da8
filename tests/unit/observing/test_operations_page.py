"""docs/operations.md: its figures are the code's, its metrics exist, its programs do what they say."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from angelhair import limits
from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.model import Ask, NewMessage, QueueSettings
from angelhair.server.observing.metrics import Figures
from angelhair.server.observing.observer import Observer
from angelhair.server.observing.operations import Observing
from angelhair.server.service import label
from angelhair.settings import DATABASE_NAME, DEFAULT_DATA, Settings
from angelhair.stores.sqlite import open_store
from tests.queues import Identities

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)

UNITS = {"s": 1.0, "ms": 0.001, "min": 60.0, "KiB": 1024, "MiB": 1024 * 1024}
NAMED = re.compile(r"(\d[\d,.]*)\s*([A-Za-z ]*?)\s*\(`([A-Z_]+)`\)")
FIGURE = re.compile(
    r"(?<![\w.`:-])\d[\d,.]* ?(?:s|ms|min|h|KiB|MiB|GiB|MB|GB|%|messages|buckets|queues|lines)\b[^(\n]{0,30}"
)


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_figure_is_the_codes() -> None:
    found = NAMED.findall(PROSE)
    assert len(found) > 10
    for number, unit, name in found:
        value = getattr(limits, name)
        said = float(number.replace(",", "")) * UNITS.get(unit.strip(), 1)
        meant = value / 1000 if name.endswith("_MS") else value
        assert said == meant, f"the page says {number} {unit} for {name}, which is {value}"


def test_no_figure_stands_there_without_its_name() -> None:
    assert FIGURE.findall(NAMED.sub("", PROSE.replace("\n", " "))) == []


def names() -> set[str]:
    """Of all series that a server can have, with the endings of histograms."""

    async def watched() -> Observer:
        observing = Observing(Settings())

        class Parts:
            stopping, connections, waiting, steps, left_out = False, 0, 0, 0, 0
            queues: tuple[str, ...] = ()

        observing.watch(Parts(), Parts(), Parts(), None, label, Parts())  # type: ignore[arg-type]
        return observing.observer

    found = set()
    for family in Figures(asyncio.run(watched()), None).collect():
        endings = {
            "counter": ("_total",), "histogram": ("", "_bucket", "_sum", "_count"), "info": ("_info",), "gauge": ("",)
        }
        found.update(family.name + ending for ending in endings[family.type])
    return found


def test_every_metric_that_is_named_exists_and_every_one_of_ours_is_named() -> None:
    named = set(re.findall(r"\b(?:angelhair|process|python)_[a-z_]+\b", PAGE)) - {"angelhair_http_request"}
    exist = names()
    assert {name for name in named if not name.endswith("_")} - exist == set()
    parts = ("_bucket", "_sum", "_count")
    ours = {name for name in exist if name.startswith("angelhair_") and not name.endswith(parts)}
    assert ours - named == set()


def test_the_alerts_are_rules_that_prometheus_would_read() -> None:
    (text,) = blocks("yaml")
    (group,) = yaml.safe_load(text)["groups"]
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for"}
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert re.search(r"angelhair_\w+", rule["expr"])
    clock = next(rule for rule in group["rules"] if rule["alert"] == "AngelhairClock")
    assert float(clock["expr"].rpartition(">")[2]) == limits.CLOCK_ERROR_MS / 1000 / 2


def backup_by_vacuum(source: Path, target: Path) -> None:
    (command,) = re.findall(r'sqlite3 (\S+) "(VACUUM INTO \'backup.db\')"', PAGE)
    assert command[0] == f"{DEFAULT_DATA}/{DATABASE_NAME}"
    with sqlite3.connect(source) as connection:
        connection.execute(command[1].replace("backup.db", str(target)))
    connection.close()


def backup_by_program(source: Path, target: Path) -> None:
    program = next(text for text in blocks("python") if "source.backup" in text)
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(source), str(target)], check=True)


@pytest.mark.parametrize("backup", [backup_by_vacuum, backup_by_program])
def test_a_backup_of_a_file_in_use_is_the_queue_at_that_instant(backup: object, tmp_path: Path) -> None:
    async def main() -> None:
        source, target = tmp_path / "queues.db", tmp_path / "copy.db"
        engine = Engine(await open_store(source), Identities(), SystemClock())
        await engine.create_queue("me", "jobs", QueueSettings())
        bodies = [b"acked before", b"waiting", b"acked since"]
        await engine.put("me", "jobs", [NewMessage(body) for body in bodies])
        (found,) = await engine.receive("me", "jobs", [Ask(1)])
        assert isinstance(found, list)
        await engine.ack("me", "jobs", [found[0].receipt])
        backup(source, target)  # type: ignore[operator]
        await engine.put("me", "jobs", [NewMessage(b"put since")])
        (found,) = await engine.receive("me", "jobs", [Ask(2)])
        assert isinstance(found, list)
        await engine.ack("me", "jobs", [found[1].receipt])
        await engine.store.close()

        restored = Engine(await open_store(target), Identities(), SystemClock())
        (found,) = await restored.receive("me", "jobs", [Ask(10)])
        assert isinstance(found, list)
        assert [one.body for one in found] == [b"waiting", b"acked since"]
        await restored.store.close()

    asyncio.run(main())


def test_after_a_restore_ids_are_given_out_again_as_the_page_warns(tmp_path: Path) -> None:
    """The one trap of a restore that loses a message: an old receipt fits a new one."""

    async def main() -> None:
        source, target = tmp_path / "queues.db", tmp_path / "copy.db"
        engine = Engine(await open_store(source), Identities(), SystemClock())
        await engine.create_queue("me", "jobs", QueueSettings())
        backup_by_vacuum(source, target)
        await engine.put("me", "jobs", [NewMessage(b"old")])
        (old,) = await engine.receive("me", "jobs", [Ask(1)])
        assert isinstance(old, list)
        await engine.store.close()
        restored = Engine(await open_store(target), Identities(), SystemClock())
        await restored.put("me", "jobs", [NewMessage(b"new")])
        (new,) = await restored.receive("me", "jobs", [Ask(1)])
        assert isinstance(new, list)
        assert new[0].id == old[0].id
        # The old receipt settles the new message: so the page says what it says.
        assert await restored.ack("me", "jobs", [old[0].receipt]) == [None]
        await restored.store.close()

    asyncio.run(main())
    assert "Stop all consumers before a restore" in PAGE.replace("\n", " ")
