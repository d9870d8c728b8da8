"""What is in a file, in two numbers, kept in the file itself: so that damage is found whenever somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

ROWS, DIGEST = b"angelhair.rows", b"angelhair.digest"
"""Where a Parquet file's own key-value metadata has them."""

NO_BODY = 0xFFFFFFFF


class Sum(NamedTuple):
    """What is in a run of messages: how many, and a number that changes with any id or body."""

    rows: int = 0
    digest: int = 0

    def and_of(self, numbers: pa.Array, bodies: pa.Array) -> Sum:
        """The order does not matter: each message is summed up by itself."""
        digest = self.digest
        for number, body in zip(numbers.to_pylist(), bodies.to_pylist(), strict=True):
            # A message that was erased has no body, which is not the same as an empty one.
            said = NO_BODY if body is None else crc32(body, number & 0xFFFFFFFF)
            digest ^= said ^ (number << 32)
        return Sum(self.rows + len(numbers), digest)

    def and_all(self, others: Iterable[Sum]) -> Sum:
        rows, digest = self
        for other in others:
            rows, digest = rows + other.rows, digest ^ other.digest
        return Sum(rows, digest)

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


def summed(filesystem: fs.FileSystem, path: str) -> Verified:
    """Reads every page of the file, and holds each against its checksum."""
    found = Sum()
    with filesystem.open_input_file(path) as stream, pq.ParquetFile(stream, page_checksum_verification=True) as file:
        kept = Sum.kept_in(file.metadata.metadata)
        for batch in file.iter_batches():
            found = found.and_of(batch.column("number"), batch.column("body"))
    if kept is None:
        return Verified(True, None, found)
    reason = "" if kept == found else f"{kept.rows} messages were written and {found.rows} are in it, or others"
    return Verified(kept == found, kept, found, reason)


def verify_file(filesystem: fs.FileSystem, path: str) -> Verified:
    """Whether the file holds what was written to it. A file that says nothing of itself is good if it can be read."""
    try:
        return summed(filesystem, path)
    except FileNotFoundError:
        return Verified(False, reason="it is not there")
    except (OSError, pa.ArrowException, KeyError) as error:
        return Verified(False, reason=f"it cannot be read: {' '.join(str(error).split())}")
