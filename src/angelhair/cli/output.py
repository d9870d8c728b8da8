"""How commands print: tables on a terminal, tab-separated lines elsewhere, JSON on request; progress bars on stderr.

Lines for other programs have no heading, one record each, with `-` for what is not there. In both, whatever might move
a cursor or end a line is written as an escape that stands for bytes (`\\n`, `\\t`, `\\\\`, `\\x1b`), which `printf %b`
undoes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal, NamedTuple, TextIO

Cell = str | bytes | int | float | bool | datetime | None
Advance = Callable[[int], None]

COLUMN_GAP = 3
"""Characters between two columns of a table."""

REST_WIDTH = 20
"""Characters that the column which takes the rest has at least, before others are left out for it."""

_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# C0 and C1 controls, delete, line and paragraph separators, and what turns the direction of writing around.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPED = re.compile(r"\\|" + _UNSAFE.pattern)


class Room(Enum):
    """What becomes of a column where the terminal is narrow."""

    KEPT = "shown whole, whatever the width: somebody will copy it"
    LEFT_OUT = "not shown at all"
    CUT = "takes what is left, and ends in an ellipsis"
    WRAPPED = "takes what is left, in several lines"


class Column(NamedTuple):
    title: str
    numeric: bool = False
    room: Room = Room.KEPT
    style: Callable[[str], str] | None = None
    """From a cell's text to its colour."""


def on_terminal(stream: TextIO) -> bool:
    return stream.isatty()


# --- text that is safe to print ---------------------------------------------------------------------------------------


def escaped(body: bytes | str) -> str:
    """One line without anything that a terminal acts on."""
    text = body.decode(errors="surrogateescape") if isinstance(body, bytes) else body
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    short = _SHORT.get(character)
    if short is not None:
        return short
    # A lone surrogate is how a byte came along that is no UTF-8.
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))


def readable(body: bytes) -> str:
    """For a terminal: lines and tabs stay, the rest that it would act on is escaped."""
    text = body.decode(errors="surrogateescape")
    return _UNSAFE.sub(lambda found: found.group() if found.group() in "\n\t" else _escape(found), text)


def cell(value: Cell) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case datetime():
            return rfc3339(value)
        case bytes() | str():
            return escaped(value)
        case _:
            return str(value)


def rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


# --- printing ---------------------------------------------------------------------------------------------------------


def print_json(document: object, *, one_line: bool = False) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=None if one_line else 2)
    print(_UNSAFE.sub(_json_escape, text))


def _json_escape(found: re.Match[str]) -> str:
    return found.group() if found.group() == "\n" else f"\\u{ord(found.group()):04x}"


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    texts = [[cell(value) for value in row] for row in rows]
    if on_terminal(sys.stdout) and _print_rich(columns, texts):
        return
    for row in texts:
        print("\t".join(row))


def _print_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> bool:
    """False when there is nothing to draw tables with."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:
        return False
    if not rows:
        return True
    console = Console(file=sys.stdout, highlight=False)
    # Where even that is too wide, lines go on in the next one of the terminal: rich would cut what is to be kept.
    console.width = max(console.width, least_width(columns, rows))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    shown = fitting(columns, rows, console.width)
    for index in shown:
        column = columns[index]
        table.add_column(
            column.title, justify="right" if column.numeric else "left",
            # Where room is short it is taken from the columns that could be wrapped, and from no other.
            no_wrap=column.room not in _TAKING_THE_REST,
        )
    for row in rows:
        # As text and not as markup: a body may hold square brackets.
        table.add_row(*(
            Text(
                row[index], (columns[index].style or _plain)(row[index]),
                overflow=_OVERFLOWS.get(columns[index].room), no_wrap=columns[index].room is not Room.WRAPPED,
            )
            for index in shown
        ))
    console.print(table)
    return True


_TAKING_THE_REST = (Room.CUT, Room.WRAPPED)
_OVERFLOWS: dict[Room, Literal["ellipsis", "fold"]] = {Room.CUT: "ellipsis", Room.WRAPPED: "fold"}


def _plain(_: str) -> str:
    return ""


def fitting(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Which columns are shown: of those that may be left out, as many from the left as there is room for."""
    wanted = _wanted(columns, rows)
    left = width - sum(wanted[index] for index, column in enumerate(columns) if column.room is not Room.LEFT_OUT)
    shown = []
    for index, column in enumerate(columns):
        if column.room is Room.LEFT_OUT:
            if wanted[index] > left:
                continue
            left -= wanted[index]
        shown.append(index)
    return shown


def least_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """What the table takes when all that may be left out is."""
    wanted = zip(columns, _wanted(columns, rows), strict=True)
    return sum(width for column, width in wanted if column.room is not Room.LEFT_OUT) - COLUMN_GAP


def _wanted(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column, with the gap after it."""
    widths = [_width(columns, rows, index) for index in range(len(columns))]
    return [
        (min(REST_WIDTH, width) if column.room in _TAKING_THE_REST else width) + COLUMN_GAP
        for column, width in zip(columns, widths, strict=True)
    ]


def _width(columns: Sequence[Column], rows: Sequence[Sequence[str]], index: int) -> int:
    return max(len(columns[index].title), *(len(row[index]) for row in rows))


def say(sentence: str) -> None:
    """For who watches: not where a program reads."""
    if on_terminal(sys.stdout):
        print(sentence)


def print_result(value: Cell, sentence: str) -> None:
    """The sentence for who watches, the value for a program."""
    print(sentence if on_terminal(sys.stdout) else cell(value))


def note(sentence: str) -> None:
    """For who watches, beside the output."""
    if on_terminal(sys.stderr):
        print(sentence, file=sys.stderr, flush=True)


def confirmed(question: str, yes: bool) -> bool:
    """Asks whoever sits there; where nobody does, the command itself was the answer."""
    if yes or not on_terminal(sys.stdin):
        return True
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


@contextmanager
def progress(what: str, total: int | None, unit: str = "messages") -> Iterator[Advance]:
    """A bar on stderr while something long goes on; nothing where nobody watches."""
    if not on_terminal(sys.stderr):
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        yield lambda _: None
        return
    shown = "{task.completed:,}" + ("/{task.total:,}" if total is not None else "") + f" {unit}"
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn(shown), TimeElapsedColumn(),
        console=Console(file=sys.stderr), transient=True,
    )
    with bar:
        task: Any = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
