"""What crosses between a server and its writer process: frames of MessagePack, each behind its length.

Tables are told once, when the writer starts, and named by their place in that list from then on. Rows cross as they
are: the driver is the one to judge their values, so that one call's mistake stays that call's.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from angelhair.engine.store import (
    APPLIED,
    Change,
    Partition,
    Row,
    RowChange,
    RowsInARow,
    Slice,
    Span,
    Table,
    Together,
    Write,
)
from angelhair.errors import OutcomeUnknown, StoreError, StoreRefused, Unavailable
from angelhair.stores.sqlite.connection import Place
from angelhair.stores.sqlite.transactions import UNEXPECTED, Call
from angelhair.stores.sqlite.writing import Result

LENGTH_BYTES = 4
"""Of the number before each frame; 4 GiB are far more than a group of calls holds."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Opening(NamedTuple):
    """The first frame to a writer: which file, and what is in it."""

    place: Place
    tables: Sequence[Table]
    version: int


class Line(NamedTuple):
    """Something that the writer has to log."""

    level: int
    logger: str
    text: str


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(LENGTH_BYTES, "little") + payload


class Frames:
    """Cuts what arrives, in whatever pieces, into frames."""

    def __init__(self) -> None:
        self._arrived = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        arrived = self._arrived
        arrived += data
        frames: list[bytes] = []
        start = 0
        while len(arrived) - start >= LENGTH_BYTES:
            begin = start + LENGTH_BYTES
            end = begin + int.from_bytes(arrived[start:begin], "little")
            if len(arrived) < end:
                break
            frames.append(bytes(arrived[begin:end]))
            start = end
        del arrived[:start]
        return frames


# --- to the writer ----------------------------------------------------------------------------------------------------


def encode_opening(opening: Opening) -> bytes:
    place, tables, version = opening
    told = [
        (table.name, table.conditional, table.key.__name__, _kinds(table.columns), _kinds(table.flags))
        for table in tables
    ]
    return _encode((place.path, place.durability, place.busy_timeout_ms, place.checkpoint_pages, told, version))


def decode_opening(payload: bytes) -> Opening:
    path, durability, busy_timeout_ms, checkpoint_pages, told, version = _decode(payload)
    tables = [
        Table(name, conditional, _kind(key), _named(columns), _named(flags))
        for name, conditional, key, columns, flags in told
    ]
    return Opening(Place(path, None, durability, busy_timeout_ms, checkpoint_pages), tables, version)


def _kinds(columns: Any) -> dict[str, str]:
    return {name: kind.__name__ for name, kind in columns.items()}


def _named(columns: dict[str, str]) -> dict[str, Any]:
    return {name: _kind(kind) for name, kind in columns.items()}


def _kind(name: str) -> Any:
    return getattr(builtins, name)


class CallsEncoder:
    def __init__(self, tables: Sequence[Table]) -> None:
        self._numbers = {table: number for number, table in enumerate(tables)}

    def encode(self, calls: Sequence[Call]) -> bytes:
        """Raises what is wrong with a value; which of several calls has it, only alone shows."""
        return _encode([(call.verb, self._items(call), call.rows) for call in calls])

    def _items(self, call: Call) -> list[Any]:
        if call.verb == "drop":
            return [(self._numbers[table], key) for table, key in call.items]
        if call.verb == "together":
            return [
                (self._change(change), [*map(self._located, writes)], [*map(self._located, spans)])
                for change, writes, spans in call.items
            ]
        return [*map(self._change if call.verb == "change" else self._located, call.items)]

    def _change(self, change: Change) -> tuple[Any, ...]:
        """Values that rows have in common cross once, and are one object again on the other side."""
        (table, key), rows, *rest = change
        alike: list[tuple[list[Any], Any, Any]] = []
        keys: list[Any] = []
        expect, values = None, None
        for row_key, row_expect, row_values in rows:
            if row_expect is not expect or row_values is not values or not keys:
                keys, expect, values = [], row_expect, row_values
                alike.append((keys, expect, values))
            keys.append(row_key)
        return (self._numbers[table], key, alike, *rest)

    def _located(self, item: tuple[Any, ...]) -> tuple[Any, ...]:
        """A write or a span, its table by number."""
        (table, key), *rest = item
        if isinstance(rest[0], RowsInARow):
            rest[0] = list(rest[0])
        return (self._numbers[table], key, *rest)


class CallsDecoder:
    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables

    def decode(self, payload: bytes) -> list[Call]:
        return [Call(verb, [self._item(verb, item) for item in items], rows) for verb, items, rows in _decode(payload)]

    def _item(self, verb: str, item: list[Any]) -> Any:
        if verb == "together":
            change, writes, spans = item
            return Together(
                self._item("change", change),
                [self._item("write", write) for write in writes],
                [self._span(span) for span in spans],
            )
        number, key, *rest = item
        partition = Partition(self._tables[number], key)
        if verb == "write":
            return Write(partition, *rest)
        if verb == "change":
            alike, *others = rest
            return Change(
                partition, [RowChange(key, expect, values) for keys, expect, values in alike for key in keys], *others
            )
        return partition

    def _span(self, item: list[Any]) -> Span:
        number, key, first, last, limit, columns = item
        wanted = None if columns is None else tuple(columns)
        return Span(Partition(self._tables[number], key), first, last, limit, wanted)


# --- from the writer --------------------------------------------------------------------------------------------------

_OPENED, _ANSWERS, _LINE = range(3)
_APPLIED, _UNEXPECTED = 1, 2
_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (Unavailable, OutcomeUnknown, StoreRefused, ValueError, TypeError, OverflowError)
}


def encode_opened(error: Exception | None) -> bytes:
    return _encode((_OPENED, None if error is None else _error(error)))


def encode_answers(results: Sequence[Result]) -> bytes:
    return _encode((_ANSWERS, [_result(result) for result in results]))


def encode_line(line: Line) -> bytes:
    return _encode((_LINE, line))


def decode_said(payload: bytes) -> Exception | list[Result] | Line | None:
    """Whether it is open (None, or why not), or the results of calls in the order in which they came, or a line."""
    kind, said = _decode(payload)
    if kind == _OPENED:
        return None if said is None else _made(said)
    if kind == _ANSWERS:
        return [_made(result) if isinstance(result, dict) else _outcomes(result) for result in said]
    return Line(*said)


def _result(result: Result) -> Any:
    if isinstance(result, Exception):
        return _error(result)
    return [
        _error(outcome) if isinstance(outcome, StoreError)
        else outcome if outcome is None or isinstance(outcome, list)
        else _UNEXPECTED if outcome is UNEXPECTED
        else _APPLIED
        for outcome in result
    ]


def _outcomes(codes: list[Any]) -> list[Any]:
    return [
        None if code is None
        else APPLIED if code == _APPLIED
        else UNEXPECTED if code == _UNEXPECTED
        else [_slice(part) for part in code] if isinstance(code, list)
        else _made(code)
        for code in codes
    ]


def _slice(part: list[Any]) -> Slice:
    flags, rows, more = part
    return Slice(flags, [Row(*row) for row in rows], more)


def _error(error: Exception) -> dict[str, str]:
    return {"kind": type(error).__name__, "text": str(error)}


def _made(error: dict[str, str]) -> Exception:
    kind = _ERRORS.get(error["kind"])
    return ValueError(error["text"]) if kind is None else kind(error["text"])
