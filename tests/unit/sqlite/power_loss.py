"""Power loss: the file as it may look if the power had failed at any moment, rebuilt and opened again.

The store works on a disk that records. A cut is a place in the recording. What was synced before it is on the disk;
of what was written and not synced, each sector may or may not have arrived, in any order. Whatever the store had
confirmed before the cut must be there in every such state, and the file must be sound.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

from angelhair.stores.sqlite import open_store
from angelhair.stores.sqlite.connection import Durability
from tests.unit.sqlite.disks import Event, LazyDisk, RecordingDisk
from tests.unit.sqlite.killing import integrity_complaints
from tests.unit.sqlite.workload import broken_promises, hammer

SECTOR_BYTES = 512
"""What a disk writes whole or not at all."""

TASKS = 4
STEPS = 45
"""Enough for drops of whole partitions and, with small checkpoints, for the log to start over several times."""

CHECKPOINT_PAGES = 30

STATES_PER_RECORDING = 500


@dataclass
class PowerLoss:
    states: int = 0
    confirmed: int = 0
    """Confirmations that had been given before the cuts, over all states."""
    checkpoints: int = 0
    broken_states: int = 0
    complaints: list[str] = field(default_factory=list)
    """The first of each broken state."""


@dataclass
class Recording:
    files: dict[str, bytes]
    """The files when the recording began; everything in them was synced."""
    events: list[Event]


def lose_power(folder: Path, states: int, durability: Durability = "full", seed: int = 0) -> PowerLoss:
    dice = random.Random(seed)
    result = PowerLoss()
    with asyncio.Runner() as runner:
        while result.states < states:
            recording = runner.run(_record(folder / f"recorded-{result.states}.db", durability))
            result.checkpoints += sum(event.kind == "sync" and event.file == "db" for event in recording.events)
            count = min(STATES_PER_RECORDING, states - result.states)
            runner.run(_check_states(recording, folder / "rebuilt.db", count, dice, result))
    return result


async def _record(path: Path, durability: Durability) -> Recording:
    disk = RecordingDisk()
    store = await open_store(path, vfs=disk.name, durability=durability, checkpoint_pages=CHECKPOINT_PAGES)
    files = {"db": path.read_bytes(), "wal": Path(f"{path}-wal").read_bytes()}
    disk.recording = True
    await hammer(store, disk.tell, "run", TASKS, STEPS)
    disk.recording = False
    await store.close()
    return Recording(files, disk.events)


async def _check_states(recording: Recording, path: Path, count: int, dice: random.Random, result: PowerLoss) -> None:
    disk = LazyDisk()
    cuts = sorted(dice.randrange(len(recording.events) + 1) for _ in range(count))
    synced = {name: bytearray(content) for name, content in recording.files.items()}
    pending: dict[str, list[Event]] = {name: [] for name in synced}
    told: list[str] = []
    position = 0
    for cut in cuts:
        for event in recording.events[position:cut]:
            if event.kind == "told":
                told.append(event.told)
            elif event.kind == "sync":
                for written in pending[event.file]:
                    _apply(synced[event.file], written)
                pending[event.file].clear()
            else:
                pending[event.file].append(event)
        position = cut
        for name, content in synced.items():
            target = path if name == "db" else Path(f"{path}-wal")
            target.write_bytes(_what_arrived(content, pending[name], dice))
        Path(f"{path}-shm").unlink(missing_ok=True)
        store = await open_store(path, vfs=disk.name)
        complaints = await broken_promises(store, told)
        await store.close()
        complaints += integrity_complaints(path, disk.name)
        result.states += 1
        result.confirmed += len(told)
        if complaints:
            result.broken_states += 1
            result.complaints.append(f"cut at {cut} of {len(recording.events)}: {complaints[0]}")


def _what_arrived(synced: bytearray, pending: list[Event], dice: random.Random) -> bytes:
    content = bytearray(synced)
    arrives = dice.choice((0.0, 0.1, 0.5, 0.9, 1.0))
    for event in pending:
        if event.kind == "truncate":
            if dice.random() < arrives:
                _apply(content, event)
            continue
        start = 0
        while start < len(event.data):
            # A write is torn only where a sector ends.
            end = min(len(event.data), start + SECTOR_BYTES - (event.offset + start) % SECTOR_BYTES)
            if dice.random() < arrives:
                _apply(content, Event("write", event.file, event.offset + start, event.data[start:end]))
            start = end
    return bytes(content)


def _apply(content: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        del content[event.offset :]
        return
    missing = event.offset + len(event.data) - len(content)
    if missing > 0:
        content.extend(bytes(missing))
    content[event.offset : event.offset + len(event.data)] = event.data
