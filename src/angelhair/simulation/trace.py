"""One readable line per store call, fault and event; made only when somebody listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from angelhair.engine.store import (
    Applied,
    Change,
    Partition,
    Refused,
    Row,
    Slice,
    Span,
    Together,
    Values,
    Write,
)
from angelhair.simulation.scheduler import MICROSECONDS_PER_SECOND, Scheduler

ROWS_SHOWN = 6
"""Rows of one call that a line shows before it says how many there are."""
VALUE_WIDTH = 24
"""Characters of one value: a token can be told from another, a body does not fill the screen."""

Sink = Callable[[str], None]


class Trace:
    """Writes what happens, with virtual time and the process that it happened to."""

    __slots__ = ("_scheduler", "_sink")

    def __init__(self, scheduler: Scheduler, sink: Sink) -> None:
        self._scheduler = scheduler
        self._sink = sink

    def event(self, who: str, what: str) -> None:
        self._sink(f"{self._scheduler.now_us / MICROSECONDS_PER_SECOND:14.6f}  {who:<12} {what}")

    # ---- how things look

    @staticmethod
    def partition(partition: Partition) -> str:
        return f"{partition.table.name}/{partition.key}"

    def span(self, span: Span) -> str:
        ends = "" if span.first is None and span.last is None else f" {span.first!s}..{span.last!s}"
        limit = "" if span.limit is None else f" limit {span.limit}"
        return f"read   {self.partition(span.partition)}{ends}{limit}"

    def write(self, write: Write) -> str:
        return f"write  {self.partition(write.partition)} {self.rows(write.rows)}"

    def change(self, change: Change) -> str:
        parts = [f"change {self.partition(change.partition)}"]
        if change.expect_flags or change.set_flags:
            parts.append(f"flags ({_values(change.expect_flags)} -> {_values(change.set_flags)})")
        parts.extend(
            f"{key} ({_values(expect)} -> {'deleted' if values is None else _values(values)})"
            for key, expect, values in change.rows[:ROWS_SHOWN]
        )
        if len(change.rows) > ROWS_SHOWN:
            parts.append(f"… {len(change.rows)} rows")
        return " ".join(parts)

    def together(self, wanted: Together) -> str:
        return " + ".join([self.change(wanted.change), *map(self.write, wanted.writes), *map(self.span, wanted.spans)])

    def drop(self, partition: Partition) -> str:
        return f"drop   {self.partition(partition)}"

    @staticmethod
    def time(_: None) -> str:
        return "time"

    @staticmethod
    def rows(rows: Iterable[Row]) -> str:
        listed = list(rows)
        shown = " ".join(f"{key} ({_values(values)})" for key, values in listed[:ROWS_SHOWN])
        return shown if len(listed) <= ROWS_SHOWN else f"{shown} … {len(listed)} rows"

    def outcome(self, outcome: Any) -> str:
        if outcome is None:
            return "ok"
        if isinstance(outcome, Applied):
            return "applied"
        if isinstance(outcome, Refused):
            rows = self.rows(Row(key, values) for key, values in outcome.rows.items())
            return f"refused: {_flags(outcome.flags)}{rows}"
        if isinstance(outcome, Slice):
            return f"{_flags(outcome.flags)}{self.rows(outcome.rows)}{' and more' if outcome.more else ''}" or "nothing"
        if isinstance(outcome, Exception):
            return f"{type(outcome).__name__}: {outcome}"
        return str(outcome)


def _flags(flags: Values) -> str:
    return f"[{_values(flags)}] " if flags else ""


def _values(values: Values) -> str:
    return ", ".join(f"{column}={_short(value)}" for column, value in values.items())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= VALUE_WIDTH else f"{text[:VALUE_WIDTH]}…"
