"""Disks to try the store on: one that remembers every write, one that fails when told, one that never syncs.

Each is an SQLite VFS around the real one. They are registered under a name for as long as the object lives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import uuid4

import apsw

Name = str | apsw.URIFilename | None


class Event(NamedTuple):
    """Something that reached the disk, or was said to the world outside (`told`)."""

    kind: str
    file: str = ""
    offset: int = 0
    data: bytes = b""
    told: str = ""


class Disk(apsw.VFS):
    """Passes everything on. Subclasses override what they are about."""

    def __init__(self) -> None:
        self.name = f"disk-{uuid4().hex}"
        super().__init__(self.name, "")

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  SQLite's name
        return DiskFile(self, name, flags)

    def write(self, file: str, data: bytes, offset: int, proceed: Callable[[], None]) -> None:
        proceed()

    def sync(self, file: str, proceed: Callable[[], None]) -> None:
        proceed()

    def truncate(self, file: str, size: int, proceed: Callable[[], None]) -> None:
        proceed()


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Name, flags: list[int]) -> None:
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._file = "wal" if path.endswith("-wal") else "journal" if path.endswith("-journal") else "db"
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        proceed = super().xWrite
        self._disk.write(self._file, bytes(data), offset, lambda: proceed(data, offset))

    def xSync(self, flags: int) -> None:  # noqa: N802
        proceed = super().xSync
        self._disk.sync(self._file, lambda: proceed(flags))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        proceed = super().xTruncate
        self._disk.truncate(self._file, newsize, lambda: proceed(newsize))


class RecordingDisk(Disk):
    """Remembers what was written and synced, in order, while `recording`."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.recording = False

    def tell(self, line: str) -> None:
        self.events.append(Event("told", told=line))

    def write(self, file: str, data: bytes, offset: int, proceed: Callable[[], None]) -> None:
        self._note(Event("write", file, offset, data))
        proceed()

    def sync(self, file: str, proceed: Callable[[], None]) -> None:
        proceed()
        self._note(Event("sync", file))

    def truncate(self, file: str, size: int, proceed: Callable[[], None]) -> None:
        self._note(Event("truncate", file, size))
        proceed()

    def _note(self, event: Event) -> None:
        if self.recording:
            self.events.append(event)


class LazyDisk(Disk):
    """Never syncs: for states that are rebuilt, looked at and thrown away."""

    def sync(self, file: str, proceed: Callable[[], None]) -> None:
        pass


class FailingDisk(Disk):
    """Fails operations of one kind on one file as planned; works otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._planned: dict[tuple[str, str], tuple[int, type[apsw.Error], int]] = {}
        self.failures = 0
        self.refuse_to_open = False

    def fail(self, kind: str, file: str, error: type[apsw.Error], code: int) -> None:
        """The next one fails."""
        self.fail_at(kind, file, 0, error, code)

    def fail_at(self, kind: str, file: str, skipped: int, error: type[apsw.Error], code: int) -> None:
        """The one after the next `skipped` fails."""
        self._planned[kind, file] = (skipped, error, code)

    def heal(self) -> None:
        self._planned.clear()

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if self.refuse_to_open:
            raise apsw.CantOpenError("planned failure of open")
        return super().xOpen(name, flags)

    def write(self, file: str, data: bytes, offset: int, proceed: Callable[[], None]) -> None:
        self._maybe_fail("write", file)
        proceed()

    def sync(self, file: str, proceed: Callable[[], None]) -> None:
        self._maybe_fail("sync", file)
        proceed()

    def _maybe_fail(self, kind: str, file: str) -> None:
        if (kind, file) not in self._planned:
            return
        skipped, error, code = self._planned.pop((kind, file))
        if skipped:
            self._planned[kind, file] = (skipped - 1, error, code)
            return
        self.failures += 1
        planned = error(f"planned failure of {kind} on {file}")
        planned.extendedresult = code
        raise planned
