"""A policy's tree and a message, walked side by side."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from angelhair.engine.topics.filters.conditions import Value, fulfilled, number_of
from angelhair.engine.topics.filters.parsing import Branch
from angelhair.engine.topics.filters.reading import MISSING, decoded

_LIST = "String.Array"


def holds(branch: Branch, found: Any) -> bool:
    """All keys of the policy agree with what was found. Of several objects in a list one must agree with all of it."""
    if isinstance(found, list):
        objects = [item for item in found if isinstance(item, dict | list)]
        return any(holds(branch, item) for item in objects) if objects else holds(branch, MISSING)
    below = found if isinstance(found, dict) else {}
    return (
        all(fulfilled(conditions, _leaves(below.get(key, MISSING))) for key, conditions in branch.leaves.items())
        and all(holds(inner, below.get(key, MISSING)) for key, inner in branch.branches.items())
        and all(any(holds(choice, found) for choice in choices) for choices in branch.choices)
    )


def _leaves(found: Any) -> list[Value] | None:
    """The single values at a key; an object is none, and a list is each of its own."""
    if found is MISSING or isinstance(found, dict):
        return None
    if not isinstance(found, list):
        return [_value(found)]
    leaves: list[Value] = []
    for item in found:
        leaves += _leaves(item) or []
    return leaves


def _value(found: Any) -> Value:
    """Numbers that are beyond comparing are text that nobody can name."""
    if isinstance(found, Decimal):
        number = number_of(str(found))
        return f"\x00{found}" if number is None else number
    value: Value = found
    return value


def attribute_values(attributes: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """What a policy compares itself with. Binary attributes are passed over, as SNS does."""
    found: dict[str, Any] = {}
    for name, (kind, text) in attributes.items():
        if kind == _LIST:
            items = decoded(text)
            # What says that it is a list and is none is there all the same.
            found[name] = items if isinstance(items, list) else text
        elif kind.startswith("Number"):
            found[name] = _number(text)
        elif kind.startswith("String"):
            found[name] = text
    return found


def _number(text: str) -> Any:
    try:
        return Decimal(text)
    except ArithmeticError:
        return text


def body_value(body: str) -> Any:
    """A body is looked at when it is a JSON object; `MISSING` otherwise."""
    found = decoded(body)
    return found if isinstance(found, dict) else MISSING
