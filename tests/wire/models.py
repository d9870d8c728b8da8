"""Our shapes beside those of botocore's models."""

from __future__ import annotations

import msgspec
from botocore.model import ListShape, MapShape, Shape, StructureShape

KINDS = {
    "string": msgspec.inspect.StrType, "integer": msgspec.inspect.IntType, "long": msgspec.inspect.IntType,
    "boolean": msgspec.inspect.BoolType, "blob": msgspec.inspect.BytesType,
}


def differences(ours: msgspec.inspect.Type, theirs: Shape, at: str) -> list[str]:
    """Where a shape of ours is not the model's, by the path from the action."""
    if isinstance(ours, msgspec.inspect.UnionType):
        ours = next(part for part in ours.types if not isinstance(part, msgspec.inspect.NoneType))
    if isinstance(theirs, StructureShape):
        if not isinstance(ours, msgspec.inspect.StructType):
            return [f"{at} is a structure"]
        known = {field.encode_name: field.type for field in ours.fields}
        found = [f"{at}.{name}" for name in known.keys() ^ theirs.members.keys()]
        for name in known.keys() & theirs.members.keys():
            found += differences(known[name], theirs.members[name], f"{at}.{name}")
        return found
    if isinstance(theirs, ListShape):
        is_list = isinstance(ours, msgspec.inspect.ListType)
        return differences(ours.item_type, theirs.member, at) if is_list else [f"{at} is a list"]
    if isinstance(theirs, MapShape):
        is_map = isinstance(ours, msgspec.inspect.DictType)
        return differences(ours.value_type, theirs.value, at) if is_map else [f"{at} is a map"]
    return [] if isinstance(ours, KINDS[theirs.type_name]) else [f"{at} is a {theirs.type_name}"]
