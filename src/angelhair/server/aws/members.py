"""What the members of shapes are called in the Query protocol, for forms and XML alike.

SQS has its lists and maps flat: the items of `AttributeNames` are AttributeName.1, AttributeName.2 in a form and as
many elements of that name in XML. A list of shapes is called after its shape. Other services nest them, under the name
that they have anyway. Plans are made from the shapes, once.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any

from msgspec import inspect

from angelhair.server.aws.shape import Shape

_ITEMS = {
    "AttributeNames": "AttributeName", "MessageAttributeNames": "MessageAttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName", "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName", "TagKeys": "TagKey", "QueueUrls": "QueueUrl", "queueUrls": "QueueUrl",
    "StringListValues": "StringListValue", "BinaryListValues": "BinaryListValue",
}
_MAPS = {
    "Attributes": ("Attribute", "Name"), "MessageAttributes": ("MessageAttribute", "Name"),
    "MessageSystemAttributes": ("MessageSystemAttribute", "Name"), "Tags": ("Tag", "Key"), "tags": ("Tag", "Key"),
}
"""The name of an item, and of what it has its key in; its value is always in Value."""


class Kind(Enum):
    TEXT = "text"
    WHOLE = "whole"
    TRUTH = "truth"
    BYTES = "bytes"
    SHAPE = "shape"
    LIST = "list"
    MAP = "map"


class Member:
    """A member of a shape, or an item of a list or map."""

    __slots__ = ("field", "item", "key", "kind", "name", "query_name", "shape")

    def __init__(self, field: str, name: str, kind: inspect.Type) -> None:
        self.field = field
        self.name = name
        """In JSON."""
        self.query_name = name
        """In the Query protocol."""
        self.key = ""
        self.item: Member | None = None
        self.shape: type[Shape] | None = None
        self.kind = self._read(kind)

    def _read(self, kind: inspect.Type) -> Kind:
        match kind:
            case inspect.UnionType():
                return self._read(next(part for part in kind.types if not isinstance(part, inspect.NoneType)))
            case inspect.StrType():
                return Kind.TEXT
            case inspect.IntType():
                return Kind.WHOLE
            case inspect.BoolType():
                return Kind.TRUTH
            case inspect.BytesType():
                return Kind.BYTES
            case inspect.StructType():
                assert issubclass(kind.cls, Shape)
                self.shape = kind.cls
                return Kind.SHAPE
            case inspect.ListType():
                self.item = Member("", self.name, kind.item_type)
                self.query_name = self.item.shape.__name__ if self.item.shape else _ITEMS.get(self.name, self.name)
                return Kind.LIST
            case inspect.DictType():
                self.item = Member("", self.name, kind.value_type)
                self.query_name, self.key = _MAPS.get(self.name, (self.name, "key"))
                return Kind.MAP
        raise TypeError(f"{self.name} is of a type that this wire does not have: {kind}")


@cache
def members(shape: type[Shape]) -> tuple[Member, ...]:
    info: Any = inspect.type_info(shape)
    return tuple(Member(field.name, field.encode_name, field.type) for field in info.fields)


@cache
def by_query_name(shape: type[Shape]) -> dict[str, Member]:
    """By every name that clients use: that of the Query protocol, and that of JSON, which newer models left them."""
    known = {member.name: member for member in members(shape)}
    return known | {member.query_name: member for member in members(shape)}
