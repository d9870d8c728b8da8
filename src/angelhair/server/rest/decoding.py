"""A JSON body, decoded once, straight into its shape."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from angelhair.server.http.messages import Request
from angelhair.server.rest.errors import Refusal, invalid

T = TypeVar("T")

# What clients say when they were told nothing better (curl says that a form comes) is not held against them.
_TOLERATED = {
    "", "application/json", "text/json", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded",
    "*/*",
}
_WORDS = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "array": "a list",
    "object": "an object", "bytes": "base64",
}
"""What msgspec calls things, and what they are called in JSON."""

_QUOTED = re.compile(r"`([^`]*)`")
_FLOAT_FOR_INT = re.compile(r"Expected `int\b.*got `float`")
_NAMED_FIELD = re.compile(r"field `(.*)`$", re.DOTALL)
_PLACE = re.compile(r" - at `\$(.*)`$", re.DOTALL)


def decode(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    check_media_type(request)
    try:
        try:
            return decoder.decode(request.body)
        except msgspec.ValidationError as error:
            if not _FLOAT_FOR_INT.match(str(error)):
                raise
            # JSON has one kind of number, and 5.0 is a whole one.
            decoded: T = msgspec.convert(_whole(msgspec.json.decode(request.body)), decoder.type)
            return decoded
    except msgspec.ValidationError as error:
        raise _named(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = str(error) if isinstance(error, msgspec.DecodeError) else "is not UTF-8, or nested too deeply"
        raise Refusal("malformed_json", f"the body is not JSON: {message}") from None


def check_media_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
    if given == "application/json":
        return
    media_type = given.partition(";")[0].strip().lower()
    if media_type not in _TOLERATED and not media_type.endswith("+json"):
        raise Refusal("unsupported_media_type", f"this route takes application/json, not {media_type[:80]}")


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _named(message: str) -> Refusal:
    """msgspec's complaint, with the field that it is about: "[3].delay" is the delay of the fourth item."""
    found = _PLACE.search(message)
    place = found.group(1).removeprefix(".") if found else ""
    message = message[: found.start()] if found else message
    named = _NAMED_FIELD.search(message)
    if named is not None:
        field = f"{place}.{named.group(1)}" if place else named.group(1)
        return invalid(field, "is missing" if message.startswith("Object missing") else "is not known here")
    message = _QUOTED.sub(_in_our_words, message)
    return invalid(place or "body", f"is not as it should be: {message[0].lower()}{message[1:]}")


def _in_our_words(quoted: re.Match[str]) -> str:
    return " or ".join(_WORDS.get(word, word) for word in quoted.group(1).split(" | "))
