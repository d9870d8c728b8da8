"""Bodies and states are joined by id, in whichever order the buckets come."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from angelhair.spark.columns import RAW
from angelhair.spark.reading.joining import joined


def rows(name: str, numbers: Sequence[int], values: Sequence[object]) -> pa.RecordBatch:
    fields = [RAW.field("number"), RAW.field(name)]
    arrays = [pa.array(column, field.type) for column, field in zip((numbers, values), fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


@pytest.mark.parametrize(
    ("bodies", "states", "found"),
    [
        ([1, 2, 3], [], [None, None, None]),
        ([1, 2, 3], [1, 2, 3], [10, 20, 30]),
        ([10, 11, 9], [10, 9], [100, None, 90]),
        ([1, 2], [2, 5, 7], [None, 20]),
        ([3], [1, 2], [None]),
        ([], [1], []),
    ],
)
@pytest.mark.parametrize("as_table", [False, True])
def test_every_body_has_its_own_state_or_none(
    bodies: list[int], states: list[int], found: list[int | None], as_table: bool
) -> None:
    known = rows("delivery", states, [10 * number for number in states])
    kept = pa.Table.from_batches([known] if states else [], known.schema).combine_chunks() if as_table else known
    told = rows("body", bodies, [b"%d" % number for number in bodies])
    batch = joined(told, kept, ("number", "body", "delivery"))
    assert batch.schema == pa.schema([RAW.field(name) for name in ("number", "body", "delivery")])
    assert batch.to_pydict() == {
        "number": bodies, "body": [b"%d" % number for number in bodies], "delivery": found
    }
