"""A JSON body, decoded once, straight into its shape."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin

import msgspec

from angelhair.server.configuration.words import did_you_mean
from angelhair.server.http.messages import Request
from angelhair.server.rest.errors import Refusal, invalid
from angelhair.server.rest.patterns import IN_WORDS
from angelhair.server.rest.times import readable

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
_PATTERN = re.compile(r"Expected `str` matching regex (.*)$", re.DOTALL)
_BOUND = re.compile(r"(of length )?(<=|>=) ([0-9.e+]+)")
_PATTERNS_IN_WORDS = {repr(pattern): words for pattern, words in IN_WORDS.items()}
_UNKNOWN_CHOICE = "Invalid enum value"


def decode_object(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    """As `decode`, and a field that is given twice is refused: which of the two was meant is anybody's guess.

    msgspec takes the last one, so this reads the body once more. For what is sent with every message, see `decode`.
    """
    decoded = decode(request, decoder)
    json.loads(request.body, object_pairs_hook=_each_once)
    return decoded


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for name, _ in pairs:
        if name in seen:
            raise invalid(name, "is given more than once")
        seen.add(name)


def decode(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    check_media_type(request)
    if not request.body:
        wanted = "object" if isinstance(decoder.type, type) else "list"
        raise Refusal("malformed_json", f"the body is empty; a JSON {wanted} is wanted")
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
        raise _named(str(error), decoder.type) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = str(error) if isinstance(error, msgspec.DecodeError) else "is not UTF-8, or nested too deeply"
        if _is_json(request.body):
            # Of all that msgspec refuses the standard library lets only this pass.
            message = "a text in it has half of a surrogate pair, which is no character"
        raise Refusal("malformed_json", f"the body is not JSON: {message}") from None


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    """NaN and its like, which are not JSON."""
    raise ValueError(constant)


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


def _named(message: str, shape: Any) -> Refusal:
    """msgspec's complaint, with the field that it is about: "[3].delay" is the delay of the fourth item."""
    found = _PLACE.search(message)
    place = found.group(1).removeprefix(".") if found else ""
    message = message[: found.start()] if found else message
    named = _NAMED_FIELD.search(message)
    if named is not None:
        field = f"{place}.{named.group(1)}" if place else named.group(1)
        if message.startswith("Object missing"):
            return invalid(field, "is missing")
        return invalid(field, f"is not known here{did_you_mean(named.group(1), _names(shape))}")
    pattern = _PATTERN.match(message)
    if pattern is not None and pattern.group(1) in _PATTERNS_IN_WORDS:
        return invalid(place, _PATTERNS_IN_WORDS[pattern.group(1)])
    if message.startswith(_UNKNOWN_CHOICE) and (choices := _choices(shape, place)):
        return invalid(place, f"must be {' or '.join(choices)}, not {message.removeprefix(_UNKNOWN_CHOICE).strip()}")
    message = _BOUND.sub(_in_readable_numbers, _QUOTED.sub(_in_our_words, message))
    return invalid(place or "body", f"is not as it should be: {message[0].lower()}{message[1:]}")


def _in_our_words(quoted: re.Match[str]) -> str:
    return " or ".join(_WORDS.get(word, word) for word in quoted.group(1).split(" | "))


def _in_readable_numbers(bound: re.Match[str]) -> str:
    of_length, side, number = bound.groups()
    start = "with a length of" if of_length else "of"
    return f"{start} {'at most' if side == '<=' else 'at least'} {readable(float(number))}"


def _names(shape: Any) -> list[str]:
    """The fields of a shape, or of the items of a list of it."""
    shapes = [one for one in (shape, *get_args(shape)) if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    return [field.encode_name for one in shapes for field in msgspec.structs.fields(one)]


def _choices(shape: Any, place: str) -> list[str]:
    """The values that a field of this shape may have."""
    for field in msgspec.structs.fields(shape) if isinstance(shape, type) else ():
        if field.encode_name == place:
            kinds = get_args(field.type) or (field.type,)
            return [repr(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    return []
