"""Lakes for the tests, made without a queue: files of small buckets, as an archive writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.dataset as ds

from angelhair.spark.lakes import Lake, LakeFile, folder_of, open_lake
from angelhair.spark.lakes.drafts import Draft
from angelhair.spark.lakes.files import ARCHIVED, FILE_SCHEMA, SCHEMA, Name
from angelhair.spark.lakes.sums import Sum

FORMATS = ("delta", "iceberg", "parquet")
INCARNATION = "0123abcd"
BUCKET_SIZE = 10


class OnPurpose(Exception):
    pass


def failing_at(wanted: str) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name == wanted:
            raise OnPurpose(name)

    return step


def messages(lane: int, numbers: Sequence[int], incarnation: str) -> pa.Table:
    bodies = [b"body %d" % number for number in numbers]
    columns: dict[str, Any] = {
        "id": [f"{lane}-{number}" for number in numbers],
        "number": numbers,
        "bucket": [number // BUCKET_SIZE for number in numbers],
        "body": bodies,
        "attributes": ['{"for": "somebody"}'] * len(bodies),
        "enqueued_at": [datetime(2026, 1, 1, tzinfo=UTC)] * len(bodies),
        "deliveries": [1] * len(bodies),
        "state": ["acked"] * len(bodies),
        "checksum": [crc32(body) for body in bodies],
        "incarnation": [incarnation] * len(bodies),
        "lane": [lane] * len(bodies),
    }
    nothing = [None] * len(bodies)
    return pa.table({field.name: pa.array(columns.get(field.name, nothing), field.type) for field in SCHEMA})


def file_of(
    lake: Lake, first_bucket: int, end_bucket: int, lane: int = 0, incarnation: str = INCARNATION,
    schema: pa.Schema | None = None,
) -> LakeFile:
    """A file of these buckets, all of whose ids were written; it does not count yet."""
    name = Name(incarnation, lane, first_bucket, end_bucket, ARCHIVED)
    schema = schema or (SCHEMA if lake.lane_inside else FILE_SCHEMA)
    table = messages(lane, range(first_bucket * BUCKET_SIZE, end_bucket * BUCKET_SIZE), incarnation)
    written = Sum()
    with Draft(lake.place, name, schema) as draft:
        for batch in table.select(schema.names).cast(schema).to_batches():
            written = written.and_of(batch.column("number"), batch.column("body"))
            draft.add(batch)
        return draft.finish(written)


def filled(lake: Lake, ends: Sequence[int], lane: int = 0, incarnation: str = INCARNATION) -> None:
    """A file and a commit for each step from one bucket to the next."""
    begin = lake.archived(incarnation, lane) or 0
    for end in ends:
        lake.commit(incarnation, [file_of(lake, begin, end, lane, incarnation)], {lane: end})
        begin = end


def rows_in(place: str) -> pa.Table:
    """All that the newest version holds, read from its files."""
    filesystem, _ = folder_of(place)
    paths = [folder_of(address)[1] for address in open_lake(place).files()]
    schema = SCHEMA.remove(SCHEMA.get_field_index("lane"))
    return ds.dataset(paths, schema, format="parquet", filesystem=filesystem).to_table().sort_by("number")


def ids_in(place: str) -> Counter[int]:
    return Counter(rows_in(place).column("number").to_pylist())


def on_disk(lake: Path) -> set[str]:
    return {str(path.relative_to(lake)) for path in lake.rglob("*.parquet")}
