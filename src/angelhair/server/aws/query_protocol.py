"""The Query protocol: parameters with dotted names, put together into the same shapes that JSON gives.

`MessageAttribute.1.Value.DataType` is walked from left to right along the plan of the action's input. Clients differ in
how they write lists and maps (`Entry.1`, `Entries.member.1`, `Attributes.entry.1.key`); all of it leads to the same
place. A parameter that leads nowhere is passed over: signatures and versions are among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from angelhair import limits
from angelhair.server.aws.errors import Unreadable
from angelhair.server.aws.members import Kind, Member, by_query_name
from angelhair.server.aws.operation import Operation
from angelhair.server.aws.shape import Shape

_INDEX = re.compile(rf"[0-9]{{1,{limits.AWS_FORM_INDEX_DIGITS}}}", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_KEYS = {"Name", "Key", "name", "key"}
_VALUES = {"Value", "value"}

Tree = dict[Any, Any]
"""Shapes by the names of their members, lists and maps by the numbers of their items."""


def read(operation: Operation, form: Mapping[str, str]) -> Any:
    """The action's input, not yet checked. Raises `Unreadable`."""
    tree: Tree = {}
    for name, text in form.items():
        _place(tree, operation.input, name.split("."), name, text)
    try:
        return msgspec.convert(_shape(tree, operation.input), operation.input)
    except msgspec.ValidationError:
        # Numbers were read on the way; only base64 is left to go wrong.
        raise Unreadable("", "") from None


def _place(tree: Tree, shape: type[Shape], path: list[str], name: str, text: str) -> None:
    member = by_query_name(shape).get(path[0])
    if member is not None:
        _place_in(tree, member.name, member, path[1:], name, text)


def _place_in(tree: Tree, at: Any, member: Member, path: list[str], name: str, text: str) -> None:
    """Puts the text where the rest of the path leads to, below `tree[at]`."""
    if member.kind is Kind.SHAPE and member.shape is not None:
        if path:
            _place(tree.setdefault(at, {}), member.shape, path, name, text)
        return
    if member.item is None:
        if not path:
            tree[at] = _scalar(member.kind, text, name)
        return
    if path and _INDEX.fullmatch(path[0]) is None:
        path = path[1:]
    if not path or _INDEX.fullmatch(path[0]) is None:
        return
    index, path = int(path[0]), path[1:]
    items = tree.setdefault(at, {})
    if member.kind is Kind.LIST:
        _place_in(items, index, member.item, path, name, text)
    elif path and path[0] in _KEYS:
        items.setdefault(index, {})["key"] = text
    elif path and path[0] in _VALUES:
        _place_in(items.setdefault(index, {}), "value", member.item, path[1:], name, text)


def _scalar(kind: Kind, text: str, name: str) -> str | int | bool:
    if kind is Kind.TRUTH:
        return text.lower() == "true"
    if kind is not Kind.WHOLE:
        return text
    if _WHOLE.fullmatch(text) is None:
        raise Unreadable(name, text)
    return int(text)


def _shape(tree: Tree, shape: type[Shape]) -> dict[str, Any]:
    known = by_query_name(shape)
    return {name: _value(branch, known[name]) for name, branch in tree.items()}


def _value(branch: Any, member: Member) -> Any:
    """Lists in the order of their numbers, maps by their keys."""
    if member.kind is Kind.SHAPE and member.shape is not None:
        return _shape(branch, member.shape)
    if member.item is None:
        return branch
    item = member.item
    if member.kind is Kind.LIST:
        return [_value(branch[index], item) for index in sorted(branch)]
    nothing: Any = {} if item.kind is Kind.SHAPE else ""
    pairs = [branch[index] for index in sorted(branch)]
    return {pair.get("key", ""): _value(pair.get("value", nothing), item) for pair in pairs}
