"""Values of botocore's shapes, made by hypothesis: whatever the model allows, valid or not by SQS's own rules."""

from __future__ import annotations

from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape
from hypothesis import strategies as st

# What both protocols can carry: XML 1.0 has no other characters.
XML_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
        lambda character: character >= " " or character in "\t\n\r"
    ),
    max_size=12,
)


def values(shape: Shape, always: bool = False) -> st.SearchStrategy[Any]:
    """Values of a shape. `always`: with every member, so that none is forgotten."""
    if isinstance(shape, StructureShape):
        members = {name: values(member, always) for name, member in shape.members.items()}
        required = members if always else {name: members[name] for name in shape.required_members}
        optional = {} if always else {name: part for name, part in members.items() if name not in required}
        return st.fixed_dictionaries(required, optional=optional)
    if isinstance(shape, ListShape):
        return st.lists(values(shape.member, always), min_size=1, max_size=3)
    if isinstance(shape, MapShape):
        return st.dictionaries(XML_TEXT, values(shape.value, always), min_size=1, max_size=3)
    match shape.type_name:
        case "string":
            return XML_TEXT.filter(bool)
        case "integer" | "long":
            return st.integers(0, 2**31 - 1)
        case "boolean":
            return st.booleans()
        case "blob":
            return st.binary(min_size=1, max_size=8)
    raise TypeError(shape.type_name)
