"""What every format of a lake can do: files count from one atomic step on, which also says how far each lane has come.

Tasks write Parquet files; a file counts once a version of the table names it. The same version says up to which bucket
each lane is in the lake. Two archivers that prepared the same buckets both try to raise the same number from the same
version, and the table takes one of the two: this is what makes it exactly once. Files are replaced by others, when
small ones are joined or a message is erased, in one step too, and only if all of them are still there.
"""

from __future__ import annotations

import posixpath
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

import pyarrow as pa
from pyarrow import fs

from angelhair.errors import StoreRefused
from angelhair.spark.lakes.files import ARCHIVED, SCHEMA, UNFINISHED, LakeFile, folder_of, name_of

DAY_SECONDS = 86_400

MOST_TRIES = 20
"""Of a step that others were faster with, and that may still be done; each time somebody else came forward."""


class LakeMoved(StoreRefused):
    """Another job on the same lake was faster; what it did need not be done again."""


class NoLake(StoreRefused):
    """There is no lake at that place."""


class Lake(ABC):
    """The table at one of its versions: what is committed through it is refused when the table has moved on in a way
    that matters. So a job opens it, plans, writes, and commits through the very same object."""

    format: ClassVar[str]
    lane_inside: ClassVar[bool] = False
    """Whether files have the lane as a column too, and not only in their folder's name."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.filesystem, self.folder = folder_of(place)

    @classmethod
    @abstractmethod
    def made(cls, place: str, schema: pa.Schema = SCHEMA) -> Self:
        """The lake, made if it was not there, with these columns at least. Old files have null in what is new."""

    @property
    @abstractmethod
    def version(self) -> int: ...

    @abstractmethod
    def archived(self, incarnation: str, lane: int) -> int | None:
        """Buckets of the lane below this one are in the lake; None if none ever was."""

    @abstractmethod
    def held(self) -> list[LakeFile]:
        """The files of this version."""

    @abstractmethod
    def replaced(self) -> frozenset[str]:
        """Paths of files that this version does not need and older ones do."""

    @abstractmethod
    def commit(self, incarnation: str, files: Iterable[LakeFile], ends: Mapping[int, int]) -> None:
        """Makes the files count, and says how far each lane has come. Raises `LakeMoved`."""

    @abstractmethod
    def replace(self, gone: Sequence[LakeFile], files: Sequence[LakeFile], changes: bool = False) -> None:
        """The files take the place of others; `changes`: what they say is not the same. Raises `LakeMoved` when one of
        the others is not there any more."""

    @abstractmethod
    def vacuum(self, after_seconds: float) -> int:
        """Takes away the files that no version has needed for so long; returns how many went."""

    def files(self) -> list[str]:
        """The addresses of the files of this version, for any reader of Parquet."""
        root = self.place.rstrip("/")
        return sorted(f"{root}/{file.path}" for file in self.held())

    def stored(self) -> list[fs.FileInfo]:
        """Every Parquet file in the folder, whether it counts or not."""
        selector = fs.FileSelector(self.folder, recursive=True, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return [info for info in found if info.type == fs.FileType.File and info.path.endswith(".parquet")]

    def below(self, path: str) -> str:
        """A path in the file system, as the table has it."""
        return posixpath.relpath(path, self.folder)

    def delete(self, paths: Iterable[str]) -> int:
        """Those that are there; a job that ended half way may have come before."""
        deleted = 0
        for path in paths:
            try:
                self.filesystem.delete_file(posixpath.join(self.folder, path))
            except FileNotFoundError:
                continue
            deleted += 1
        return deleted

    def sweep(self, incarnation: str, lanes: Iterable[int]) -> int:
        """Takes away what jobs left behind that ended half way; returns how many files went.

        Only what can never count any more. Of archivers, files of buckets that are in the lake under other names: a
        commit of theirs would be refused. Of others, and of what was being written, what is a day old: another job may
        be at work right now.
        """
        ends = {lane: self.archived(incarnation, lane) or 0 for lane in lanes}
        named = {file.path for file in self.held()} | self.replaced()
        now = time.time()

        def is_left(path: str, modified: float) -> bool:
            name = name_of(path)
            if path.startswith(f"{UNFINISHED}/"):
                return now - modified > DAY_SECONDS
            if name is None or name.incarnation != incarnation or path in named:
                return False
            if name.made == ARCHIVED:
                return name.end_bucket <= ends.get(name.lane, 0)
            return now - modified > DAY_SECONDS

        return self.delete(
            path for info in self.stored() if is_left(path := self.below(info.path), info.mtime.timestamp())
        )
