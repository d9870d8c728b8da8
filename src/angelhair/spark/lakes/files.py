"""The files of a lake: where they are, what they are called, and which columns they have.

    LAKE/QUEUE/lane=0/4f1c…-000000000000000-000000000000100-9b07….parquet

Below the queue's folder a folder for each lane; in a file's name the queue's incarnation, the first bucket and the one
after the last, and a digest of the file's bytes. So a name says what is in a file, the same work done twice leads to
the same name, and no file is ever replaced by another one under its name. A file that was made from others says by
what, `.joined` or `.erased`, and has a name that nobody has used before.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from angelhair.errors import InvalidRequest, StoreRefused
from angelhair.spark.columns import COLUMNS, arrow_schema_of

KEPT = tuple(name for name in COLUMNS if name != "lane")
"""The columns of a file, but for the incarnation. The lane is in its folder's name."""

FILE_SCHEMA = (
    arrow_schema_of(KEPT, "binary")
    .append(pa.field("checksum", pa.int64()))
    .append(pa.field("incarnation", pa.string()))
)
"""What the lake adds: the CRC-32 of the body as it was archived, and which of the queues of that name it was."""

SCHEMA = FILE_SCHEMA.append(pa.field("lane", COLUMNS["lane"].arrow))
"""The columns of the table."""

PRIVATE = ("body", "attributes")
"""What a message says: no statistics are kept of it, and it is what goes when a message is erased."""

UNFINISHED = "_unfinished"
"""The folder of files that are being written. Readers of tables pass over names that begin so."""

ARCHIVED, JOINED, ERASED = "", ".joined", ".erased"
"""What made a file."""

BUCKET_DIGITS = 15

MOST_NUMBER = 2**63 - 1
"""The last id of a file that does not tell: any may be in it."""

DIGEST_BYTES = 8
ONCE_DIGITS = 8
"""Of a file that was made from others, behind the digest."""

_NAME = re.compile(
    r"lane=(?P<lane>\d+)/(?P<incarnation>[^/-]+)-(?P<first>\d+)-(?P<end>\d+)(-[0-9a-f]+)?(?P<made>\.[a-z]+)?\.parquet$"
)
_DIGEST = re.compile(
    rf"/lane=\d+/[^/]*-(?P<digest>[0-9a-f]{{{2 * DIGEST_BYTES}}})"
    rf"([0-9a-f]{{{ONCE_DIGITS}}}({re.escape(JOINED)}|{re.escape(ERASED)}))?\.parquet$"
)


class Name(NamedTuple):
    """What a file's name says."""

    incarnation: str
    """Empty for a file that was made from one that says nothing; its name says nothing either."""
    lane: int
    first_bucket: int
    end_bucket: int
    made: str


class LakeFile(NamedTuple):
    """A file that a task has written and read back, or that a table names."""

    path: str
    """Below the table's folder."""
    lane: int
    size_bytes: int
    rows: int
    first: int
    last: int
    """Its ids. Without rows, both mean nothing."""
    digest: str = ""
    """Of its ids and bodies; known of what was just written."""

    @property
    def name(self) -> Name | None:
        """None for a file that somebody else made, such as another tool that joins files."""
        return name_of(self.path)


def file_name(name: Name, digest: str) -> str:
    return f"lane={name.lane}/{stem_of(name)}-{digest}{name.made}.parquet"


def stem_of(name: Name) -> str:
    if not name.incarnation:
        return "part"
    return f"{name.incarnation}-{name.first_bucket:0{BUCKET_DIGITS}d}-{name.end_bucket:0{BUCKET_DIGITS}d}"


def name_of(path: str) -> Name | None:
    found = _NAME.search(path)
    if found is None:
        return None
    return Name(found["incarnation"], int(found["lane"]), int(found["first"]), int(found["end"]), found["made"] or "")


def digester() -> hashlib.blake2b:
    """Sums up the bytes of a file, for its name."""
    return hashlib.blake2b(digest_size=DIGEST_BYTES)


def digest_in(path: str) -> str | None:
    """The digest of its bytes that a file's name has; None for a file that somebody else made."""
    found = _DIGEST.search(f"/{path}")
    return None if found is None else found["digest"]


def folder_of(place: str) -> tuple[fs.FileSystem, str]:
    """Where that is: an object store by its address, or a folder of this machine."""
    return fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)


RESERVED = ("_insight", "_runs", "_replays")
"""Folders of a lake that belong to no queue."""


def table_place(root: str, queue: str) -> str:
    if queue in RESERVED:
        raise InvalidRequest("queue", f"{queue} has no place in a lake: a folder of that name is for all queues")
    return f"{root.rstrip('/')}/{queue}"


def settle(filesystem: fs.FileSystem, path: str) -> None:
    """Waits until the file, and that it is there, would outlive a power failure. Object stores promise that by
    themselves; on a disk of this machine it has to be asked for, as buckets are dropped once they are in the lake."""
    if isinstance(filesystem, fs.LocalFileSystem):
        for each in (path, os.path.dirname(path)):
            descriptor = os.open(each, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def told_apart(files: Sequence[LakeFile]) -> None:
    """Buckets of one lane are in one file only."""
    names = sorted((file.lane, file.name.first_bucket, file.name.end_bucket) for file in files if file.name is not None)
    for (lane, _, end), (next_lane, first, _) in pairwise(names):
        if lane == next_lane and first < end:
            raise StoreRefused(f"bucket {first} of lane {lane} is in two files")
