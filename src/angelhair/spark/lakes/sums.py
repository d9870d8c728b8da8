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

ROWS, DIGEST = b"angelhair.rows", b"angelhair.digest"
"""Where a Parquet file's own key-value metadata has them."""

SUMMED = ["number", "body"]
"""The columns that are summed up."""

DAMAGES = (OSError, ValueError, LookupError, pa.ArrowException)
"""What reading a damaged file raises: a name in its footer may be no text any more, or not the name of a column."""

PART_BYTES = 4 * 1024 * 1024
"""How much of a file is read at a time."""

NO_BODY = -1
"""In place of a checksum, which is never negative: a message that was erased has no body, not an empty one."""

_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93))
_HALF = np.uint64(32)


def checksums_of(bodies: pa.Array) -> pa.Array:
    """The CRC-32 of each; null where there is no body."""
    there = bodies.drop_null() if bodies.null_count else bodies
    sums = np.fromiter(map(crc32, there.to_pylist()), dtype=np.int64, count=len(there))
    if not bodies.null_count:
        return pa.array(sums)
    return pc.replace_with_mask(pa.nulls(len(bodies), pa.int64()), bodies.is_valid(), pa.array(sums))


class Sum(NamedTuple):
    """What is in a run of messages: how many, and a number that changes with any id or body."""

    rows: int = 0
    digest: int = 0

    def and_of(self, numbers: pa.Array, checksums: pa.Array) -> Sum:
        """The order does not matter: each message is summed up by itself, which bodies that changed places do not
        survive."""
        whose = numbers.to_numpy(zero_copy_only=False).astype(np.uint64)
        said = checksums.fill_null(NO_BODY).to_numpy(zero_copy_only=False).astype(np.uint64)
        mixed = (whose * _ODD[0]) ^ (said * _ODD[1] + _ODD[2])
        mixed = (mixed ^ (mixed >> _HALF)) * _ODD[2]
        mixed ^= mixed >> _HALF
        return Sum(self.rows + len(numbers), self.digest ^ int(np.bitwise_xor.reduce(mixed)))

    def as_metadata(self) -> dict[bytes, bytes]:
        return {ROWS: b"%d" % self.rows, DIGEST: b"%x" % self.digest}

    @classmethod
    def kept_in(cls, metadata: Mapping[bytes, bytes] | None) -> Sum | None:
        if not metadata or ROWS not in metadata or DIGEST not in metadata:
            return None
        return cls(int(metadata[ROWS]), int(metadata[DIGEST], 16))


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
            found = found.and_of(batch.column("number"), checksums_of(batch.column("body")))
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
