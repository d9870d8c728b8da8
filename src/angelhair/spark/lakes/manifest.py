"""A lake as plain Parquet files and a chain of manifests: for who has no reader of tables, or wants none.

    LAKE/QUEUE/_manifest/00000000000000000017.json

Version 17 is that file. It is created only if it does not exist, and whole: written under another name, then linked. It
names the files that came and went with it, and how far each lane came. Every hundredth names all that there is, so that
a reader begins there. To read the lake, read the files that the newest version holds; the folder may hold others.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyarrow import fs

from angelhair.errors import StoreRefused
from angelhair.spark.lakes.files import SCHEMA, LakeFile, folder_of, settle
from angelhair.spark.lakes.port import MOST_TRIES, Lake, LakeMoved, NoLake

FOLDER = "_manifest"
COMPLETE_EVERY = 100
DIGITS = 20

_VERSION = re.compile(rf"(\d{{{DIGITS}}})\.json")


@dataclass
class State:
    """All that a version says, with what came before it."""

    version: int = -1
    files: dict[str, LakeFile] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)
    """By path, when it was replaced."""
    archived: dict[str, int] = field(default_factory=dict)

    def follow(self, document: Mapping[str, Any]) -> None:
        if "files" in document:
            self.files = {entry["path"]: LakeFile(**entry) for entry in document["files"]}
            self.replaced = dict(document["replaced"])
        else:
            for path in document["removed"]:
                del self.files[path]
                self.replaced[path] = document["at_ms"]
            for path in document["forgotten"]:
                self.replaced.pop(path, None)
            self.files |= {entry["path"]: LakeFile(**entry) for entry in document["added"]}
        self.archived |= document["archived"]
        self.version = document["version"]


Change = Callable[[State], dict[str, Any]]
"""From the newest version to what the next one says. Raises `LakeMoved` when what it rests on is not so any more."""


class ManifestLake(Lake):
    format = "parquet"

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._chain = _chain_of(place)
        self._state = self._newest()

    @classmethod
    def made(cls, place: str, schema: pa.Schema = SCHEMA) -> Self:
        """Columns come with the files: there is nothing to change when there are new ones."""
        chain = _chain_of(place)
        if not _versions(chain):
            chain.mkdir(parents=True, exist_ok=True)
            _link(chain, _document(0))
        return cls(place)

    @property
    def version(self) -> int:
        return self._state.version

    def archived(self, incarnation: str, lane: int) -> int | None:
        return self._state.archived.get(_lane(incarnation, lane))

    def held(self) -> list[LakeFile]:
        return list(self._state.files.values())

    def replaced(self) -> frozenset[str]:
        return frozenset(self._state.replaced)

    def commit(self, incarnation: str, files: Iterable[LakeFile], ends: Mapping[int, int]) -> None:
        wanted = {_lane(incarnation, lane): end for lane, end in ends.items()}
        planned = {lane: self._state.archived.get(lane) for lane in wanted}
        added = [file._asdict() for file in files if file.rows]

        def change(newest: State) -> dict[str, Any]:
            if planned != {lane: newest.archived.get(lane) for lane in wanted}:
                raise LakeMoved(f"the lake at {self.place} was changed meanwhile: its lanes have come further")
            return {"added": added, "archived": wanted}

        self._next(change)

    def replace(self, gone: Sequence[LakeFile], files: Sequence[LakeFile], changes: bool = False) -> None:
        removed = [file.path for file in gone]

        def change(newest: State) -> dict[str, Any]:
            if not newest.files.keys() >= set(removed):
                raise LakeMoved(f"files of the lake at {self.place} were replaced meanwhile")
            return {"added": [file._asdict() for file in files], "removed": removed}

        self._next(change)

    def vacuum(self, after_seconds: float) -> int:
        """Old manifests go too: those that nobody begins at or comes through."""
        before_ms = _now_ms() - int(after_seconds * 1_000)
        outlived = [path for path, at_ms in self._state.replaced.items() if at_ms <= before_ms]
        deleted = self.delete(outlived)
        if outlived:
            self._next(lambda newest: {"forgotten": [path for path in outlived if path in newest.replaced]})
        begin = self.version // COMPLETE_EVERY * COMPLETE_EVERY
        for version in _versions(self._chain):
            path = _path(self._chain, version)
            if version < begin and path.stat().st_mtime * 1_000 <= before_ms:
                path.unlink(missing_ok=True)
        return deleted

    def _next(self, change: Change) -> None:
        """Only the next version, from the newest; whoever finds that taken looks again whether it may."""
        for _ in range(MOST_TRIES):
            newest = self._newest()
            version = newest.version + 1
            document = _document(version) | change(newest)
            newest.follow(document)
            if version % COMPLETE_EVERY == 0:
                document |= {
                    "files": [file._asdict() for file in newest.files.values()],
                    "replaced": newest.replaced,
                    "archived": newest.archived,
                }
            if _link(self._chain, document):
                self._state = newest
                return
        raise LakeMoved(f"the lake at {self.place} changes all the time")

    def _newest(self) -> State:
        versions = _versions(self._chain)
        if not versions:
            raise NoLake(f"there is no lake at {self.place}")
        state = State()
        for version in range(versions[-1] // COMPLETE_EVERY * COMPLETE_EVERY, versions[-1] + 1):
            path = _path(self._chain, version)
            try:
                state.follow(json.loads(path.read_bytes()))
            except FileNotFoundError:
                raise StoreRefused(f"{path} is missing: the lake cannot be read without it") from None
        return state


def _chain_of(place: str) -> Path:
    filesystem, folder = folder_of(place)
    if not isinstance(filesystem, fs.LocalFileSystem):
        raise StoreRefused(
            f"plain Parquet with a manifest needs a file system that links files, which {place} is not; "
            "take --format delta there"
        )
    return Path(folder) / FOLDER


def _versions(chain: Path) -> list[int]:
    names = os.listdir(chain) if chain.is_dir() else []
    return sorted(int(found[1]) for name in names if (found := _VERSION.fullmatch(name)))


def _path(chain: Path, version: int) -> Path:
    return chain / f"{version:0{DIGITS}d}.json"


def _link(chain: Path, document: Mapping[str, Any]) -> bool:
    """False when somebody else has made that version."""
    disk = fs.LocalFileSystem()
    scratch, final = chain / f".{uuid.uuid4().hex}", _path(chain, document["version"])
    scratch.write_text(json.dumps(document))
    try:
        settle(disk, str(scratch))
        os.link(scratch, final)
        settle(disk, str(final))
    except FileExistsError:
        return False
    finally:
        scratch.unlink()
    return True


def _document(version: int) -> dict[str, Any]:
    return {
        "version": version, "at_ms": _now_ms(), "added": [], "removed": [], "forgotten": [], "archived": {},
    }


def _lane(incarnation: str, lane: int) -> str:
    return f"{incarnation}/{lane}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
