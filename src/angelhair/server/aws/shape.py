"""What all shapes on this wire have in common: AWS's names of members, made from ours."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

_SPELLINGS = {"md5": "MD5", "aws": "AWS"}


def wire_name(field: str) -> str:
    """`md5_of_body` is MD5OfBody. The few that AWS spells otherwise are named where they stand."""
    return "".join(_SPELLINGS.get(word, word.capitalize()) for word in field.split("_"))


class Shape(Struct, rename=wire_name, omit_defaults=True):
    """The root of all. Members that we do not know are passed over, as AWS does: SDKs are newer than servers."""

    wrapped: ClassVar[bool] = False
    """In XML, a result without members is put between elements of its own too."""


class MessageAttributeValue(Shape):
    """A message attribute. Lists are in the model and refused by AWS ever since."""

    data_type: str = ""
    string_value: str | None = None
    binary_value: bytes | None = None
    string_list_values: list[str] = []
    binary_list_values: list[bytes] = []
