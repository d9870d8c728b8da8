"""Bodies and states of the same buckets, joined by id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from angelhair.spark.columns import RAW

BLANK = {"body": b"", "attributes": None, "origin": None}
"""What erasing leaves."""


def joined(bodies: pa.RecordBatch, states: pa.RecordBatch | pa.Table, names: Sequence[str]) -> pa.RecordBatch:
    """The columns of these names. A message that was never delivered has no state; a state without a body is left
    out."""
    indices = _positions(_numbers(states), _numbers(bodies))
    arrays: list[pa.Array] = []
    for name in names:
        if name in bodies.schema.names:
            arrays.append(bodies.column(name))
        else:
            arrays.append(_whole(states.column(name) if indices is None else states.column(name).take(indices)))
    if "erased_at" in names:
        _blank_erased(arrays, names)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([RAW.field(name) for name in names]))


def _blank_erased(arrays: list[pa.Array], names: Sequence[str]) -> None:
    """A writer that slept may have brought back what was erased: the state tells."""
    erased = arrays[names.index("erased_at")]
    if erased.null_count == len(erased):
        return
    for index, name in enumerate(names):
        if name in BLANK:
            blank = pa.scalar(BLANK[name], RAW.field(name).type)
            arrays[index] = pc.if_else(erased.is_valid(), blank, arrays[index])


def _numbers(rows: pa.RecordBatch | pa.Table) -> np.ndarray:
    numbers: np.ndarray = rows.column("number").to_numpy()
    return numbers


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _positions(known: np.ndarray, wanted: np.ndarray) -> pa.Array | None:
    """Where among the known numbers each of the wanted ones is, null for those that are not there. None when they are
    the same in the same order, as in buckets in which everything has been delivered."""
    if np.array_equal(known, wanted):
        return None
    order = np.argsort(known, kind="stable")
    positions = np.searchsorted(known, wanted, sorter=order)
    there = np.zeros(len(wanted), dtype=bool)
    inside = positions < len(known)
    found = order[positions[inside]]
    there[inside] = known[found] == wanted[inside]
    positions[inside] = found
    return pa.array(positions, mask=~there)
