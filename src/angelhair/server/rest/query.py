"""Parameters, in the path and behind the question mark: each is read and described by the same value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from angelhair import limits
from angelhair.server.rest.errors import invalid
from angelhair.server.rest.patterns import (
    DUE_PATTERN,
    DUE_WORDS,
    EXAMPLE_RECEIPT,
    NAME_PATTERN,
    PART_PATTERN,
    RECEIPT_PATTERN,
)
from angelhair.server.rest.times import in_ms, readable

NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""As JSON writes it."""

_NUMBER = re.compile(NUMBER)
_WHOLE = re.compile("0|[1-9][0-9]{0,18}")
_PART = re.compile(PART_PATTERN[1:-1])
_DUE = re.compile(DUE_PATTERN[1:-1])

Read = Callable[[str, str], Any]


class Parameter(NamedTuple):
    name: str
    description: str
    schema: Mapping[str, Any]
    example: object
    read: Read | None = None
    """From its name and text to its value. None where the engine itself is the judge."""
    place: str = "query"

    def value(self, text: str) -> Any:
        return text if self.read is None else self.read(self.name, text)


Parameters = Mapping[str, Parameter]


def parameters(*items: Parameter) -> Parameters:
    return {item.name: item for item in items}


def read(query: str, known: Parameters) -> dict[str, Any]:
    """The values that were given, by name. Unknown, repeated and malformed ones are named and refused."""
    values: dict[str, Any] = {}
    if not query:
        return values
    for name, text in _pairs(query):
        parameter = known.get(name)
        if parameter is None:
            raise invalid(name, f"is not a parameter of this route; it has {', '.join(known) or 'none'}")
        if name in values:
            raise invalid(name, "is given more than once")
        values[name] = parameter.value(text)
    return values


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeError:
        raise invalid("query", "is not UTF-8 once its percent signs are decoded") from None


# --- kinds of parameters ----------------------------------------------------------------------------------------------


def seconds(name: str, description: str, most: float, example: float) -> Parameter:
    """A time span; its value is in milliseconds."""

    def read_seconds(name: str, text: str) -> int:
        value = float(text) if _NUMBER.fullmatch(text) else -1.0
        if not 0 <= value <= most:
            raise invalid(name, f"must be a number of seconds between 0 and {readable(most)}, such as {example}")
        return in_ms(value)

    return Parameter(name, description, {"type": "number", "minimum": 0, "maximum": most}, example, read_seconds)


def whole(name: str, description: str, least: int, most: int, example: int, place: str = "query") -> Parameter:
    def read_whole(name: str, text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else -1
        if not least <= value <= most:
            raise invalid(name, f"must be a whole number between {least} and {most}")
        return value

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Parameter(name, description, schema, example, read_whole, place)


def part_of_name(name: str, description: str, example: str, longest: int = limits.NAME_LENGTH) -> Parameter:
    def read_part(name: str, text: str) -> str:
        if len(text) > longest or not _PART.fullmatch(text):
            raise invalid(name, f"may hold up to {longest} letters, digits, '_', '-' and '.', as names do")
        return text

    schema = {"type": "string", "pattern": PART_PATTERN, "maxLength": longest}
    return Parameter(name, description, schema, example, read_part)


def due_ms(name: str, text: str) -> int:
    """Milliseconds since 1970, from RFC 3339 or from seconds since 1970."""
    if _NUMBER.fullmatch(text):
        return due_number_ms(name, float(text))
    if not _DUE.fullmatch(text):
        hint = "; in a URL, + is written %2B" if " " in text else ""
        raise invalid(name, f"{DUE_WORDS}{hint}")
    return round(datetime.fromisoformat(text.upper()).timestamp() * 1000)


def due_number_ms(name: str, value: float) -> int:
    if not 0 <= value <= limits.DUE_MAXIMUM_SECONDS:
        raise invalid(name, "must lie between 1970 and 2100, in seconds since 1970")
    return round(value * 1000)


# --- parameters that several routes share -----------------------------------------------------------------------------

NAME_SCHEMA = {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": limits.NAME_LENGTH}
QUEUE = Parameter("queue", "The queue's name.", NAME_SCHEMA, "orders", place="path")
TOPIC_SCHEMA = {**NAME_SCHEMA, "maxLength": limits.TOPIC_NAME_LENGTH}
TOPIC = Parameter("topic", "The topic's name.", TOPIC_SCHEMA, "news", place="path")
CONSUMER = Parameter("consumer", "The consumer's name, of its own choice.", NAME_SCHEMA, "mailer-1", place="path")
BATCH = whole("batch", "At most so many messages.", 1, limits.BATCH_MESSAGES, 10, "path")
RECEIPT = Parameter(
    "receipt", "The receipt that came with the delivery; of a databag the message's id.",
    {"type": "string", "pattern": RECEIPT_PATTERN}, EXAMPLE_RECEIPT, place="path",
)
VISIBILITY = seconds(
    "visibility", "Seconds for which others do not see the messages; by default the queue's `visibility_timeout`.",
    limits.DURATION_MAXIMUM_MS // 1000, 30,
)
NONE: Parameters = {}
