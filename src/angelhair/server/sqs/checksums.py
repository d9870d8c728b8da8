"""MD5 as SQS gives it: SDKs compute it too and refuse a message when the two differ.

Of attributes: in the order of their names, each as name, type, a byte for the kind of value, and value; text and bytes
with their length in front, four bytes, the highest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5

from angelhair.server.aws.shape import MessageAttributeValue

_STRING, _BINARY = b"\x01", b"\x02"


def md5_of_body(body: bytes) -> str:
    return md5(body, usedforsecurity=False).hexdigest()


def md5_of_attributes(attributes: Mapping[str, MessageAttributeValue]) -> str:
    parts: list[bytes] = []
    for name in sorted(attributes):
        value = attributes[name]
        kind, content = (
            (_BINARY, value.binary_value or b"")
            if value.data_type.startswith("Binary")
            else (_STRING, (value.string_value or "").encode())
        )
        name_bytes, type_bytes = name.encode(), value.data_type.encode()
        parts += (
            len(name_bytes).to_bytes(4, "big"), name_bytes,
            len(type_bytes).to_bytes(4, "big"), type_bytes,
            kind, len(content).to_bytes(4, "big"), content,
        )
    return md5(b"".join(parts), usedforsecurity=False).hexdigest()
