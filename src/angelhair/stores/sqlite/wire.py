"""What crosses between a server and its writer process: frames of MessagePack, each behind its length.

Tables are told once, when the writer starts, and named by their place in that list from then on. Rows cross as they
are: the driver is the one to judge their values, so that one call's mistake stays that call's.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from angelhair.engine.store import APPLIED, Change, Partition, Table, Write
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
        numbers = self._numbers
        if call.verb == "drop":
            return [(numbers[table], key) for table, key in call.items]
        return [(numbers[item[0].table], item[0].key, *item[1:]) for item in call.items]


def decode_calls(payload: bytes, tables: Sequence[Table]) -> list[Call]:
    calls = []
    for verb, items, rows in _decode(payload):
        if verb == "write":
            made: list[Any] = [Write(Partition(tables[number], key), *rest) for number, key, *rest in items]
        elif verb == "change":
            made = [Change(Partition(tables[number], key), *rest) for number, key, *rest in items]
        else:
            made = [Partition(tables[number], key) for number, key in items]
        calls.append(Call(verb, made, rows))
    return calls


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
        else None if outcome is None
        else _UNEXPECTED if outcome is UNEXPECTED
        else _APPLIED
        for outcome in result
    ]


def _outcomes(codes: list[Any]) -> list[Any]:
    return [
        None if code is None
        else APPLIED if code == _APPLIED
        else UNEXPECTED if code == _UNEXPECTED
        else _made(code)
        for code in codes
    ]


def _error(error: Exception) -> dict[str, str]:
    return {"kind": type(error).__name__, "text": str(error)}


def _made(error: dict[str, str]) -> Exception:
    kind = _ERRORS.get(error["kind"])
    return ValueError(error["text"]) if kind is None else kind(error["text"])
