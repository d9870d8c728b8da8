"""JSON 1.0: a body, decoded straight into its shape.

The usual request is decoded once and that is all. What does not fit is looked at again: AWS takes null for a member
that was left out and 5.0 for 5, and says what is wrong in words of its own.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from angelhair.server.aws.operation import Operation
from angelhair.server.sqs.errors import SerializationException

_WRONG = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_KINDS = {"int": "an Integer", "str": "a String", "bool": "a Boolean", "bytes": "a Blob"}
_VALUES = {"str": "STRING_VALUE", "int": "NUMBER_VALUE", "float": "NUMBER_VALUE", "bool": "BOOLEAN_VALUE"}


def read(operation: Operation, body: bytes) -> Any:
    """The action's input, not yet checked."""
    try:
        return operation.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _read_again(operation, body)


def _read_again(operation: Operation, body: bytes) -> Any:
    try:
        plain = msgspec.json.decode(body) if body.strip() else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise SerializationException from None
    try:
        return msgspec.convert(_mended(plain), operation.input)
    except msgspec.ValidationError as error:
        raise SerializationException(_in_words_of_aws(str(error))) from None
    except RecursionError:
        raise SerializationException from None


def _mended(value: Any) -> Any:
    """Without nulls, and with whole numbers that are whole."""
    if isinstance(value, dict):
        return {name: _mended(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_mended(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _in_words_of_aws(complaint: str) -> str:
    found = _WRONG.search(complaint)
    if found is None:
        return "A value cannot be converted to the type of its member."
    wanted, given = found[1].split(" | ")[0], found[2]
    if given == "object":
        return "Start of structure or map found where not expected."
    if given == "array":
        return "Start of list found where not expected"
    if wanted == "object":
        return "Expected a structure or map."
    if wanted == "array":
        return "Expected a list."
    return f"{_VALUES.get(given, 'NULL_VALUE')} can not be converted to {_KINDS.get(wanted, wanted)}"
