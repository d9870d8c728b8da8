"""Reads: pages of rows, with the flags of their partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from angelhair.engine.store import Key, Partition, Row, Slice, Span, Values
from angelhair.stores.cassandra.bridge import Bridge
from angelhair.stores.cassandra.layout import present
from angelhair.stores.cassandra.statements import Select, Statements

PAGE_ROWS_MOST = 5_000
"""Rows in one page when they are known to be small."""

PAGE_ROWS_FIRST = 100
"""Rows in the first page when they may hold bodies, whose size is not known before; it sizes the following pages."""

PAGE_BYTES = 4 * 1024 * 1024
"""What a page is meant to hold: far below what a node sends in one message, large enough that trips cost little."""


class _Request(NamedTuple):
    partition: Partition
    columns: tuple[str, ...]
    restriction: str
    arguments: tuple[Any, ...]
    """What the restriction binds."""
    limit: int | None


class Selects:
    def __init__(self, bridge: Bridge, statements: Statements) -> None:
        self._bridge = bridge
        self._statements = statements

    async def span(self, span: Span, profile: str) -> Slice:
        if span.partition.table.small:
            flags, rows = await self._small(span.partition, profile)
            return _part_of(span, flags, rows)
        columns = tuple(span.partition.table.columns) if span.columns is None else span.columns
        restriction, arguments = _bounds(span.first, span.last)
        request = _Request(span.partition, columns, restriction, arguments, span.limit)
        flags, rows = await self._with_flags(request, profile)
        return Slice(flags, rows, span.limit is not None and len(rows) >= span.limit)

    async def named(self, partition: Partition, keys: Sequence[Key], profile: str) -> tuple[Values, dict[Key, Values]]:
        """The flags, and of the named rows those that are there, all of their columns."""
        if partition.table.small:
            found, wanted = await self._small(partition, profile), set(keys)
            return found[0], {row.key: row.values for row in found[1] if row.key in wanted}
        if not keys:
            flags, _ = await self._rows(_Request(partition, (), "", (), 1), profile)
            return flags or {}, {}
        request = _Request(partition, tuple(partition.table.columns), "named", (list(keys),), None)
        flags_then, rows = await self._with_flags(request, profile)
        return flags_then, dict(rows)

    async def _small(self, partition: Partition, profile: str) -> tuple[Values, list[Row]]:
        """All of a small partition, in one page. Whatever is wanted of it: a replica that has a change which the others
        have not gives them what was read (row 19 of docs/cassandra.md), and that is to be all of it."""
        flags, rows = await self._rows(_Request(partition, tuple(partition.table.columns), "", (), None), profile)
        return flags or {}, rows

    async def _with_flags(self, request: _Request, profile: str) -> tuple[Values, list[Row]]:
        flags, rows = await self._rows(request, profile)
        if flags is not None or not request.partition.table.flags or not request.restriction:
            return flags or {}, rows
        # CQL gives static columns along with rows; a restriction that matches no row hides them. The partition's head
        # shows them, and whether it has any rows at all: if not, that is the whole answer, of one instant.
        head_flags, head_rows = await self._rows(request._replace(restriction="", arguments=(), limit=1), profile)
        if not head_rows:
            return head_flags or {}, []
        # The flags just read are newer than the rows that were missing, and must not be: look for the rows again.
        flags, rows = await self._rows(request, profile)
        return (flags if flags is not None else head_flags or {}), rows

    async def _rows(self, request: _Request, profile: str) -> tuple[Values | None, list[Row]]:
        """Page by page. The flags are those of the first page, so at least as old as any row; None if nothing came."""
        table, names = request.partition.table, request.columns
        statement = await self._statements.get(Select(table, names, request.restriction, request.limit is not None))
        limits = () if request.limit is None else (request.limit,)
        bound = statement.bind((request.partition.key, *request.arguments, *limits))
        heavy = [index for index, name in enumerate(names, 1) if table.columns[name] is bytes]
        bound.fetch_size = PAGE_ROWS_FIRST if heavy and not table.small else PAGE_ROWS_MOST
        flag_names, first_flag = tuple(table.flags), 1 + len(names)
        flags: Values | None = None
        rows: list[Row] = []
        paging_state: bytes | None = None
        while True:
            page = await self._bridge.execute(bound, profile, paging_state)
            if flags is None and page.rows:
                flags = present(flag_names, page.rows[0][first_flag:])
            # A partition that has flags but no rows answers with one row that has no key.
            rows += [
                Row(values[0], present(names, values[1:first_flag])) for values in page.rows if values[0] is not None
            ]
            paging_state = page.paging_state
            if paging_state is None:
                return flags, rows
            if heavy and page.rows:
                bound.fetch_size = _next_page_rows(page.rows, heavy)
                if request.limit is not None:
                    # A page that could hold the whole limit is answered without paging: from the beginning again.
                    bound.fetch_size = max(1, min(bound.fetch_size, request.limit - 1))


def _part_of(span: Span, flags: Values, rows: Sequence[Row]) -> Slice:
    inside = [
        row if span.columns is None else Row(row.key, {n: row.values[n] for n in span.columns if n in row.values})
        for row in rows
        if (span.first is None or row.key >= span.first) and (span.last is None or row.key <= span.last)  # type: ignore[operator]
    ][: span.limit]
    return Slice(flags, inside, span.limit is not None and len(inside) >= span.limit)


def _next_page_rows(rows: Sequence[tuple[Any, ...]], heavy: Sequence[int]) -> int:
    weight = sum(len(values[index] or b"") for values in rows for index in heavy)
    return max(1, min(PAGE_ROWS_MOST, PAGE_BYTES * len(rows) // max(1, weight)))


def _bounds(first: Key | None, last: Key | None) -> tuple[str, tuple[Any, ...]]:
    if first is None:
        return ("", ()) if last is None else ("to", (last,))
    if last is None:
        return "from", (first,)
    return ("exact", (first,)) if first == last else ("between", (first, last))
