"""Rows as a call carries them: cut to what was asked for, or kept as they were when they were sent."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.store import Change, Row, RowChange, Write


def with_columns(rows: Sequence[Row], columns: tuple[str, ...] | None) -> Sequence[Row]:
    if columns is None:
        return rows
    return [Row(row.key, {column: row.values[column] for column in columns if column in row.values}) for row in rows]


def frozen_write(write: Write) -> Write:
    """What lands long after the call must not follow what the caller does with its values meanwhile."""
    return write._replace(rows=[Row(key, dict(values)) for key, values in write.rows])


def frozen_change(change: Change) -> Change:
    return change._replace(
        rows=[
            RowChange(key, dict(expect), None if values is None else dict(values))
            for key, expect, values in change.rows
        ],
        expect_flags=dict(change.expect_flags),
        set_flags=dict(change.set_flags),
    )
