"""What is in a file, in two numbers, kept in the file itself: so that damage is found whenever somebody looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from angelhair.spark.lakes.files import digest_in, digester
from angelhair.spark.shaping import bytes_of

ROWS, SUMS = b"angelhair.rows", b"angelhair.sums"
"""Where a Parquet file's own key-value metadata has them."""

SUMMED = ["number", "body"]
"""The columns that are summed up."""

DAMAGES = (OSError, ValueError, LookupError, pa.ArrowException)
"""What reading a damaged file raises: a name in its footer may be no text any more, or not the name of a column."""

PART_BYTES = 4 * 1024 * 1024
"""How much of a file is read at a time."""

NO_BODY = -1
"""In place of a length: a message that was erased has no body, not an empty one."""


def checksums_of(bodies: pa.Array) -> pa.Array:
    """The CRC-32 of each; null where there is no body."""
    there = bodies.drop_null() if bodies.null_count else bodies
    sums = np.fromiter(map(crc32, there.to_pylist()), dtype=np.int64, count=len(there))
    if not bodies.null_count:
        return pa.array(sums)
    return pc.replace_with_mask(pa.nulls(len(bodies), pa.int64()), bodies.is_valid(), pa.array(sums))


class Sum(NamedTuple):
    """What is in a run of messages, in its order: how many, and CRCs of all their numbers, of the lengths of their
    bodies and of the bodies' bytes. A checksum of each body by itself would take five times as long."""

    rows: int = 0
    numbers: int = 0
    lengths: int = 0
    bodies: int = 0

    def and_of(self, numbers: pa.Array, bodies: pa.Array) -> Sum:
        """However the messages are cut into batches, the sum is the same."""
        lengths = pc.fill_null(pc.binary_length(bodies), NO_BODY)
        return Sum(
            self.rows + len(numbers),
            crc32(_integers(numbers), self.numbers),
            crc32(_integers(lengths), self.lengths),
            crc32(bytes_of(bodies), self.bodies),
        )

    @property
    def digest(self) -> str:
        return f"{self.numbers:08x}{self.lengths:08x}{self.bodies:08x}"

    def as_metadata(self) -> dict[bytes, bytes]:
        return {ROWS: b"%d" % self.rows, SUMS: self.digest.encode()}

    @classmethod
    def kept_in(cls, metadata: Mapping[bytes, bytes] | None) -> Sum | None:
        if not metadata or ROWS not in metadata or SUMS not in metadata:
            return None
        sums = metadata[SUMS].decode()
        return cls(int(metadata[ROWS]), *(int(sums[begin : begin + 8], 16) for begin in (0, 8, 16)))


def _integers(values: pa.Array) -> memoryview:
    return memoryview(values.to_numpy(zero_copy_only=False).astype("<i8", copy=False))


class Verified(NamedTuple):
    """What became of a look at a file. It is true if the file is good."""

    good: bool
    kept: Sum | None = None
    """What its writer said is in it; None of a file that was not written by an archive, or that cannot be read."""
    found: Sum | None = None
    """What is in it."""
    reason: str = ""
    """Why it is not good."""

    def __bool__(self) -> bool:
        return self.good


def summed(filesystem: fs.FileSystem, path: str, columns: Sequence[str] | None = SUMMED) -> Verified:
    """Reads these columns, None for all, and holds every page against its checksum."""
    found = Sum()
    with filesystem.open_input_file(path) as stream, pq.ParquetFile(stream, page_checksum_verification=True) as file:
        kept = Sum.kept_in(file.metadata.metadata)
        for batch in file.iter_batches(columns=columns):
            found = found.and_of(batch.column("number"), batch.column("body"))
    if kept is None:
        return Verified(True, None, found)
    reason = "" if kept == found else f"{kept.rows} messages were written and {found.rows} are in it, or others"
    return Verified(kept == found, kept, found, reason)


def _digest_of(filesystem: fs.FileSystem, path: str) -> str:
    digest = digester()
    with filesystem.open_input_stream(path) as stream:
        while part := stream.read(PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


def verify_file(filesystem: fs.FileSystem, path: str) -> Verified:
    """Whether the file is what was written. Its name has the digest of its bytes; if those are others, what is in it is
    looked at, to tell what is wrong. A file that says nothing of itself is good if it can be read."""
    try:
        named = digest_in(path)
        if named is None:
            return summed(filesystem, path, None)
        if named == _digest_of(filesystem, path):
            with filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as file:
                kept = Sum.kept_in(file.metadata.metadata)
            return Verified(True, kept, kept)
        looked = summed(filesystem, path, None)
        return looked._replace(good=False, reason=looked.reason or "its bytes are not those that were written")
    except FileNotFoundError:
        return Verified(False, reason="it is not there")
    except DAMAGES as error:
        return Verified(False, reason=f"it cannot be read: {' '.join(str(error).split())}")
